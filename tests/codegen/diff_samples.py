"""Pairs of small schemas, and the changes between them."""

from __future__ import annotations

import json
from typing import Any

from codegen.diff import Diff, compare
from codegen.diff.change import Change
from codegen.schema.check import check
from codegen.schema.kafka_json import parse
from codegen.schema.model import Message
from tests.support.schema_samples import field, message

# The sample has versions 0-3 and is flexible from 2 on.
PART = [field(name="Number"), field(name="Text", type="string")]


def sample(**changes: Any) -> Message:
    parsed = parse(json.dumps(message(**changes)), "sample")
    check(parsed)
    return parsed


def tagged(**changes: Any) -> dict[str, Any]:
    return field(**({"name": "Extra", "versions": "2+", "tag": 0, "taggedVersions": "2+"} | changes))


def struct(**changes: Any) -> dict[str, Any]:
    return field(**({"type": "Part", "fields": PART} | changes))


def diff(old: dict[str, Any], new: dict[str, Any]) -> Diff:
    return compare([sample(**old)], [sample(**new)])


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    return [change for each in diff(old, new).messages for change in each.changes]


def changes_of(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Return every change's rule, path and verdict."""
    return [(change.rule, change.path, change.compatible) for change in changes(old, new)]


def fields(*each: dict[str, Any]) -> dict[str, Any]:
    return {"fields": list(each)}
