"""Batches of a leader are checked before they are appended."""

from __future__ import annotations

import pytest

from kraft_wire.log.batch import CONTROL, encode_batch, encode_keyed_batch
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.raft.follower.check_fetched import fetched_batches

EPOCH_AT = 12


def records(base_offset: int, epoch: int, count: int = 1) -> bytes:
    return encode_batch(base_offset, epoch, 0, [b"record"] * count)


def leader_change(base_offset: int, epoch: int) -> bytes:
    return encode_control_batch(base_offset, epoch, 0, [LeaderChangeMessage()])


def control(base_offset: int, epoch: int, *records: tuple[int, bytes]) -> bytes:
    """Return a control batch of records of these types with these values."""
    keyed = [(kind.to_bytes(4, "big"), value) for kind, value in records]
    return encode_keyed_batch(base_offset, epoch, 0, keyed, attributes=CONTROL)


LEADER = (2, LeaderChangeMessage().encode(0))
KRAFT_VERSION = 5


def with_epoch(batch: bytes, epoch: int) -> bytes:
    """Return the batch with a bit of its epoch flipped: its checksum is still right."""
    return batch[:EPOCH_AT] + epoch.to_bytes(4, "big") + batch[EPOCH_AT + 4 :]


def test_batches_that_follow_the_log_are_taken_as_they_are() -> None:
    sent = [records(5, 2, 3), leader_change(8, 4), records(9, 4)]
    assert [fetched.batch.data for fetched in fetched_batches(b"".join(sent), 5, 2, 4)] == sent


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    first, second = records(5, 2), records(6, 2)
    assert [fetched.batch.data for fetched in fetched_batches(first + second[:-1], 5, 2, 2)] == [first]
    assert fetched_batches(second[:40], 6, 2, 2) == []
    assert fetched_batches(b"", 6, 2, 2) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (records(6, 2), "the batch there begins with offset 6"),
        (records(4, 2), "the batch there begins with offset 4"),
        (records(5, 1), "epoch 1 comes after epoch 2"),
        (leader_change(5, 5), "epoch 5 is above 4"),
        (with_epoch(records(5, 2), 3), "epoch 3 does not begin with its leader's record"),
        (leader_change(5, 2), "leader's record, and epoch 2 began before"),
        (records(5, 2)[:-2] + b"X\0", "checksum"),
        (records(5, 2) + records(7, 2), "the batch there begins with offset 7"),
        (records(5, 2) + control(6, 2, (7, b"")), "control record type 7 is unknown"),
        (control(5, 3, LEADER, (7, b"")), "control record type 7 is unknown"),
        (control(5, 3, LEADER, (KRAFT_VERSION, b"\0")), "the control record's value"),
        (
            control(5, 3, LEADER, (KRAFT_VERSION, KRaftVersionRecord(kraft_version=9).encode(0))),
            "kraft.version 9 is not supported",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_batches_that_cannot_be_the_leaders_log_are_rejected_as_a_whole(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        fetched_batches(data, 5, 2, 4)


def test_control_records_come_with_their_batch() -> None:
    data = leader_change(5, 3) + records(6, 3)
    assert [fetched.control for fetched in fetched_batches(data, 5, 2, 3)] == [[LeaderChangeMessage()], []]
