"""The ports of a lone controller: its simulated disk, and the answers it has given."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kraft_wire.controller.node.effects import NodeNotice
from kraft_wire.controller.node.events import CommittedBatches, TimestampsFound
from kraft_wire.controller.reading.timestamp_lookup import find_timestamps
from kraft_wire.log.batch import split_batches
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.membership.voters import Peer

if TYPE_CHECKING:
    from tests.controller.lone_controller import LoneController


class LonePorts:
    """Executes a lone controller's effects."""

    def __init__(self, controller: LoneController) -> None:
        self._controller = controller
        self.log = LoneLog(controller)
        self.snapshots = NoSnapshots()
        self.election = self
        self.peers = NoPeers()

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Iterable[int]
    ) -> None:
        self._controller.disk.election = state

    def reply(self, token: Hashable, response: Message) -> None:
        assert token not in self._controller.replies, "a request is answered once"
        self._controller.replies[token] = response

    def reply_alike(self, tokens: Sequence[Hashable], response: Message) -> None:
        for token in tokens:
            self.reply(token, response)

    def set_log_levels(self, levels: Mapping[str, str | None]) -> None:
        """The controller has no loggers of its own: ``LoneController.effects`` has the levels."""

    def notice(self, notice: NodeNotice) -> None:
        """Nothing is to be done: ``LoneController.effects`` has them all."""


class LoneLog:
    """The log. Nothing is flushed, truncated or trimmed."""

    def __init__(self, controller: LoneController) -> None:
        self._controller = controller

    def append(self, appends: Sequence[AppendBatch]) -> None:
        for append in appends:
            batches, consumed = split_batches(append.data)
            assert consumed == len(append.data)
            self._controller.disk.batches += batches

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        below = self._controller.disk.below(end_offset)
        return b"".join(batch.data for batch in below if batch.header.last_offset >= offset)

    def read_committed(self, start_offset: int, end_offset: int) -> None:
        batches, _ = split_batches(self.read(start_offset, end_offset, 0))
        self._controller.step(CommittedBatches(batches, end_offset))

    def find_timestamps(self, timestamps: Sequence[int], end_offset: int) -> None:
        found = find_timestamps(self._controller.disk.below(end_offset), timestamps)
        self._controller.step(TimestampsFound(found))

    def note_committed(self, offset: int) -> None:
        self._controller.disk.committed = offset

    def truncate(self, end_offset: int) -> None:
        raise AssertionError("the only voter truncates nothing")

    def trim(self, start_offset: int) -> None:
        raise AssertionError("there is no snapshot")

    def forget_loss(self) -> None:
        raise AssertionError("nothing was lost")


class NoSnapshots:
    """The snapshots of a controller that fetches none and writes none."""

    def write(self, snapshot_id: SnapshotId, *, is_urgent: bool) -> None:
        """Leave it to the test, which reports ``SnapshotWritten``."""

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        raise AssertionError(f"there is no {snapshot_id}")

    def append_bytes(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        raise AssertionError("the only voter fetches no snapshot")

    def verify(self, snapshot_id: SnapshotId) -> None:
        raise AssertionError("the only voter fetches no snapshot")

    def digest_state(self, metadata: MetadataState, end_offset: int) -> None:
        """Leave it to the test, which reports ``DigestMade``."""

    def free_state(self, metadata: MetadataState) -> None:
        """Python frees it."""

    def install(self, snapshot_id: SnapshotId) -> None:
        """Leave it to the test, which reports ``StateLoaded``."""

    def abandon(self, snapshot_id: SnapshotId) -> None:
        raise AssertionError("the only voter fetches no snapshot")

    def delete(self, snapshot_id: SnapshotId) -> None:
        raise AssertionError(f"there is no {snapshot_id}")


class NoPeers:
    """The peers of the only voter."""

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        raise AssertionError(f"there is nobody to send {request} to")

    def cancel(self, request_id: int) -> None:
        raise AssertionError("nothing was sent")
