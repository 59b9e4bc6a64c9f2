"""Emit the generated part of the compiled package: Cython modules of some messages each, and their index."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from codegen.cython.layout import Layout
from codegen.cython.read import emit_read
from codegen.cython.write import emit_untouched, emit_write
from codegen.emit.code import INDENT
from codegen.emit.fingerprint import fingerprint
from codegen.emit.module import MARK
from codegen.emit.plan import MessagePlan
from codegen.generate import load_schemas
from codegen.packages import PACKAGES, Package

GROUPS = 4
"""The number of extension modules. They are compiled in parallel; shared code is in all of them."""
METHODS = ("decode", "decode_from", "encode", "encode_into")
HEADER = f"{MARK}the schemas, while the wheel is built."
INCLUDES = ("python", "read", "write", "codec")


@dataclass(frozen=True, slots=True)
class Member:
    """A message and the package that it belongs to."""

    package: str
    plan: MessagePlan

    @property
    def module(self) -> str:
        return f"{self.package}.{self.plan.module}"


def render_cython(root: Path, package: Package = PACKAGES[0]) -> dict[str, str]:
    """Return the text of every file by its name, for the committed packages."""
    return render_plans({".".join(package.target.parts): load_schemas(root / package.schemas)})


def render_plans(packages: dict[str, list[MessagePlan]]) -> dict[str, str]:
    """Return the same for the messages of any packages, by the names that those are imported by."""
    members = [
        Member(name, plan)
        for name, plans in packages.items()
        for plan in plans
        if not plan.message.versions.empty
    ]
    groups = _grouped(members)
    files = {f"{_group_name(number)}.pyx": _emit_group(group) for number, group in enumerate(groups)}
    files["index.py"] = _emit_index(groups)
    return files


def write_cython(root: Path, target: Path) -> int:
    """Write all files and return their number."""
    files = render_cython(root)
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    return len(files)


def _group_name(number: int) -> str:
    return f"messages_{number}"


def _grouped(members: list[Member]) -> list[list[Member]]:
    """Return groups of about the same amount of code, the same from run to run."""
    groups: list[list[Member]] = [[] for _ in range(GROUPS)]
    sizes = [0] * GROUPS
    for member in sorted(members, key=_weight, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(member)
        sizes[smallest] += _weight(member)
    return [sorted(group, key=lambda member: member.module) for group in groups]


def _weight(member: Member) -> int:
    return sum(4 + len(struct.fields) for struct in member.plan.structs)


def _emit_index(groups: list[list[Member]]) -> str:
    """Return the index: the fingerprint of each message's plan, and the extension module that holds it."""
    places = {member.module: _group_name(number) for number, group in enumerate(groups) for member in group}
    members = sorted((member for group in groups for member in group), key=lambda member: member.module)
    lines = [HEADER, "", "FINGERPRINTS = {"]
    for package, inside in groupby(members, key=lambda member: member.package):
        lines.append(f"{INDENT}{package!r}: {{")
        lines += [f"{INDENT * 2}{each.plan.module!r}: {fingerprint(each.plan)!r}," for each in inside]
        lines.append(f"{INDENT}}},")
    lines += ["}", "", "EXTENSIONS = {"]
    lines += [f"{INDENT}{module!r}: {name!r}," for module, name in sorted(places.items())]
    return "\n".join([*lines, "}", ""])


def _emit_group(group: list[Member]) -> str:
    blocks = [HEADER, "", *(f'include "{name}.pxi"' for name in INCLUDES)]
    installs = ["", "", "def install(str module):"]
    for number, member in enumerate(group):
        blocks += ["", "", *_emit_message(member.plan)]
        word = "elif" if number else "if"
        installs.append(f"{INDENT}{word} module == {member.module!r}:")
        installs.append(f"{INDENT * 2}return install_{member.plan.module}(module)")
    return "\n".join([*blocks, *installs, ""])


def _emit_message(plan: MessagePlan) -> list[str]:
    layouts = [Layout(plan, struct) for struct in plan.structs]
    fields = [field for struct in plan.structs for field in struct.fields]
    defaults = {field.type.struct for field in fields if field.default == "struct"}
    lines = [f"cdef Shape shape_{each.symbol}" for each in layouts]
    for layout in layouts:
        lines += ["", "", *emit_read(layout), "", "", *emit_write(layout)]
        if layout.struct.name in defaults:
            lines += ["", "", *emit_untouched(layout)]
    return [*lines, "", "", *_emit_install(plan, layouts)]


def _emit_install(plan: MessagePlan, layouts: list[Layout]) -> list[str]:
    name = plan.module
    has_bytes = any(
        field.type.base in ("bytes", "records") for each in layouts for field in each.struct.fields
    )
    lines = [f"cdef Codec codec_{name}"]
    for method in METHODS:
        takes_self = method.startswith("encode")
        arguments = f"&codec_{name}, {'self, ' if takes_self else ''}args, count, names"
        lines += [
            f"cdef PyObject* {method}_{name}("
            "PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names) noexcept:",
            f"{INDENT}return {method}({arguments})",
        ]
    lines += [
        "",
        f"cdef bint install_{name}(str module) except -1:",
        f"{INDENT}if not (",
        f"{INDENT * 2}UUID_FITS",
    ]
    for each in layouts:
        slots = " ".join(each.slots)
        lines.append(f'{INDENT * 2}and is_laid_out(module, "{each.struct.name}", "{slots}")')
    lines += [f"{INDENT}):", f"{INDENT * 2}return False"]
    lines += [f'{INDENT}lay_out(&shape_{each.symbol}, module, "{each.struct.name}")' for each in layouts]
    settings = {
        "lowest_version": plan.message.versions.low,
        "highest_version": plan.message.versions.high,
        "has_bytes": has_bytes,
        "read": f"read_{name}",
        "write": f"write_{name}",
    }
    lines += [f"{INDENT}codec_{name}.{key} = {value}" for key, value in settings.items()]
    methods = ", ".join(f"{method}_{name}" for method in METHODS)
    cls = f'getattr(sys.modules[module], "{plan.message.name}")'
    return [*lines, f"{INDENT}return take_over(&codec_{name}, {cls}, {methods})"]
