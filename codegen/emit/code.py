"""Python source under construction: indented lines, unique names, and the definitions that the module
needs."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from codegen.schema.naming import RESERVED_LOCAL_NAMES

INDENT = "    "
STRING_READERS = {False: "string_readers", True: "nullable_string_readers"}
"""Functions of kraft_wire.protocol.fast_read."""
LONGEST_CODES = 40
"""The maximum number of struct codes in a name; with more of them the name has a number instead."""


@dataclass
class Module:
    """The state that the functions of one module share."""

    readers: set[str] = field(default_factory=set)
    """struct codes that need a prebuilt unpack_from."""
    writers: set[str] = field(default_factory=set)
    """struct codes that need a prebuilt pack."""
    string_readers: set[tuple[str, bool]] = field(default_factory=set)
    """struct codes that are read together with the compact string before them, and whether it may be null."""
    string_writers: set[str] = field(default_factory=set)
    """struct codes that are packed together with the compact string before them."""
    row_readers: set[str] = field(default_factory=set)
    array_readers: set[str] = field(default_factory=set)
    array_writers: set[str] = field(default_factory=set)
    read_helpers: set[str] = field(default_factory=set)
    """Names from kraft_wire.protocol.fast_read."""
    write_helpers: set[str] = field(default_factory=set)
    """Names from kraft_wire.protocol.fast_write."""
    defaults: set[str] = field(default_factory=set)
    """Structs whose default instance is needed for comparison."""
    long_codes: list[str] = field(default_factory=list)
    """struct codes that have a number in names."""

    def reader(self, codes: str) -> str:
        self.readers.add(codes)
        return "_read_" + self.codes_name(codes)

    def writer(self, codes: str) -> str:
        self.writers.add(codes)
        return "_write_" + self.codes_name(codes)

    def string_reader(self, codes: str, *, nullable: bool) -> str:
        self.string_readers.add((codes, nullable))
        return self._string_reader_name(codes, nullable)

    def string_writer(self, codes: str) -> str:
        self.string_writers.add(codes)
        return self._string_writer_name(codes)

    def row_reader(self, codes: str) -> str:
        self.row_readers.add(codes)
        return "_read_rows_" + self.codes_name(codes)

    def array_reader(self, code: str) -> str:
        self.array_readers.add(code)
        return f"_read_array_{self.codes_name(code)}"

    def array_writer(self, code: str) -> str:
        self.array_writers.add(code)
        return f"_write_array_{self.codes_name(code)}"

    def read_helper(self, name: str) -> str:
        self.read_helpers.add(name)
        return name

    def write_helper(self, name: str) -> str:
        self.write_helpers.add(name)
        return name

    def default(self, struct: str) -> str:
        self.defaults.add(struct)
        return f"_DEFAULT_{struct}"

    def codes_name(self, codes: str) -> str:
        """Return struct codes as part of an identifier."""
        if len(codes) <= LONGEST_CODES:
            return codes.replace("?", "t").replace("*", "n").replace(" ", "_")
        if codes not in self.long_codes:
            self.long_codes.append(codes)
        return f"long_{self.long_codes.index(codes) + 1}"

    def _string_reader_name(self, codes: str, nullable: bool) -> str:
        parts = ["_read", "nullable" if nullable else "", "string", self.codes_name(codes)]
        return "_".join(part for part in parts if part)

    def _string_writer_name(self, codes: str) -> str:
        return f"_write_string_{self.codes_name(codes)}"

    def makers(self) -> set[str]:
        """Return the names from kraft_wire.protocol.fast_read that the definitions need."""
        makers = {STRING_READERS[nullable] for _, nullable in self.string_readers}
        return makers | ({"array_readers"} if self.array_readers else set())

    def definitions(self) -> list[str]:
        """Return the module-level constants, in a fixed order."""
        lines = [
            f'_read_{self.codes_name(codes)} = struct.Struct(">{codes}").unpack_from'
            for codes in sorted(self.readers)
        ]
        lines += [
            f'_write_{self.codes_name(codes)} = struct.Struct(">{codes}").pack'
            for codes in sorted(self.writers)
        ]
        lines += [
            f'_read_array_{self.codes_name(code)} = array_readers("{code}")'
            for code in sorted(self.array_readers)
        ]
        lines += [
            f'{self._string_reader_name(codes, nullable)} = {STRING_READERS[nullable]}("{codes}")'
            for codes, nullable in sorted(self.string_readers)
        ]
        lines += [
            f'{self._string_writer_name(codes)} = string_writers("{codes}")'
            for codes in sorted(self.string_writers)
        ]
        lines += [
            f'_read_rows_{self.codes_name(codes)} = row_reader("{codes}")'
            for codes in sorted(self.row_readers)
        ]
        lines += [
            f'_write_array_{self.codes_name(code)} = array_writers("{code}")'
            for code in sorted(self.array_writers)
        ]
        return lines


class Function:
    """One function's body: lines, indentation and local names that are used once each."""

    def __init__(self, module: Module, reserved: tuple[str, ...]) -> None:
        self.module = module
        self.lines: list[str] = []
        self._depth = 0
        self._taken = {*RESERVED_LOCAL_NAMES, *reserved}

    def add(self, line: str) -> None:
        self.lines.append(INDENT * self._depth + line)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Emit ``opening:`` and indent the lines added inside; a block that stays empty gets ``pass``."""
        self.add(opening + ":")
        self._depth += 1
        count = len(self.lines)
        yield
        if len(self.lines) == count:
            self.add("pass")
        self._depth -= 1

    def name(self, wanted: str) -> str:
        """Return a local name like ``wanted`` that is unique in this function."""
        name, number = wanted, 1
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
