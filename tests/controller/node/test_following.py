"""What a follower reads of the committed log, and when."""

from __future__ import annotations

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.node.effects import ReadCommitted
from kraft_wire.controller.node.events import CommittedBatches
from kraft_wire.controller.node.following import LogFollower
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.snapshot_policy import SnapshotPolicy
from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from tests.controller.controller_harness import Harness


def test_nothing_is_read_again_until_more_is_committed_than_a_part_of_a_batch() -> None:
    outbox = Outbox(CONTROLLER_APIS, lambda client: 0)
    follower = LogFollower(Harness(level=0).state, SnapshotPolicy(1 << 20, 0), outbox, 0)
    follower.read_up_to(2)
    assert follower.apply_committed(CommittedBatches([], 0)), "this read is over"
    follower.read_up_to(2)
    assert outbox.effects == [ReadCommitted(0, 2)]
    follower.read_up_to(3)
    assert outbox.effects[1:] == [ReadCommitted(0, 3)]
    no_op = encode_metadata_record(NoOpRecord(), 0)
    batches, _ = split_batches(encode_batch(0, 1, 0, [no_op] * 3))
    assert follower.apply_committed(CommittedBatches(batches, 3))
    assert (follower.applied_end, follower.is_busy) == (3, False)


def test_what_was_read_before_a_part_of_a_batch_is_applied_once() -> None:
    """A digest lets the follower pause after the first batch."""
    outbox = Outbox(CONTROLLER_APIS, lambda client: 0)
    follower = LogFollower(Harness(level=0).state, SnapshotPolicy(1 << 20, 0), outbox, 0)
    no_op = encode_metadata_record(NoOpRecord(), 0)
    batches, _ = split_batches(b"".join(encode_batch(offset, 1, 0, [no_op] * 2) for offset in (0, 2)))
    follower.read_up_to(5)
    follower.pause_at = 2
    assert not follower.apply_committed(CommittedBatches(batches, 4))
    follower.pause_at = None
    assert follower.apply_committed(CommittedBatches([], 4))
    assert follower.applied_end == 4
    follower.read_up_to(6)
    assert outbox.effects == [ReadCommitted(0, 5), ReadCommitted(4, 6)]
