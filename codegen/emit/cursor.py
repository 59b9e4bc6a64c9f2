"""The position of a decoder, and its reads of fields of fixed size.

Neighbouring fields of fixed size are read by one prebuilt ``unpack_from``, together with the first byte of a
size that follows, and with a compact string before them. Inside a function the position is ``pos`` plus an
offset that is known at generation time, so most reads need no arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.emit.code import Function
from codegen.emit.layout import CODE_SIZES


@dataclass(frozen=True, slots=True)
class Text:
    """A compact string at the position, to be read with the run after it into the local ``name``."""

    name: str
    size: str
    """The local that holds its compact size."""
    nullable: bool


class Cursor:
    def __init__(self, function: Function, base: str) -> None:
        self.out = function
        self.module = function.module
        # The position is this local, or 0 while it is "", plus the offset.
        self.base = base
        self.offset = 0
        # The targets of the next read: a string, then struct codes with their locals.
        self.text: Text | None = None
        self.run: list[tuple[str, str]] = []
        # Whether the end of the data would have been noticed up to here.
        self.checked = True

    def helper(self, name: str) -> str:
        return self.module.read_helper(name)

    # The position.

    def at(self, distance: int = 0) -> str:
        """Return the position, or one ``distance`` bytes later, as an expression."""
        offset = self.offset + distance
        if not self.base:
            return str(offset)
        return f"{self.base} + {offset}" if offset else self.base

    def settle(self) -> None:
        """Make ``pos`` the position itself, before control flow branches."""
        self.close_run()
        if not self.base:
            self.out.add(f"pos = {self.offset}")
        elif self.offset:
            self.out.add(f"pos += {self.offset}")
        self.moved()

    def advance(self, distance: str, more: int = 0) -> None:
        """In one of several branches: move ``pos`` by the offset, by ``distance`` and by ``more``."""
        constant = self.offset + more
        if not distance:
            distance = str(constant)
        elif constant:
            distance += f" + {constant}" if constant > 0 else f" - {-constant}"
        self.out.add(f"pos {'+=' if self.base else '='} {distance}")

    def moved(self) -> None:
        """Note that the code just added has set ``pos``."""
        self.base, self.offset = "pos", 0

    # Reads.

    def fixed(self, code: str, name: str) -> None:
        self.run.append((code, name))

    def string(self, name: str, size: str, *, nullable: bool) -> None:
        """Read a compact string whose size was read already, together with the fields after it."""
        self.close_run()
        self.text = Text(name, size, nullable)

    def close_run(self) -> None:
        """Emit the read of the collected fields."""
        text, run = self.text, self.run
        self.text, self.run = None, []
        codes = [code for code, _ in run]
        # Skipped bytes have no name.
        names = [name for _, name in run if name]
        if text is not None:
            self._read_text(text, codes, names)
        elif not run:
            return
        elif codes in (["B"], ["?"]):
            self.out.add(f"{names[0]} = data[{self.at()}]" + (" != 0" if codes == ["?"] else ""))
            self.offset += 1
        else:
            self.out.add(f"{_targets(names)} = {self.module.reader(''.join(codes))}(data, {self.at()})")
            self.offset += width(codes)
        self.checked = True

    def _read_text(self, text: Text, run: list[str], names: list[str]) -> None:
        targets, codes = _targets([text.name, *names]), "".join(run)
        with self.out.block(f"if {text.size} < 128"):
            reader = self.module.string_reader(codes, nullable=text.nullable)
            self.out.add(f"{targets} = {reader}[{text.size}](data, {self.at()})")
            # The size is one more than the length; null counts like "".
            self.advance(f"({text.size} or 1)" if text.nullable else text.size, width(run) - 1)
        with self.out.block("else"):
            read = f'{self.helper("long_string")}(data, {self.at()}, {text.size}, "{codes}")'
            self.out.add(f"({targets}), pos = {read}")
        self.moved()


def _targets(names: list[str]) -> str:
    """Return the targets that a tuple is unpacked into."""
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)


def width(codes: list[str]) -> int:
    """Return the number of bytes of struct codes; "x" is a skipped byte."""
    return sum(1 if code == "x" else CODE_SIZES[code] for code in codes)
