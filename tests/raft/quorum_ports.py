"""The ports of a node of a ``CoreQuorum``: a disk that loses what isn't flushed, links of the quorum."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kraft_wire.log.batch import split_batches
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.effects import AppendBatch, BecameLeader, Notice
from kraft_wire.raft.events import Flushed, LogTrimmed, LogTruncated, SnapshotVerified
from kraft_wire.raft.membership.voters import Peer

if TYPE_CHECKING:
    from tests.raft.core_quorum import QuorumNode

FLUSH_MS = 2


class Caller(NamedTuple):
    """The token of a request: who sent it, in which of its lives."""

    id: int
    life: int
    request_id: int


class Snapshot:
    """A snapshot's file, whose bytes mean nothing here, and what it says of voters."""

    def __init__(self, info: SnapshotInfo, data: bytes, control: list[Message]) -> None:
        self.info = info
        self.data = data
        self.control = control


class QuorumPorts:
    """Executes the effects of one node of a quorum."""

    def __init__(self, node: QuorumNode) -> None:
        self._node = node
        self.log = QuorumLog(node)
        self.snapshots = QuorumSnapshots(node)
        self.election = self
        self.peers = self

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Iterable[int]
    ) -> None:
        node = self._node
        if node.election is not None:
            assert state.leader_epoch >= node.election.leader_epoch, "the epoch went back"
        node.election = state
        node.quorum.note_vote(node.id, state)

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        self._node.quorum.send(self._node, request_id, peer, request)

    def cancel(self, request_id: int) -> None:
        self._node.quorum.cancel(self._node, request_id)

    def reply(self, token: Hashable, response: Message) -> None:
        if isinstance(token, Caller):
            self._node.quorum.answer(self._node, token, response)

    def reply_alike(self, tokens: Sequence[Hashable], response: Message) -> None:
        for token in tokens:
            self.reply(token, response)

    def notice(self, notice: Notice) -> None:
        if isinstance(notice, BecameLeader):
            self._node.quorum.note_leader(self._node.id, notice.epoch)


class QuorumLog:
    """The log of one node. A flush takes ``FLUSH_MS`` and covers what was appended when it began."""

    def __init__(self, node: QuorumNode) -> None:
        self._node = node

    def append(self, appends: Sequence[AppendBatch]) -> None:
        self._node.batches += [split_batches(append.data)[0][0] for append in appends]
        self.begin_flush()

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        wanted = [
            batch.data
            for batch in self._node.batches
            if batch.header.base_offset >= offset and batch.header.last_offset < end_offset
        ]
        if self._node.quorum.garble_records and wanted:
            wanted[0] = wanted[0][:-1] + bytes([wanted[0][-1] ^ 1])
        return b"".join(wanted)

    def truncate(self, end_offset: int) -> None:
        node = self._node
        kept = [batch for batch in node.batches if batch.header.next_offset <= end_offset]
        deleted_bytes = sum(len(batch.data) for batch in node.batches[len(kept) :])
        node.batches = kept
        node.flushed_offset = node.end_offset
        done = LogTruncated(node.end_offset, deleted_bytes)
        node.quorum.later(0, node.alive(lambda: node.step(done)))

    def trim(self, start_offset: int) -> None:
        node = self._node
        dropped = [batch for batch in node.batches if batch.header.last_offset < start_offset]
        node.batches = node.batches[len(dropped) :]
        node.start_offset = start_offset
        size_bytes = sum(len(batch.data) for batch in dropped)
        node.quorum.later(0, node.alive(lambda: node.step(LogTrimmed(size_bytes))))

    def note_committed(self, offset: int) -> None:
        node = self._node
        assert offset > node.high_watermark, "the high watermark went back"
        node.high_watermark = node.remembered_commit = offset
        node.quorum.check_committed(node)

    def forget_loss(self) -> None:
        self._node.lost_below_offset = None

    def begin_flush(self) -> None:
        node = self._node
        if node.is_flushing or node.disk_is_stuck:
            return
        node.is_flushing = True
        # What is appended in the same step is covered too: the flush begins when the step is over.
        node.quorum.later(0, node.alive(self._flush))

    def _flush(self) -> None:
        node = self._node
        end_offset, generation = node.end_offset, node.running.log_generation

        def done() -> None:
            node.is_flushing = False
            if generation == node.running.log_generation:
                node.flushed_offset = end_offset
            node.step(Flushed(end_offset, generation))
            if node.flushed_offset < node.end_offset:
                self.begin_flush()

        node.quorum.later(FLUSH_MS, node.alive(done))


class QuorumSnapshots:
    """The snapshots of one node, and the pieces of those that it fetches."""

    def __init__(self, node: QuorumNode) -> None:
        self._node = node

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self._node.snapshots[snapshot_id].data[position : position + max_bytes]

    def append_bytes(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        parts = self._node.parts
        so_far = b"" if position == 0 else parts[snapshot_id]
        assert len(so_far) == position
        parts[snapshot_id] = so_far + data

    def verify(self, snapshot_id: SnapshotId) -> None:
        self._node.quorum.later(self._node.verify_ms, self._verified(snapshot_id))

    def _verified(self, snapshot_id: SnapshotId) -> Callable[[], None]:
        node = self._node
        verified = node.parts[snapshot_id]

        def done() -> None:
            data = node.parts.get(snapshot_id)
            if data is not verified:
                return  # it was abandoned, or is fetched again
            node.step(SnapshotVerified(snapshot_id, len(data), 0, node.quorum.control_of(data)))

        return node.alive(done)

    def install(self, snapshot_id: SnapshotId) -> None:
        node = self._node
        data = node.parts.pop(snapshot_id)
        info = SnapshotInfo(snapshot_id, len(data), 0)
        node.snapshots[snapshot_id] = Snapshot(info, data, node.quorum.control_of(data))
        node.batches, node.start_offset = [], snapshot_id.end_offset
        node.flushed_offset = snapshot_id.end_offset

    def abandon(self, snapshot_id: SnapshotId) -> None:
        self._node.parts.pop(snapshot_id, None)

    def delete(self, snapshot_id: SnapshotId) -> None:
        self._node.snapshots.pop(snapshot_id, None)
