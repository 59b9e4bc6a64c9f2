"""The ports of a lone node, in memory: its log, its snapshots, the requests that it has sent.

What an effect leads to (``Flushed``, ``LogTrimmed``, …) is fed by the tests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from kraft_wire.log.batch import split_batches
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.effects import AppendBatch, Notice
from kraft_wire.raft.membership.voters import Peer

if TYPE_CHECKING:
    from tests.raft.lone_node import LoneNode


class LonePorts:
    """Executes the effects of a lone node on what that node keeps."""

    def __init__(self, node: LoneNode) -> None:
        self._node = node
        self.log = LoneLog(node)
        self.snapshots = LoneSnapshots(node)
        self.election = self
        self.peers = SentRequests()

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Iterable[int]
    ) -> None:
        self._node.election = state

    def reply(self, token: Hashable, response: Message) -> None:
        assert self._node.answers[token].response is response

    def reply_alike(self, tokens: Sequence[Hashable], response: Message) -> None:
        for token in tokens:
            self.reply(token, response)

    def notice(self, notice: Notice) -> None:
        """Nothing is to be done: ``LoneNode.step`` returns them."""


class LoneLog:
    """A log whose batches are kept one by one. It has none for records that a restart did not need."""

    def __init__(self, node: LoneNode) -> None:
        self._node = node

    def append(self, appends: Sequence[AppendBatch]) -> None:
        for append in appends:
            (batch,), consumed = split_batches(append.data)
            header = batch.header
            assert consumed == len(append.data)
            assert (header.base_offset, header.last_offset) == (append.base_offset, append.last_offset)
            assert header.leader_epoch == append.epoch
            self._node.batches.append(batch)

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        held = (batch for batch in self._node.batches if offset <= batch.header.last_offset < end_offset)
        return b"".join(batch.data for batch in held)

    def truncate(self, end_offset: int) -> None:
        node = self._node
        node.batches = [batch for batch in node.batches if batch.header.next_offset <= end_offset]
        node.flushed_batches = len(node.batches)

    def trim(self, start_offset: int) -> None:
        self._node.trims.append(start_offset)
        self._node.log_start_offset = start_offset

    def note_committed(self, offset: int) -> None:
        self._node.high_watermarks.append(offset)

    def forget_loss(self) -> None:
        self._node.has_lost_records = False


class LoneSnapshots:
    """Snapshots that have only a size: their bytes are zero."""

    def __init__(self, node: LoneNode) -> None:
        self._node = node
        self._fetched_bytes: dict[SnapshotId, int] = {}

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        (info,) = (info for info in self._node.snapshots if info.id == snapshot_id)
        return bytes(min(max_bytes, info.size_bytes - position))

    def append_bytes(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        assert position in (0, self._fetched_bytes.get(snapshot_id))
        self._fetched_bytes[snapshot_id] = position + len(data)

    def verify(self, snapshot_id: SnapshotId) -> None:
        assert snapshot_id in self._fetched_bytes, "nothing of it was fetched"

    def install(self, snapshot_id: SnapshotId) -> None:
        size_bytes = self._fetched_bytes.pop(snapshot_id)
        self._node.snapshots.append(SnapshotInfo(snapshot_id, size_bytes, 0))
        self._node.batches.clear()
        self._node.flushed_batches = 0
        self._node.log_start_offset = snapshot_id.end_offset

    def abandon(self, snapshot_id: SnapshotId) -> None:
        self._fetched_bytes.pop(snapshot_id, None)

    def delete(self, snapshot_id: SnapshotId) -> None:
        self._node.snapshots = [info for info in self._node.snapshots if info.id != snapshot_id]


class SentRequests:
    """The ids of the requests that were sent and not cancelled. Tests answer them."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        assert request_id not in self._ids, "an id is used twice"
        self._ids.add(request_id)

    def cancel(self, request_id: int) -> None:
        self._ids.remove(request_id)
