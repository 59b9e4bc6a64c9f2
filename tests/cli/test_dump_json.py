"""The JSON printer against ``to_json``, which it stands in for: every record type at every version."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from kraft_wire.cli.dump.java_json import message_json, metadata_json
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.registry import METADATA_RECORD_KEYS, metadata_record_class
from kraft_wire.protocol.schema import Field, Structure
from kraft_wire.protocol.uuid import Uuid
from tests.support.random_messages import all_messages, random_message
from tests.support.schema_samples import field, generated, message

CONTROL_RECORDS: tuple[type[Message], ...] = (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
CLASSES = (*map(metadata_record_class, METADATA_RECORD_KEYS), *CONTROL_RECORDS)
TEXTS = ("", "plain", 'quote"back\\slash', "line\nfeed\x00\x1f\x7f", "é\N{SLIGHTLY SMILING FACE}")
BITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}


def filled(cls: type[Structure], version: int, random: Random) -> Structure:
    """A structure with random members where the version has them; now and then a default one."""
    values = {
        field.name: member(field, version, random)
        for field in cls.FIELDS
        if field.is_present(version) and random.random() < 0.8
    }
    return cls(**values)


def member(field: Field, version: int, random: Random) -> Any:
    if field.is_nullable(version) and random.random() < 0.3:
        return None
    if field.array:
        elements = [element(field, version, random) for _ in range(random.randrange(4))]
        return elements if field.struct is not None else tuple(elements)
    return element(field, version, random)


def element(field: Field, version: int, random: Random) -> Any:
    if field.struct is not None:
        return filled(field.struct, version, random)
    match field.kind:
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.choice([0.0, -1.5, 1e7, 1e-4, 123456.789, 1e300])
        case "uuid":
            return Uuid(random.randbytes(16))
        case "string":
            return random.choice(TEXTS)
        case "bytes":
            return random.randbytes(random.randrange(5))
        case integer:
            return random.getrandbits(BITS[integer])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.NAME)
def test_the_printer_says_what_to_json_says(cls: type[Message]) -> None:
    random = Random(cls.NAME)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for _ in range(20):
            message = filled(cls, version, random)
            assert isinstance(message, Message)
            text = message_json(message, version)
            assert json.loads(text) == message.to_json(version)
            assert list(json.loads(text)) == list(message.to_json(version))


@pytest.mark.parametrize("seed", range(8))
def test_it_says_so_of_messages_of_every_kind(seed: int) -> None:
    random = Random(seed)
    for cls in all_messages()[seed::8]:
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            message = random_message(random, cls, version)
            assert json.loads(message_json(message, version)) == message.to_json(version)


def test_a_metadata_record_is_wrapped_in_its_type_and_version() -> None:
    register_broker = metadata_record_class(0)
    assert metadata_json(register_broker(), 3).startswith(
        '{"type":"REGISTER_BROKER_RECORD","version":3,"data":{"brokerId":0,'
    )


def test_the_two_zeros_are_told_apart_in_arrays() -> None:
    sample = generated(message(fields=[field(type="[]float64")])).SampleRequest
    for numbers, text in (((0.0,), "[0.0]"), ((-0.0,), "[-0.0]"), ((0.0,), "[0.0]")):
        assert message_json(sample(numbers), 0) == f'{{"first":{text}}}'
