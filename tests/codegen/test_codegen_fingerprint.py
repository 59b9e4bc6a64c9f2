"""A compiled codec is used only while its message's plan is the one that it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.fingerprint import CHARACTERS, fingerprint
from codegen.emit.plan import plan
from codegen.schema.kafka_json import parse

SCHEMA = Path(__file__).parents[2] / "schemas" / "kafka" / "4.4.0" / "BrokerHeartbeatRequest.json"


def fingerprint_of(schema: dict[str, Any]) -> str:
    return fingerprint(plan(parse(json.dumps(schema), "BrokerHeartbeatRequest.json")))


def read_schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return loaded


def test_a_fingerprint_does_not_change_from_run_to_run() -> None:
    assert fingerprint_of(read_schema()) == fingerprint_of(read_schema())
    assert len(fingerprint_of(read_schema())) == CHARACTERS


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("validVersions",), "0-1"),
        (("flexibleVersions",), "1+"),
        (("fields", 0, "name"), "Broker"),
        (("fields", 0, "type"), "int64"),
        (("fields", 0, "default"), "1"),
        (("fields", 0, "versions"), "1+"),
        (("fields", 0, "ignorable"), True),
        (("fields", 5, "tag"), 7),
        (("fields", 6, "nullableVersions"), None),
    ],
    ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else "",
)
def test_a_fingerprint_changes_with_whatever_changes_bytes_or_classes(
    place: tuple[str | int, ...], value: object
) -> None:
    schema = read_schema()
    holder: Any = schema
    for step in place[:-1]:
        holder = holder[step]
    if value is None:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    assert fingerprint_of(schema) != fingerprint_of(read_schema())


def test_every_generated_message_with_a_version_names_its_fingerprint() -> None:
    messages = Path(__file__).parents[2] / "kraft_wire" / "protocol" / "messages"
    named = (messages / "broker_heartbeat_request.py").read_text(encoding="utf-8")
    assert f"use_compiled(BrokerHeartbeatRequest, '{fingerprint_of(read_schema())}')" in named
