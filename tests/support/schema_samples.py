"""Build small schemas, and generate their classes."""

from __future__ import annotations

import json
import os
import pickle
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from codegen.emit.module import emit_module
from codegen.emit.plan import plan
from codegen.schema.check import check
from codegen.schema.kafka_json import parse
from codegen.schema.model import Message

SAMPLES = "samples"
"""The package of the samples' modules, which exists only by name."""
PRIMITIVES = (
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes",
)  # fmt: skip
NULLABLE = ("string", "bytes", "records")


def message(**changes: Any) -> dict[str, Any]:
    """Return a valid schema with some keys replaced; None removes a key."""
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
    """Return a valid field with some keys replaced; None removes a key."""
    node: dict[str, Any] = {"name": "First", "type": "int32", "versions": "0+"}
    node |= changes
    return {key: value for key, value in node.items() if value is not None}


def checked(node: dict[str, Any]) -> None:
    """Parse and check a schema."""
    check(parse(json.dumps(node), "sample"))


def generated(node: dict[str, Any], package: str = SAMPLES) -> ModuleType:
    """Generate and load the module of a schema."""
    parsed = parse(json.dumps(node), "sample")
    check(parsed)
    return module_of(parsed, package)


def module_of(message: Message, package: str = SAMPLES) -> ModuleType:
    """Generate and load the module of a checked message, under a name that is derived from its text.

    A compiled sample has the same name; in another package the samples are Python. If the environment
    variable KRAFT_WIRE_SAMPLES names a folder, the message is stored there to be compiled (compiled/samples).
    """
    text = emit_module(plan(message), "a sample")
    name = f"sample_{sha256(text.encode()).hexdigest()[:16]}"
    if folder := os.environ.get("KRAFT_WIRE_SAMPLES"):
        (Path(folder) / f"{name}.pickle").write_bytes(pickle.dumps(message))
    return _loaded(f"{package}.{name}", text)


@cache
def _loaded(name: str, text: str) -> ModuleType:
    module = ModuleType(name)
    # msgspec looks up annotations in sys.modules.
    sys.modules[name] = module
    exec(text, module.__dict__)
    return module


def tagged(**changes: Any) -> dict[str, Any]:
    """Return a field that is tagged from version 2 on."""
    return field(**({"tag": 0, "versions": "2+", "taggedVersions": "2+"} | changes))


def nested(depth: int) -> dict[str, Any]:
    """Return a field with ``depth`` nested structs, each in nearly as many branches as possible."""
    inner = [field(name="Leaf", type="int8")]
    for number in range(depth):
        late = {"versions": "3", "nullableVersions": "3", "ignorable": True}
        tags = "3+" if number % 2 else "2+"
        inner = [
            field(name="Maybe", versions="2", ignorable=True),
            tagged(
                name="Several",
                type=f"[]Several{number}",
                versions="1+",
                taggedVersions=tags,
                nullableVersions=tags,
                ignorable=True,
                fields=inner,
            ),
            field(name="One", type=f"One{number}", fields=[field()], **late),
        ]
    return inner[1]


def everything() -> dict[str, Any]:
    """Return a message with every type in every position that it can have."""
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


def oddities() -> list[dict[str, Any]]:
    """Return messages with features that Kafka's own schemas use rarely or never."""
    part = [field(name="Inner", type="int8")]
    fields = {
        "Overrides": [
            field(name="A", type="string", flexibleVersions="3+"),
            field(name="B", type="bytes", flexibleVersions="none"),
            field(name="C", type="bytes", flexibleVersions="3+", nullableVersions="1+"),
        ],
        "Floats": [
            tagged(name="A", type="float64", default="NaN", ignorable=True),
            tagged(name="B", type="float64", tag=1, default="Infinity"),
            tagged(name="C", type="float64", tag=2, default="-0.0"),
            tagged(name="P", type="P", tag=3, ignorable=True, fields=[field(type="float64", default="NaN")]),
            field(name="D", type="float64", default="1e3"),
        ],
        "Defaults": [
            tagged(name="A", type="string", tag=0, default="abc", nullableVersions="2+"),
            tagged(name="B", type="bytes", tag=1, nullableVersions="2+"),
            tagged(name="C", type="bytes", tag=2, nullableVersions="2+", default="null"),
            tagged(name="D", type="bool", tag=3, default="true"),
            tagged(name="E", type="uint32", tag=4, default="7"),
            tagged(name="F", type="uuid", tag=5, default="AAAAAAAAAAAAAAAAAAAAAQ"),
            tagged(name="G", type="[]string", tag=6, nullableVersions="2+"),
            tagged(name="H", type="[]P", tag=7, nullableVersions="2+", default="null", fields=part),
            tagged(name="I", type="string", tag=8, nullableVersions="2+", default="null"),
            tagged(name="J", type="uint16", tag=9, default="0xffff"),
            tagged(name="K", type="Q", tag=10, nullableVersions="2+", fields=part),
            tagged(name="L", type="R", tag=11, nullableVersions="2+", default="null", fields=part),
        ],
        "Absent": [
            field(name="A", type="string", versions="2+", nullableVersions="2+", default="x"),
            field(name="B", type="P", versions="2+", fields=part),
            field(name="C", type="[]int8", versions="2+", nullableVersions="2+"),
            field(name="D", type="Q", versions="2+", nullableVersions="2+", default="null", fields=part),
            field(name="E", type="int8", versions="2+", ignorable=True),
            field(name="F", type="int8", versions="7+"),
        ],
        "Nulls": [
            field(name="A", type="string", nullableVersions="1-2"),
            field(name="B", type="P", nullableVersions="2+", fields=part),
            field(name="C", type="records", nullableVersions="1+"),
            field(name="D", type="[]int32", nullableVersions="2"),
            field(name="E", type="bytes", zeroCopy=True, nullableVersions="1+"),
        ],
        "Keys": [
            field(
                name="A",
                type="[]P",
                fields=[field(name="K", type="int8", mapKey=True), field(name="V", type="int8")],
            )
        ],
        "LateTags": [
            tagged(name="A", type="int8", tag=1, versions="3+", taggedVersions="3+"),
            field(name="B", type="int8", tag=0, taggedVersions="3+"),
            field(
                name="C",
                type="P",
                versions="1+",
                tag=2,
                taggedVersions="3+",
                nullableVersions="3+",
                fields=[field(name="X", type="int8"), tagged(name="T", type="string")],
            ),
        ],
    }
    nodes = [message(name=name, type="data", apiKey=None, fields=each) for name, each in fields.items()]
    row = [field(name="S", type="string", nullableVersions="0+"), field(name="U", type="uint32")]
    old = message(name="Old", type="data", apiKey=None, flexibleVersions="none")
    return [*nodes, old | {"fields": [field(name="A", type="[]P", fields=row)]}]
