"""The sizes that keep the tree readable: modules in a folder, lines of a module, lines of a function."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_MODULES_IN_A_FOLDER = 20
MAX_MODULE_LINES = 450
MAX_FUNCTION_LINES = 60
GENERATED = (
    ROOT / "kraft_wire" / "protocol" / "messages",
    ROOT / "kraft_wire" / "protocol" / "own_messages",
    ROOT / "kraft_wire" / "raft" / "membership" / "kip_853",
    ROOT / "kraft_wire" / "configs" / "tables.py",
)


def _modules() -> list[Path]:
    found = [path for package in ("kraft_wire", "codegen") for path in (ROOT / package).rglob("*.py")]
    return sorted(path for path in found if not any(path.is_relative_to(made) for made in GENERATED))


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    counts: dict[Path, int] = {}
    for path in _modules():
        if path.name != "__init__.py":
            counts[path.parent] = counts.get(path.parent, 0) + 1
    assert counts
    assert {str(folder): count for folder, count in counts.items() if count > MAX_MODULES_IN_A_FOLDER} == {}


def test_no_module_is_too_long() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in _modules()}
    assert {name: length for name, length in lengths.items() if length > MAX_MODULE_LINES} == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in _modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    }
    assert long == {}
