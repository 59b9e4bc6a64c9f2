"""Generate the package of messages and its index, or compare them with what is there."""

from __future__ import annotations

import json
from pathlib import Path

from codegen.check import check
from codegen.emit import emit_module
from codegen.errors import SchemaError
from codegen.importer import MANIFEST
from codegen.index import emit_index
from codegen.kafka_json import parse
from codegen.plan import MessagePlan, plan


def load_schemas(folder: Path) -> list[MessagePlan]:
    """Parse, check and plan every schema of a folder, in the order of their names. Raises SchemaError."""
    plans = []
    for path in sorted(folder.glob("*.json")):
        message = parse(path.read_text(encoding="utf-8"), path.name)
        check(message)
        if message.name != path.stem:
            raise SchemaError(path.name, f"holds message {message.name}")
        plans.append(plan(message))
    if not plans:
        raise SchemaError(str(folder), "there is no schema; import one first")
    return plans


def artifacts_of(folder: Path) -> dict[str, str]:
    """The artifact that published each schema, from the folder's MANIFEST."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return {name: jar["artifact"] for jar in manifest["jars"] for name in jar["schemas"]}


def render(folder: Path, source: str) -> dict[str, str]:
    """The text of every generated file by its name; ``source`` names the folder in their headers."""
    plans = load_schemas(folder)
    files = {f"{each.module}.py": emit_module(each, f"{source}/{each.message.name}.json") for each in plans}
    files["__init__.py"] = emit_index(plans, artifacts_of(folder), source)
    return files


def differences(files: dict[str, str], target: Path) -> list[str]:
    """The names of files that are missing from ``target``, differ, or should not be there."""
    present = {path.name: path.read_text(encoding="utf-8") for path in target.glob("*.py")}
    return sorted(name for name in files.keys() | present.keys() if files.get(name) != present.get(name))


def write(files: dict[str, str], target: Path) -> list[str]:
    """Make ``target`` hold exactly ``files``; returns the names of those that changed."""
    changed = differences(files, target)
    target.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in files:
            (target / name).write_text(files[name], encoding="utf-8")
        else:
            (target / name).unlink()
    return changed
