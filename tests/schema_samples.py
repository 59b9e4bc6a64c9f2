"""Small schemas for tests, and the classes that they become."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

from codegen.check import check
from codegen.emit import emit_module
from codegen.kafka_json import parse
from codegen.model import Message
from codegen.plan import plan


def message(**changes: Any) -> dict[str, Any]:
    """A schema without mistakes, with some keys replaced; None leaves a key out."""
    node: dict[str, Any] = {
        "apiKey": 900,
        "type": "request",
        "name": "SampleRequest",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": [field()],
    }
    node |= changes
    return {key: value for key, value in node.items() if value is not None}


def field(**changes: Any) -> dict[str, Any]:
    """A field without mistakes, with some keys replaced; None leaves a key out."""
    node: dict[str, Any] = {"name": "First", "type": "int32", "versions": "0+"}
    node |= changes
    return {key: value for key, value in node.items() if value is not None}


def checked(node: dict[str, Any]) -> None:
    """Parse and check a schema."""
    check(parse(json.dumps(node), "sample"))


def generated(node: dict[str, Any]) -> ModuleType:
    """The module that a schema becomes."""
    parsed = parse(json.dumps(node), "sample")
    check(parsed)
    return module_of(parsed)


def module_of(message: Message) -> ModuleType:
    """The module that a checked message becomes, loaded under a name of its own."""
    module = ModuleType(f"generated_{message.name}")
    # msgspec resolves annotations through sys.modules.
    sys.modules[module.__name__] = module
    exec(emit_module(plan(message), "a sample"), module.__dict__)
    return module
