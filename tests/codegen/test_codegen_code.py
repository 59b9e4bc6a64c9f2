"""Generated code for features that Kafka's own schemas lack: every type, nullable tags, overrides, odd
defaults."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from codegen.emit.index import emit_index
from codegen.emit.module import emit_module
from codegen.emit.plan import plan
from codegen.schema.errors import SchemaError
from codegen.schema.kafka_json import parse
from kraft_wire.protocol.errors import EncodeError, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully
from kraft_wire.protocol.uuid import Uuid
from tests.support.random_messages import random_message
from tests.support.schema_samples import everything, field, generated, message

EVERYTHING = generated(everything()).EverythingRequest


@pytest.mark.parametrize("version", range(5))
def test_everything_is_written_and_read(version: int) -> None:
    random = Random(version)
    for _ in range(40):
        value = random_message(random, EVERYTHING, version)
        raw = value.encode(version)
        assert EVERYTHING.decode(raw, version) == value
        assert EVERYTHING.decode_from(b"-" + raw, version, 1) == (value, len(raw) + 1)
        out: list[bytes] = []
        encode_message_carefully(value, out, version)
        assert b"".join(out) == raw
        assert decode_message_carefully(EVERYTHING, raw, version, 0) == (value, len(raw))
        assert EVERYTHING.from_json(value.to_json(version), version).to_json(version) == value.to_json(
            version
        )


@pytest.mark.parametrize("version", range(5))
def test_everything_damaged_is_judged_alike(version: int) -> None:
    random = Random(version)
    for _ in range(20):
        raw = bytearray(random_message(random, EVERYTHING, version).encode(version))
        for _ in range(10):
            damaged = raw[: random.randrange(len(raw))] if random.random() < 0.3 else raw.copy()
            if damaged:
                damaged[random.randrange(len(damaged))] = random.choice((0, 1, 127, 128, 255))
            answers = []
            for decode in (EVERYTHING.decode_from, lambda *rest: decode_message_carefully(EVERYTHING, *rest)):
                try:
                    answers.append(repr(decode(bytes(damaged), version, 0)))
                except ProtocolError as error:
                    answers.append(repr(error))
            assert answers[0] == answers[1]


MEMBERS = [name for name in dir(Message) if not name.startswith("_")]


@pytest.mark.parametrize("member", [*MEMBERS, "unknown_tagged_fields", "msgspec", "float", "staticmethod"])
def test_a_field_called_like_what_every_message_has(member: str) -> None:
    kafka = "".join(word.capitalize() for word in member.split("_"))
    fields = [
        field(name=kafka, type="int8"),
        field(name="number", type="float64", default="NaN"),
        field(name="part", type="Part", fields=[field(name=kafka, type="string")]),
    ]
    cls = generated(message(fields=fields)).SampleRequest
    name = next(each for each in cls.__struct_fields__ if each.startswith(member.lower()))
    value = cls(**{name: 5}, number=1.0)
    assert cls.decode(value.encode(1), 1) == value
    shown = value.to_json(1)
    assert shown[kafka[0].lower() + kafka[1:]] == 5
    assert cls.from_json(shown, 1) == value
    assert hasattr(cls, "unknown_tagged_fields")


class TestDefaults:
    def test_they_are_the_schema_s(self) -> None:
        fields = [
            field(name="Hex", default="0x7fffffff"),
            field(name="Minus", type="int64", default="-2"),
            field(name="Yes", type="bool", default="True"),
            field(name="Pi", type="float64", default="3.25"),
            field(name="Id", type="uuid", default="AAAAAAAAAAAAAAAAAAAAAQ"),
            field(name="Word", type="string", default='it\'s "so"'),
            field(name="Nothing", type="string", default="null", nullableVersions="0+"),
            field(name="Raw", type="bytes"),
            field(name="Log", type="records"),
            field(name="Part", type="Inner", fields=[field(default="5")]),
            field(name="NoPart", type="Inner2", fields=[field()], nullableVersions="0+", default="null"),
        ]
        module = generated(message(name="DefaultsRequest", fields=fields))
        value = module.DefaultsRequest()
        assert value == module.DefaultsRequest(
            2**31 - 1, -2, True, 3.25, Uuid.ONE, 'it\'s "so"', None, b"", None, module.Inner(5), None
        )
        assert module.DefaultsRequest(log=b"").encode(3)
        with pytest.raises(EncodeError, match=r"DefaultsRequest\.log: is None"):
            value.encode(3)

    def test_instances_share_nothing(self) -> None:
        module = generated(message(fields=[field(type="[]Part", fields=[field()])]))
        module.SampleRequest().first.append(module.Part())
        assert module.SampleRequest().first == []


class TestVersions:
    def test_fields_come_and_go(self) -> None:
        fields = [
            field(name="Early", type="int8", versions="0-1"),
            field(name="Middle", type="int8", versions="1-2", default="7", ignorable=True),
            field(name="Late", type="int8", versions="3"),
        ]
        cls = generated(message(fields=fields, flexibleVersions="none")).SampleRequest
        assert [cls().encode(version) for version in range(4)] == [b"\0", b"\0\7", b"\7", b"\0"]
        assert cls(middle=9).encode(0) == b"\0"
        with pytest.raises(UnsupportedVersion, match=r"SampleRequest\.early version 2"):
            cls(early=1).encode(2)
        with pytest.raises(UnsupportedVersion, match=r"SampleRequest\.late version 2"):
            cls(late=1).encode(2)


class TestCoordinatorIndex:
    @staticmethod
    def index(*samples: dict[str, Any]) -> str:
        plans = [plan(parse(json.dumps(each), "sample")) for each in samples]
        return emit_index(plans, {each["name"]: "kafka-group-coordinator" for each in samples}, "samples")

    def test_keys_and_values_are_paired(self) -> None:
        key = message(name="PokeKey", type="coordinator-key", apiKey=3)
        value = message(name="PokeValue", type="coordinator-value", apiKey=3)
        assert "    'group': {3: ('PokeKey', 'PokeValue')},\n" in self.index(key, value)

    def test_one_without_the_other_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="PokeKey: coordinator record 3 has a key or a value only"):
            self.index(message(name="PokeKey", type="coordinator-key", apiKey=3))


def test_documentation_says_what_the_schema_says() -> None:
    fields = [
        field(name="WaitTimeoutMs", versions="1+"),
        field(name="MaxBytes", type="int64", tag=0, taggedVersions="2+", versions="2+", ignorable=True),
        field(name="Names", type="[]string", nullableVersions="3+"),
    ]
    node = message(fields=fields)
    text = emit_module(plan(parse(json.dumps(node), "sample")), "schemas/sample.json")
    assert text.startswith(
        "# Generated by `python -m codegen generate` from schemas/sample.json; do not edit.\n"
    )
    assert '"""SampleRequest: request, API key 900, versions 0 to 3, flexible from 2."""' in text
    assert '"""int32, in milliseconds, versions 1 to 3."""' in text
    assert '"""int64, in bytes, versions 2 to 3, tag 0, ignored where absent."""' in text
    assert '"""[]string, versions 0 to 3, nullable at 3."""' in text
