"""``codegen diff`` agrees with Kafka's checker of metadata schemas, but for known differences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codegen.diff import compare
from codegen.schema.check import check
from codegen.schema.kafka_json import parse
from compat.judges.schema import verdicts
from tests.support.schema_samples import field, message, tagged

Schema = dict[str, Any]

# The sample is a record with versions 0-3, flexible from 2 on.
SAMPLE = {"type": "metadata", "name": "SampleRecord"}
NUMBER = field(name="Number")
NEXT = {"validVersions": "0-4"}
RIGID = {"flexibleVersions": "none"}


def of(*fields: Schema, **others: Any) -> Schema:
    return {"fields": list(fields), **others}


def struct(kind: str, *inside: Schema) -> Schema:
    return field(type=kind, fields=list(inside or (NUMBER,)))


ALLOWED: list[tuple[str, Schema, Schema]] = [
    ("nothing", {}, {}),
    ("a version", {}, NEXT),
    ("a field of a new version", {}, of(field(), field(name="More", versions="4+"), **NEXT)),
    ("a field goes in a new version", of(field(), NUMBER), of(field(), NUMBER | {"versions": "0-3"}, **NEXT)),
    ("a tag of a new version", {},
     of(field(), tagged(name="More", versions="4+", taggedVersions="4+"), **NEXT)),
    ("a tag for a field in a new version", {}, of(field(tag=0, taggedVersions="4+"), **NEXT)),
    ("a tag goes", of(field(), tagged(name="More")), {}),
    ("a field of a struct in a new version", of(struct("Part")),
     of(struct("Part", NUMBER, field(name="More", versions="4+")), **NEXT)),
    ("a new version is flexible", RIGID, {"flexibleVersions": "4+"}),
    ("another name of a field", {}, of(field(name="Second"))),
    ("another name of a tag", of(field(), tagged(name="A")), of(field(), tagged(name="B"))),
    ("ignorable", {}, of(field(ignorable=True))),
    ("zeroCopy", of(field(type="bytes")), of(field(type="bytes", zeroCopy=True))),
    ("entityType", of(field(type="string")), of(field(type="string", entityType="groupId"))),
    ("deprecated", {}, {"deprecatedVersions": "0-1"}),
]  # fmt: skip
FORBIDDEN: list[tuple[str, Schema, Schema]] = [
    ("another key", {}, {"apiKey": 901}),
    ("a version goes", {}, {"validVersions": "0-2"}),
    ("a lower version", {"validVersions": "1-3"}, {}),
    ("no longer flexible", {}, RIGID),
    ("another number", {}, of(field(type="int64"))),
    ("another number of the same size", {}, of(field(type="uint32"))),
    ("text to bytes", of(field(type="string")), of(field(type="bytes"))),
    ("one to many", of(field(type="string")), of(field(type="[]string"))),
    ("bytes to records, which are null by default", of(field(type="bytes")), of(field(type="records"))),
    ("records to bytes", of(field(type="records")), of(field(type="bytes"))),
    ("a field of released versions", {}, of(field(), field(name="More", versions="2+"))),
    ("a field of a struct", of(struct("Part")), of(struct("Part", NUMBER, field(name="More")))),
    ("another order of unlike fields", of(field(), field(name="More", type="int64")),
     of(field(name="More", type="int64"), field())),
    ("another default", of(field(default="1")), of(field(default="2"))),
    ("nullable", of(field(type="string")), of(field(type="string", nullableVersions="2+"))),
    ("an override of flexible", of(field(type="string")), of(field(type="string", flexibleVersions="3+"))),
]  # fmt: skip
OURS_ALLOWS: list[tuple[str, Schema, Schema]] = [
    # On the wire all released versions stay the same.
    ("an array of structs of one number", of(struct("[]Part"), **RIGID), of(field(type="[]int32"), **RIGID)),
    ("a struct of one number", of(struct("Part"), **RIGID), of(field(type="int32"), **RIGID)),
    ("bytes to records with the same default", of(field(type="bytes", nullableVersions="0+", default="null")),
     of(field(type="records", nullableVersions="0+"))),
    # Readers keep unknown tags, so adding a tagged field is compatible.
    ("a tag of released versions", {}, of(field(), tagged(name="More"))),
    ("a tag in front", {}, of(tagged(name="More"), field())),
    ("a tag in a struct", of(struct("Part")), of(struct("Part", NUMBER, tagged(name="More")))),
    # Names of fields, structs and messages are not on the wire. The checker allows only other field names.
    ("another name of a struct", of(struct("Part")), of(struct("Other"))),
    ("another name of an array's struct", of(struct("[]Part")), of(struct("[]Other"))),
    ("another name of the message", {}, {"name": "OtherRecord"}),
    ("a struct becomes a common one", of(struct("Part")),
     of(field(type="Part"), commonStructs=[{"name": "Part", "versions": "0+", "fields": [NUMBER]}])),
    # The same default in another notation.
    ("a hexadecimal default", of(field(default="0x1")), of(field(default="1"))),
    ("a default of zero", of(field(default="0")), {}),
    ("a default of True", of(field(type="bool", default="True")), of(field(type="bool", default="true"))),
    # A new version may have any fields.
    ("nullable in a new version", of(field(type="string")),
     of(field(type="string", nullableVersions="4+"), **NEXT)),
]  # fmt: skip
"""The checker refuses these."""
OURS_FORBIDS: list[tuple[str, Schema, Schema]] = [
    # The notes beside Kafka's schemas allow these only with a KIP, or never.
    ("the lowest version goes", {}, {"validVersions": "1-3"}),
    ("a field goes", of(field(), NUMBER), {}),
    ("another order of like fields", of(field(), NUMBER), of(NUMBER, field())),
    ("tags are swapped", of(field(), tagged(name="A"), tagged(name="B", tag=1)),
     of(field(), tagged(name="A", tag=1), tagged(name="B"))),
    ("a tag for a field in released versions", {}, of(field(tag=0, taggedVersions="2+"))),
    ("no longer nullable", of(field(type="string", nullableVersions="0+")), of(field(type="string"))),
    ("released versions become flexible", {}, {"flexibleVersions": "1+"}),
]  # fmt: skip
"""The checker lets these pass."""


def ours(old: Schema, new: Schema) -> str:
    messages = [parse(json.dumps(each), "sample") for each in (old, new)]
    for each in messages:
        check(each)
    return "accepted" if compare(messages[:1], messages[1:]).compatible else "refused"


@pytest.mark.parametrize(
    ("table", "our_verdict", "their_verdict"),
    [
        (ALLOWED, "accepted", "accepted"),
        (FORBIDDEN, "refused", "refused"),
        (OURS_ALLOWS, "accepted", "refused"),
        (OURS_FORBIDS, "refused", "accepted"),
    ],
    ids=["allowed", "forbidden", "ours allows", "ours forbids"],
)
def test_changes(table: list[tuple[str, Schema, Schema]], our_verdict: str, their_verdict: str) -> None:
    pairs = [[message(**SAMPLE | old), message(**SAMPLE | new)] for _, old, new in table]
    found = [(name, ours(*pair)) for (name, _, _), pair in zip(table, pairs, strict=True)]
    assert found == [(name, our_verdict) for name, _, _ in table]
    told = [verdict.split()[0] for verdict in verdicts(pairs)]
    assert list(zip((name for name, _, _ in table), told, strict=True)) == [
        (name, their_verdict) for name, _, _ in table
    ]
