"""JSON made of columns is exactly the JSON made of messages."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import encode_batch
from kraft_wire.logs.places import LogPlace
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.tabular.record_tables import record_batches
from tests.support.random_messages import random_message

CLASSES = [message_class(name) for name in METADATA_RECORDS.values()]


def check(messages: list[Message], version: int) -> None:
    page, _ = Page.of(encode_batch(0, 1, 1_000, [encode_metadata_record(each, version) for each in messages]))
    (found,) = record_batches(page, LogPlace("one"), ["json"])
    expected = [msgspec.json.encode(each.to_json(version)).decode() for each in messages]
    assert found.column("json").to_pylist() == expected


@pytest.mark.parametrize("record_class", CLASSES, ids=lambda each: each.NAME)
def test_any_message_of_any_version(record_class: type[Message]) -> None:
    """A message is alone or among many: fields that no row has, or only some rows, are encoded in other
    ways."""
    random = Random(1)
    for version in range(record_class.MIN_VERSION, record_class.MAX_VERSION + 1):
        messages = [random_message(random, record_class, version) for _ in range(50)]
        check(messages, version)
        for message in messages[:5]:
            check([message], version)


def test_text_is_escaped_as_in_json() -> None:
    texts = ['a"b', "back\\slash", "line\nbreak", "\x00\x1f", "\x7f", "ü\u2028😀", "", "plain"]
    records: list[Message] = [
        ConfigRecord(resource_type=2, resource_name=text, name="n", value=text) for text in texts
    ]
    check(records, 0)
    check([*records, ConfigRecord(resource_type=2, resource_name="null", name="null", value=None)], 0)


def test_lists_that_are_null_empty_or_not() -> None:
    change = PartitionChangeRecord(partition_id=1, topic_id=Uuid(bytes(16)))
    lists: list[list[int] | None] = [None, [], [1], [1, 2, 3]]
    changes = [msgspec.structs.replace(change, isr=each, leader=-2) for each in lists]
    check([*changes, msgspec.structs.replace(change, leader=7, directories=[Uuid(bytes(16))] * 2)], 2)
