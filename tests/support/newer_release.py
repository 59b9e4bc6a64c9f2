"""Make a newer release of kraft-wire: a copy that knows one more metadata record, and writes it when idle."""

from __future__ import annotations

import shutil
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "kraft_wire"
RECORD_KEY = 99


def newer_release(folder: Path) -> Path:
    """Copy the package into a folder and change it. Returns the folder for PYTHONPATH."""
    copy = folder / "newer"
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    messages = copy / PACKAGE.name / "protocol" / "messages"
    _change(
        messages / "no_op_record.py",
        ("NoOpRecord", "IdleRecord"),
        ("API_KEY: ClassVar[int] = 20", f"API_KEY: ClassVar[int] = {RECORD_KEY}"),
        ("\nuse_compiled(", "\n# use_compiled("),
        to=messages / "idle_record.py",
    )
    _append(
        messages / "__init__.py",
        f"METADATA_RECORDS[{RECORD_KEY}] = 'IdleRecord'\nMODULES['IdleRecord'] = 'idle_record'\n",
    )
    row, line = "            (NoOpRecord, _ignore),\n", "no_op_record import NoOpRecord\n"
    imported = "from kraft_wire.protocol.messages.idle_record import IdleRecord\n"
    _change(
        copy / PACKAGE.name / "metadata" / "state.py",
        (row, row + row.replace("NoOpRecord", "IdleRecord")),
        (line, line + imported),
    )
    _change(
        copy / PACKAGE.name / "controller" / "node" / "activation.py",
        ("NoOpRecord", "IdleRecord"),
        ("no_op_record import", "idle_record import"),
    )
    return copy


def _change(file: Path, *replacements: tuple[str, str], to: Path | None = None) -> None:
    text = file.read_text()
    for old, new in replacements:
        assert old in text, f"{file}: {old!r} is not there any more"
        text = text.replace(old, new)
    (to or file).write_text(text)


def _append(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)
