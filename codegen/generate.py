"""Generate a package of messages and its index, or compare it with the existing one."""

from __future__ import annotations

import json
import keyword
import sys
from pathlib import Path

from codegen.emit.index import emit_index
from codegen.emit.module import MARK, emit_module
from codegen.emit.plan import MessagePlan, plan
from codegen.importer import MANIFEST
from codegen.schema.errors import SchemaError, TargetFailed, TargetRefused
from codegen.schema.sources import read_schemas


def load_schemas(folder: Path) -> list[MessagePlan]:
    """Parse, check and plan every schema of a folder, in the order of their names. Raises SchemaError."""
    return [plan(each.message) for each in read_schemas(folder)]


def artifacts_of(folder: Path) -> dict[str, str] | None:
    """Return the artifact that published each schema, from the folder's MANIFEST; None if it has none."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        return {name: jar["artifact"] for jar in manifest["jars"] for name in jar["schemas"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SchemaError(str(path), f"is not a manifest of `codegen import`: {error!r}") from error


def render(folder: Path, source: str) -> dict[str, str]:
    """Return the text of every generated file by its name. ``source`` names the folder in their headers.

    Raises SchemaError.
    """
    sources = read_schemas(folder)
    plans = [plan(each.message) for each in sources]
    files = {}
    for origin, each in zip(sources, plans, strict=True):
        text = emit_module(each, f"{source}/{origin.file}")
        _insist_on_python(text, origin.file)
        files[f"{each.module}.py"] = text
    files["__init__.py"] = emit_index(plans, artifacts_of(folder), source)
    return files


def _insist_on_python(text: str, schema: str) -> None:
    """Check that the emitted text compiles. If it doesn't, raise SchemaError with the schema's file, and
    write nothing."""
    try:
        compile(text, schema, "exec", dont_inherit=True)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise SchemaError(schema, f"becomes Python that does not compile: {error}") from error


def differences(files: dict[str, str], target: Path) -> list[str]:
    """Return the names of files that are missing from ``target``, differ, or should not be there."""
    present = {path.name: path.read_text(encoding="utf-8") for path in target.glob("*.py")}
    return sorted(name for name in files.keys() | present.keys() if files.get(name) != present.get(name))


def write(files: dict[str, str], target: Path) -> list[str]:
    """Make ``target`` hold exactly ``files``, and return the names of those that changed.

    Raises TargetRefused, before any change, if that would overwrite or delete files that were not generated,
    or if the folder could not be imported. Raises TargetFailed if it can't be written.
    """
    try:
        changed = differences(files, target)
        _refuse_foreign(target, changed)
        target.mkdir(parents=True, exist_ok=True)
        for name in changed:
            if name in files:
                (target / name).write_text(files[name], encoding="utf-8")
            else:
                (target / name).unlink()
    except OSError as error:
        raise TargetFailed(target, error) from error
    return changed


def _refuse_foreign(target: Path, changed: list[str]) -> None:
    if not target.name.isidentifier() or keyword.iskeyword(target.name):
        raise TargetRefused(target, "its name is not a valid name of a Python package")
    if target.name in sys.stdlib_module_names:
        raise TargetRefused(target, f"it would hide {target.name}, a module of Python's standard library")
    if not target.exists():
        return
    if not target.is_dir():
        raise TargetRefused(target, "it is not a folder")
    if not _is_generated(target / "__init__.py") and any(
        path.name != "__pycache__" for path in target.iterdir()
    ):
        raise TargetRefused(target, "it is neither empty nor a package that `codegen generate` made")
    for name in changed:
        if (target / name).exists() and not _is_generated(target / name):
            raise TargetRefused(target, f"{name} is in it, which `codegen generate` did not make")


def _is_generated(path: Path) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8").startswith(MARK)
