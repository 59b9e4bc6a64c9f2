"""Three views of a change agree: the rules of ``codegen diff``, the layout of the bytes, and the bytes.

Kafka's own schemas are changed at random. After a change that the rules allow, both sides must read every
value.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from codegen.__main__ import ROOT
from codegen.diff import MessageDiff, compare
from codegen.diff.wire import layout, same_bytes
from codegen.packages import NEWEST_KAFKA, SCHEMAS
from codegen.schema.check import check
from codegen.schema.errors import SchemaError
from codegen.schema.kafka_json import parse
from codegen.schema.model import Message
from tests.support.random_messages import random_message
from tests.support.schema_samples import field, generated, message

Node = dict[str, Any]
NODES = [json.loads(path.read_text()) for path in sorted((ROOT / SCHEMAS / NEWEST_KAFKA).glob("*.json"))]
LIVE = [
    node | {"latestVersionUnstable": False}
    for node in NODES
    if node["validVersions"] != "none" and node.get("fields")
]
"""Every version counts as released."""


def structs(node: Node) -> Iterator[list[Node]]:
    """Return every list of fields in a schema."""
    for key in ("fields", "commonStructs"):
        for each in node.get(key, []):
            yield from structs(each)
    if node.get("fields"):
        yield node["fields"]


def versions(random: Random) -> str:
    low = random.randrange(6)
    return random.choice((f"{low}+", f"{low}+", f"{low}-{low + random.randrange(3)}", str(low)))


def retype(random: Random, fields: list[Node], at: int) -> None:
    if "fields" not in fields[at]:
        fields[at]["type"] = random.choice(
            ("int16", "int32", "string", "bytes", "records", "[]int32", "uuid")
        )


def move(random: Random, fields: list[Node], at: int) -> None:
    fields.insert(random.randrange(len(fields)), fields.pop(at))


def remove(random: Random, fields: list[Node], at: int) -> None:
    if len(fields) > 1:
        del fields[at]


def add(random: Random, fields: list[Node], at: int) -> None:
    fields.insert(at, field(name="Fresh", type=random.choice(("int32", "string")), versions=versions(random)))


def add_tagged(random: Random, fields: list[Node], at: int) -> None:
    tag = sum("tag" in each for each in fields)
    spread = random.choice(("0+", "1+", "4+", "12+"))
    fields.insert(at, field(name="Fresh", type="string", versions=spread, tag=tag, taggedVersions=spread))


def rename(random: Random, fields: list[Node], at: int) -> None:
    fields[at]["name"] = "Renamed"


def box(random: Random, fields: list[Node], at: int) -> None:
    kind = fields[at]["type"]
    if kind.startswith("[]") and "fields" not in fields[at]:
        fields[at] |= {"type": "[]Box", "fields": [field(name="Boxed", type=kind[2:], versions="0+")]}


def set_key(key: str, values: Callable[[Random], object]) -> Callable[[Random, list[Node], int], None]:
    def change(random: Random, fields: list[Node], at: int) -> None:
        fields[at][key] = values(random)

    return change


MUTATIONS = (
    retype, move, remove, add, add_tagged, rename, box,
    set_key("versions", versions), set_key("nullableVersions", versions),
    set_key("tag", lambda random: random.randrange(3)), set_key("taggedVersions", versions),
    set_key("default", lambda random: random.choice(("0", "1", "null", "a", "-1"))),
)  # fmt: skip


def change_of_message(random: Random, node: Node) -> None:
    key = random.choice(("flexibleVersions", "validVersions"))
    node[key] = random.choice(
        ("none", "0+", "1+", "3+") if key == "flexibleVersions" else ("0-1", "0-9", "2-3")
    )


def mutated(random: Random) -> tuple[Node, Node]:
    """Return one of Kafka's schemas before and after one to three changes that keep it valid."""
    while True:
        old = random.choice(LIVE)
        new = copy.deepcopy(old)
        for _ in range(random.randrange(1, 4)):
            if random.random() < 0.1:
                change_of_message(random, new)
                continue
            fields = random.choice(list(structs(new)))
            random.choice(MUTATIONS)(random, fields, random.randrange(len(fields)))
        try:
            checked(new)
        except SchemaError:
            continue
        return old, new


def checked(node: Node) -> Message:
    parsed = parse(json.dumps(node), node["name"])
    check(parsed)
    return parsed


def difference(old: Node, new: Node) -> MessageDiff | None:
    found = compare([checked(old)], [checked(new)]).messages
    return found[0] if found else None


@pytest.mark.parametrize("seed", range(20))
def test_the_rules_explain_every_difference_of_the_bytes(seed: int) -> None:
    random = Random(f"rules {seed}")
    for _ in range(30):
        old, new = mutated(random)
        found = difference(old, new)
        if found is None:
            continue
        explained = {version for change in found.changes for version in change.versions}
        if all(change.rule != "tag-reused" for change in found.changes):
            assert set(found.different_bytes) <= explained, (old, new)
        assert all(change.rule != "bytes-changed" for change in found.changes), (old, new)


@pytest.mark.parametrize("seed", range(20))
def test_after_a_compatible_change_each_side_reads_the_other(seed: int) -> None:
    """Old values survive a passage through new code, and new values one through old code."""
    random = Random(f"bytes {seed}")
    passed = 0
    while passed < 3:
        old, new = mutated(random)
        found = difference(old, new)
        if found is None or not found.compatible or not found.changes:
            continue
        classes = [getattr(generated(node), node["name"]) for node in (old, new)]
        for version in checked(old).versions.intersect(checked(new).versions):
            for ours, theirs in (classes, classes[::-1]):
                for _ in range(5):
                    value = random_message(random, ours, version, unknown_tags=False)
                    there = theirs.decode(value.encode(version), version)
                    assert ours.decode(there.encode(version), version) == value, (old, new, version)
        passed += 1


class TestLayout:
    def at(self, version: int, **changes: Any) -> Any:
        return layout(checked(message(**changes)), version)

    def test_names_don_t_count(self) -> None:
        assert same_bytes(self.at(3), self.at(3, name="OtherRequest", fields=[field(name="Other")]))

    def test_a_struct_is_its_fields_where_there_are_no_tags(self) -> None:
        two = [field(name="A"), field(name="B")]
        inner = [field(type="Part", fields=two)]
        assert same_bytes(self.at(1, fields=two), self.at(1, fields=inner))
        assert not same_bytes(self.at(2, fields=two), self.at(2, fields=inner))

    def test_lengths_are_compact_in_flexible_versions(self) -> None:
        for kind in ("string", "bytes", "[]int8"):
            one = [field(type=kind)]
            assert not same_bytes(
                self.at(1, fields=one), self.at(1, fields=one, flexibleVersions="1+")[:-1]
            ), kind

    def test_signs_count(self) -> None:
        assert not same_bytes(
            self.at(1, fields=[field(type="int16")]), self.at(1, fields=[field(type="uint16")])
        )
