"""Snapshots: their names, their batches, and files that aren't whole snapshots."""

from __future__ import annotations

import pytest

from kraft_wire.log.batch import MAX_BATCH_SIZE_BYTES, encode_batch, record_values
from kraft_wire.log.control import ControlType, control_types, decode_control_batch, encode_control_batch
from kraft_wire.log.errors import BadSnapshot, BatchTooLarge, CorruptBatch
from kraft_wire.log.snapshot import (
    BOOTSTRAP_SNAPSHOT_ID,
    DELETED_SUFFIX,
    PARTIAL_SUFFIX,
    SnapshotId,
    encode_snapshot,
    parse_snapshot_file_name,
    snapshot_file_name,
    verify_snapshot,
)
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from tests.log.batch_samples import TIMESTAMP_MS, read_with_construct

ID = SnapshotId(305, 3)
HEADER = SnapshotHeaderRecord(last_contained_log_timestamp=TIMESTAMP_MS)
CONTROL = [KRaftVersionRecord(kraft_version=1), VotersRecord()]
FOOTER = SnapshotFooterRecord()


def snapshot(values: list[bytes]) -> list[bytes]:
    return list(encode_snapshot(ID, CONTROL, values, TIMESTAMP_MS, TIMESTAMP_MS + 5))


def header(base_offset: int = 0) -> bytes:
    return encode_control_batch(base_offset, 3, 0, [HEADER])


def footer(base_offset: int) -> bytes:
    return encode_control_batch(base_offset, 3, 0, [FOOTER])


def data(base_offset: int, count: int = 1) -> bytes:
    return encode_batch(base_offset, 3, 0, [b"value"] * count)


def test_names() -> None:
    assert snapshot_file_name(ID) == "00000000000000000305-0000000003.checkpoint"
    for suffix in (".checkpoint", PARTIAL_SUFFIX, DELETED_SUFFIX):
        assert parse_snapshot_file_name(snapshot_file_name(ID, suffix), suffix) == ID
    assert parse_snapshot_file_name(snapshot_file_name(BOOTSTRAP_SNAPSHOT_ID)) == (0, 0)


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap.checkpoint",
        "00000000000000000305-0000000003.checkpoint.part",
        "00000000000000000305-0000000003.checkpoint.deleted",
        "00000000000000000305-3.checkpoint",
        "0000000000000000305-0000000003.checkpoint",
        "00000000000000000305_0000000003.checkpoint",
        "000000000000000003o5-0000000003.checkpoint",
        "00000000000000000305.log",
        ".checkpoint",
        "",
    ],
)
def test_names_of_other_files(name: str) -> None:
    assert parse_snapshot_file_name(name) is None


def test_the_batches_of_a_snapshot() -> None:
    values = [b"record %d" % n for n in range(3000)]
    batches = verify_snapshot(b"".join(snapshot(values)))
    assert decode_control_batch(batches[0]) == [HEADER, *CONTROL]
    assert decode_control_batch(batches[-1]) == [FOOTER]
    assert [len(record_values(batch)) for batch in batches[1:-1]] == [1024, 1024, 952]
    assert [value for batch in batches[1:-1] for value in record_values(batch)] == values
    assert {batch.header.leader_epoch for batch in batches} == {ID.epoch}
    assert {batch.header.base_timestamp for batch in batches} == {TIMESTAMP_MS + 5}
    assert [batch.header.base_offset for batch in batches] == [0, 3, 1027, 2051, 3003]


def test_the_declared_layouts_read_the_same() -> None:
    batches = read_with_construct(b"".join(snapshot([b"one", b"two"])))
    assert [batch.header.attributes.is_control for batch in batches] == [True, False, True]
    assert [record.value for record in batches[1].records] == [b"one", b"two"]


def test_a_snapshot_of_nothing() -> None:
    pieces = list(encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, [], [], 0, 0))
    batches = verify_snapshot(b"".join(pieces))
    assert [control_types(batch) for batch in batches] == [
        [ControlType.SNAPSHOT_HEADER],
        [ControlType.SNAPSHOT_FOOTER],
    ]


def test_large_records_are_spread_over_more_batches() -> None:
    values = [bytes([n]) * (MAX_BATCH_SIZE_BYTES // 3) for n in range(5)]
    batches = verify_snapshot(b"".join(snapshot(values)))
    assert [len(record_values(batch)) for batch in batches[1:-1]] == [2, 2, 1]
    assert all(batch.header.size_bytes <= MAX_BATCH_SIZE_BYTES for batch in batches)


def test_a_single_record_that_no_batch_can_hold() -> None:
    with pytest.raises(BatchTooLarge):
        snapshot([bytes(MAX_BATCH_SIZE_BYTES)])


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (b"", "is empty"),
        (data(0), "does not begin with a header"),
        (encode_control_batch(0, 3, 0, CONTROL), "does not begin with a header"),
        (header() + data(1), "offset 2 without a footer"),
        (header() + data(2) + footer(3), "where offset 1 should be: the batch there begins with offset 2"),
        (header(1), "where offset 0 should be: the batch there begins with offset 1"),
        (header() + footer(1) + data(2), "after the footer, at offset 2"),
        (header() + header(1) + footer(2), "second header"),
        (encode_control_batch(0, 3, 0, [HEADER, HEADER]), "second header"),
        (header() + encode_control_batch(1, 3, 0, [FOOTER, *CONTROL]), "after the footer, in the batch"),
        (header() + footer(1) + b"\x00", "1 bytes follow"),
    ],
)
def test_what_is_no_whole_snapshot(contents: bytes, problem: str) -> None:
    with pytest.raises(BadSnapshot, match=problem):
        verify_snapshot(contents)


def test_every_truncation_is_found() -> None:
    whole = b"".join(snapshot([b"one", b"two"]))
    for length in range(len(whole)):
        with pytest.raises((BadSnapshot, CorruptBatch)):
            verify_snapshot(whole[:length])


def test_every_flipped_bit_but_those_of_the_leader_epochs_is_found() -> None:
    whole = b"".join(snapshot([b"one", b"two"]))
    starts = [batch.start for batch in read_with_construct(whole)]
    epochs = {start + n for start in starts for n in range(12, 16)}
    for position in sorted(set(range(len(whole))) - epochs):
        for bit in range(8):
            contents = bytearray(whole)
            contents[position] ^= 1 << bit
            with pytest.raises((BadSnapshot, CorruptBatch)):
                verify_snapshot(bytes(contents))
