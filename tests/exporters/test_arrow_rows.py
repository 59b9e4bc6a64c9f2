"""Rows of records, which have the JSON form's values."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.exporters.arrow_rows import SCHEMA, table_of
from kraft_wire.exporters.json_form import data_text
from kraft_wire.exporters.records import ExportBatch, ExportRecord
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.registry import message_class
from tests.exporters.export_samples import exported, of_value
from tests.support.metadata_records import topic_record

EVERY_TYPE = [
    exported(message_class(name)(), number) for number, name in enumerate(METADATA_RECORDS.values())
]


def _check(records: list[ExportRecord]) -> None:
    rows = table_of(ExportBatch("a cluster", records)).to_pylist()
    assert [row["offset"] for row in rows] == [record.offset for record in records]
    for row, record in zip(rows, records, strict=True):
        fresh = ExportRecord(
            record.offset,
            record.index,
            record.epoch,
            record.timestamp_ms,
            record.value,
            record.type,
            record.version,
        )
        assert row["data"] == data_text(fresh)
        assert (row["type"], row["version"], row["epoch"]) == (record.type, record.version, record.epoch)
        expected = (None, None) if row["data"] is not None else (fresh.problem, record.value)
        assert (row["undecoded"], row["raw"]) == expected


def test_records_of_every_type() -> None:
    _check(EVERY_TYPE)


def test_mixed_records_keep_their_order() -> None:
    scram = UserScramCredentialRecord("u", 1, b"salt", b"\xff\x00", b"k", 4096)
    _check([exported(topic_record(1), 1), exported(scram, 2), exported(topic_record(3), 3)])


@pytest.mark.parametrize(
    "value",
    [b"", b"\x01", b"\x01\x64\x07\xff\x00", b"\x01\x02\x00\xff"],
    ids=["empty", "short", "new", "cut"],
)
def test_records_that_can_not_be_decoded_have_their_bytes(value: bytes) -> None:
    _check([exported(topic_record(1), 1), of_value(value, 2), exported(topic_record(3), 3)])


def test_the_columns_have_the_names_of_the_json_form() -> None:
    (row,) = table_of(ExportBatch("a cluster", [exported(topic_record(1), 1)])).to_pylist()
    assert list(row) == SCHEMA.names
    assert msgspec.json.decode(row["data"])["name"] == "topic-1"
