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

PRIMITIVES = (
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes",
)  # fmt: skip
NULLABLE = ("string", "bytes", "records")


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


def tagged(**changes: Any) -> dict[str, Any]:
    """A field that is tagged from version 2 on."""
    return field(**({"tag": 0, "versions": "2+", "taggedVersions": "2+"} | changes))


def everything() -> dict[str, Any]:
    """A message with every type in every place that it can have."""
    fields = [field(name=f"Plain{kind.title()}", type=kind) for kind in (*PRIMITIVES, "records")]
    fields += [field(name=f"Many{kind.title()}", type=f"[]{kind}") for kind in PRIMITIVES]
    fields += [
        field(name=f"Late{kind.title()}", type=kind, versions="1-2", ignorable=True) for kind in PRIMITIVES
    ]
    fields += [field(name=f"None{kind.title()}", type=kind, nullableVersions="1+") for kind in NULLABLE]
    fields += [
        field(name=f"NoMany{kind.title()}", type=f"[]{kind}", nullableVersions="0-2") for kind in PRIMITIVES
    ]
    part = [field(name="Number"), field(name="Text", type="string", versions="1+", ignorable=True)]
    fields += [
        field(name="One", type="Part", fields=part),
        field(name="Maybe", type="MaybePart", nullableVersions="1+", fields=part),
        field(name="Several", type="[]SeveralPart", nullableVersions="0+", default="null", fields=part),
    ]
    fields += [
        field(
            name=f"Tagged{kind.title()}",
            type=kind,
            versions="2+",
            tag=tag,
            taggedVersions="2+",
            ignorable=True,
        )
        for tag, kind in enumerate(PRIMITIVES)
    ]
    count = len(PRIMITIVES)
    fields += [
        tagged(name="TagMany", type="[]int16", tag=count, nullableVersions="2+"),
        tagged(name="TagOne", type="TagPart", tag=count + 1, taggedVersions="3+", fields=part),
        tagged(name="TagMaybe", type="TagMaybePart", tag=count + 2, nullableVersions="2+", fields=part),
        tagged(
            name="TagNone",
            type="TagNonePart",
            tag=count + 3,
            nullableVersions="2+",
            default="null",
            fields=part,
        ),
    ]
    return message(name="EverythingRequest", validVersions="0-4", fields=fields)
