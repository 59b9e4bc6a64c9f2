"""Tables of records hold what the generated decoder reads, from pages of Java's and of random records."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import Record, encode_batch, encode_keyed_batch, iter_records, split_batches
from kraft_wire.log.control import decode_control_record, encode_control_batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.logs.places import LogPlace, SnapshotPlace
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA, column_name, schema_of
from kraft_wire.tabular.record_tables import record_batches, typed_batches
from tests.support.random_messages import random_message

JAVA_LOG = Path(__file__).parents[1] / "metadata/java-4.4.0/00000000000000000000.log"
CONTROL_CLASSES: list[type[Message]] = [
    LeaderChangeMessage,
    KRaftVersionRecord,
    VotersRecord,
    SnapshotHeaderRecord,
    SnapshotFooterRecord,
]
CLASSES = [message_class(name) for name in METADATA_RECORDS.values()]
PLACE = LogPlace("one", 50)


def random_log(seed: int) -> bytes:
    random = Random(seed)
    kinds = [(each, version) for each in CLASSES for version in range(each.MIN_VERSION, each.MAX_VERSION + 1)]
    batches, offset = [], 7
    for epoch in range(12):
        chosen = [random.choice(kinds) for _ in range(random.randrange(1, 60))]
        values = [
            encode_metadata_record(random_message(random, record_class, version), version)
            for record_class, version in chosen
        ]
        batches.append(encode_control_batch(offset, epoch, 1_000_000 + epoch, control_messages(random)))
        batches.append(encode_batch(offset + 2, epoch, 1_000_000 + epoch, values))
        offset += 2 + len(values)
    return b"".join(batches)


def control_messages(random: Random) -> list[Message]:
    return [random_message(random, each, 0) for each in random.sample(CONTROL_CLASSES, 2)]


def plain(value: Any) -> Any:
    match value:
        case Uuid():
            return str(value)
        case Structure():
            return {field.name: plain(getattr(value, field.name)) for field in value.FIELDS}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def expected_rows(log: bytes) -> list[tuple[Message, dict[str, Any]]]:
    """Return what the generated decoder reads, with the first columns of every table."""
    rows = []
    for batch in split_batches(log)[0]:
        for record in iter_records(batch):
            message, version = decoded(record, is_control=batch.header.is_control)
            row = {
                "cluster": "one",
                "offset": record.offset,
                "epoch": batch.header.leader_epoch,
                "timestamp": datetime.fromtimestamp(record.timestamp / 1000, UTC),
                "committed": True if record.offset < 50 else None,
                "in_snapshot": False,
                "version": version,
            }
            rows.append((message, row))
    return rows


def decoded(record: Record, *, is_control: bool) -> tuple[Message, int]:
    return (decode_control_record(record), 0) if is_control else decode_metadata_record(record.value)


def table_of(batches: list[pa.RecordBatch], schema: pa.Schema) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema).to_pylist()
    return rows


LOGS = [
    pytest.param(JAVA_LOG.read_bytes(), id="java"),
    *(pytest.param(random_log(n), id=f"{n}") for n in range(4)),
]


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("record_class", CLASSES, ids=lambda each: each.NAME)
def test_a_typed_table_holds_what_the_generated_decoder_reads(
    log: bytes, record_class: type[Message]
) -> None:
    page, end = Page.of(log)
    assert end == len(log)
    expected = [
        {**row, **{column_name(field): plain(getattr(message, field.name)) for field in message.FIELDS}}
        for message, row in expected_rows(log)
        if type(message) is record_class
    ]
    schema = schema_of(record_class)
    assert table_of(typed_batches(page, record_class, PLACE), schema) == expected


@pytest.mark.parametrize("log", LOGS)
def test_all_records_are_there_in_order_with_their_json(log: bytes) -> None:
    page, _ = Page.of(log)
    expected = [
        {**row, "type": message.NAME, "json": message.to_json(row["version"])}
        for message, row in expected_rows(log)
    ]
    found = table_of(record_batches(page, PLACE), RECORDS_SCHEMA)
    assert [{**row, "json": msgspec.json.decode(row["json"])} for row in found] == expected


def test_a_snapshots_records_are_all_at_its_last_offset() -> None:
    page, _ = Page.of(random_log(3))
    place = LogPlace("one", None, SnapshotPlace(end_offset=900, epoch=4, timestamp_ms=5_000))
    found = table_of(record_batches(page, place), RECORDS_SCHEMA)
    in_log = table_of(record_batches(page, PLACE), RECORDS_SCHEMA)
    when = datetime.fromtimestamp(5, UTC)
    says = {"offset": 899, "epoch": 4, "timestamp": when, "committed": True, "in_snapshot": True}
    assert found == [{**row, **says} for row in in_log]


def test_a_snapshot_that_does_not_say_when_has_no_time() -> None:
    page, _ = Page.of(random_log(3))
    place = LogPlace("one", None, SnapshotPlace(900, 4, None))
    rows = table_of(
        record_batches(page, place, ["timestamp"]), pa.schema([RECORDS_SCHEMA.field("timestamp")])
    )
    assert {row["timestamp"] for row in rows} == {None}


def test_chosen_columns_are_all_that_is_made() -> None:
    page, _ = Page.of(random_log(1))
    (batch, *_) = record_batches(page, PLACE, ["type", "offset"])
    assert batch.schema.names == ["type", "offset"]
    (batch, *_) = typed_batches(page, TopicRecord, PLACE, ["name", "cluster"])
    assert batch.schema.names == ["name", "cluster"]


def test_a_page_with_an_unusual_record_is_read_all_the_same() -> None:
    value = encode_metadata_record(NoOpRecord(), 0)
    log = encode_batch(0, 1, 5, [value]) + encode_keyed_batch(1, 1, 5, [(b"key", value)], attributes=0)
    page, _ = Page.of(log)
    found = table_of(typed_batches(page, NoOpRecord, PLACE), schema_of(NoOpRecord))
    assert [row["offset"] for row in found] == [0, 1]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", DecodeError),
        (b"\x01\x7f\x00", DecodeError),
        (b"\x01\x02\x00\x05abcd", DecodeError),
        (encode_metadata_record(BrokerRegistrationChangeRecord(), 0)[:-1] + b"\x01\x01\x01\x01", DecodeError),
        (encode_metadata_record(RegisterBrokerRecord(), 0) + b"junk", DecodeError),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error_that_says_so(value: bytes, error: type[Exception]) -> None:
    page, _ = Page.of(encode_batch(0, 1, 5, [encode_metadata_record(NoOpRecord(), 0), value]))
    with pytest.raises(error):
        record_batches(page, PLACE)


def test_text_that_is_not_utf8_is_read_as_the_generated_decoder_does() -> None:
    body = b"\x03\xff\xfe" + bytes(17)
    page, _ = Page.of(encode_batch(0, 1, 5, [b"\x01\x02\x00" + body]))
    (row,) = table_of(typed_batches(page, TopicRecord, PLACE), schema_of(TopicRecord))
    assert row["name"] == TopicRecord.decode(body, 0).name


def test_damaged_bytes_are_an_error_that_says_where() -> None:
    log = bytearray(random_log(2))
    log[-5] ^= 1
    with pytest.raises(CorruptBatch):
        Page.of(bytes(log))


def test_no_column_is_there_twice() -> None:
    for record_class in CLASSES:
        names = schema_of(record_class).names
        assert len(names) == len(set(names)), record_class.NAME
