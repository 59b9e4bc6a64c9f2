"""Columns hold what the generated decoder reads, for records of every type and version."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.columnar.fields import Ragged, Table, Unreadable, find_fields, is_readable
from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.uuid import Uuid
from tests.support.random_messages import random_message

KINDS = [
    (record_class, version)
    for record_class in map(message_class, METADATA_RECORDS.values())
    for version in range(record_class.MIN_VERSION, record_class.MAX_VERSION + 1)
]
NAMES = [f"{record_class.NAME}-{version}" for record_class, version in KINDS]
IN_ROWS = {
    "ClientQuotaRecord",
    "DelegationTokenRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
}


def table_of(record_class: type[Message], version: int, bodies: list[bytes]) -> Table:
    chunk = Chunk(b"".join(bodies))
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    starts = ends - np.array([len(body) for body in bodies], np.int64)
    return find_fields(record_class, version, chunk, starts, ends)


def column_of(table: Table, name: str, kind: str, *, array: bool) -> list[Any]:
    """Return a column as the values that instances have."""
    if not array and kind not in ("string", "bytes"):
        if kind == "uuid":
            return [Uuid(row.tobytes()) for row in table.uuids(name)]
        return list(table.numbers(name).tolist())
    ragged = table.ragged(name)
    return [_value_in(ragged, row, kind) for row in range(len(ragged.offsets) - 1)]


def _value_in(ragged: Ragged, row: int, kind: str) -> Any:
    if ragged.valid is not None and not ragged.valid[row]:
        return None
    values = ragged.values[ragged.offsets[row] : ragged.offsets[row + 1]]
    if kind == "uuid":
        return tuple(Uuid(value.tobytes()) for value in values)
    if kind in ("string", "bytes"):
        return values.tobytes().decode() if kind == "string" else values.tobytes()
    return tuple(values.tolist())


def test_what_is_left_to_the_generated_decoder() -> None:
    left = {record_class.NAME for record_class, version in KINDS if not is_readable(record_class, version)}
    assert left == IN_ROWS


@pytest.mark.parametrize(("record_class", "version"), KINDS, ids=NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_columns_hold_what_the_generated_decoder_reads(
    record_class: type[Message], version: int, seed: int
) -> None:
    random = Random(seed)
    records = [random_message(random, record_class, version) for _ in range(50)]
    if record_class.NAME in IN_ROWS:
        with pytest.raises(Unreadable):
            table_of(record_class, version, [record.encode(version) for record in records])
        return
    table = table_of(record_class, version, [record.encode(version) for record in records])
    for field in record_class.FIELDS:
        found = column_of(table, field.name, field.kind, array=field.array)
        assert found == [getattr(record, field.name) for record in records], field.name


def test_no_records_at_all() -> None:
    table = table_of(PartitionRecord, 2, [])
    assert table.numbers("leader").tolist() == []
    assert table.uuids("topic_id").shape == (0, 16)
    assert table.ragged("isr").offsets.tolist() == [0]


def _change(**fields: Any) -> bytes:
    return PartitionChangeRecord(partition_id=1, topic_id=Uuid.ONE, **fields).encode(2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        _change()[:-1],
        _change() + b"\x00",
        _change(leader=3)[:-1],
        _change(isr=(1, 2))[:-4],
        _change()[:-1] + b"\x01",
        _change()[:-1] + b"\x01\x01",
        _change()[:-1] + b"\x01\x01\x05\x00\x00\x00\x00\x00",
        _change()[:-1] + b"\x02\x01\x04\x00\x00\x00\x01\x01\x04\x00\x00\x00\x01",
        _change()[:-1] + b"\x02\x05\x01\x00\x01\x04\x00\x00\x00\x01",
        _change()[:-1] + b"\x01\x00\x05\xff\xff\xff\xff\x0f",
        _change()[:-1] + b"\xff\xff\xff\xff\xff\x0f",
        _change()[:-1] + b"\xff\xff\xff\xff\x0f",
    ],
)
def test_what_is_malformed_costs_the_chunk_not_the_process(body: bytes) -> None:
    with pytest.raises(Malformed):
        table_of(PartitionChangeRecord, 2, [_change(leader=1), body])


@given(st.data())
def test_damaged_bytes_are_never_read_as_something_else(data: st.DataObject) -> None:
    """The generated decoder also reads whatever columns read, with the same result."""
    random = Random(data.draw(st.integers(0, 2**32)))
    classes: list[type[Message]] = [PartitionRecord, PartitionChangeRecord]
    record_class = data.draw(st.sampled_from(classes))
    bodies = [random_message(random, record_class, 2, unknown_tags=False).encode(2) for _ in range(4)]
    at = data.draw(st.integers(0, 3))
    damaged = bytearray(bodies[at])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    bodies[at] = bytes(damaged)
    try:
        table = table_of(record_class, 2, bodies)
        columns = [
            column_of(table, field.name, field.kind, array=field.array) for field in record_class.FIELDS
        ]
    except Malformed:
        return
    try:
        read = record_class.decode(bodies[at], 2)
    except DecodeError as error:
        raise AssertionError(f"columns took what the decoder doesn't: {error}") from None
    assert [column[at] for column in columns] == [getattr(read, field.name) for field in record_class.FIELDS]
