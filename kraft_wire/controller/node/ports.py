"""Define what the executor of a node's effects needs beyond raft's ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kraft_wire.controller.node.effects import NodeNotice
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.raft.ports import LogPort, Ports, SnapshotPort


class NodeLogPort(LogPort, Protocol):
    """The log, read by the state machine and by consumers as well."""

    def read_committed(self, start_offset: int, end_offset: int) -> None:
        """Read the batches in [start_offset, end_offset) and report them as ``CommittedBatches``, in one or
        more events."""

    def find_timestamps(self, timestamps: Sequence[int], end_offset: int) -> None:
        """Look the timestamps up below ``end_offset``, then report ``TimestampsFound``."""


class NodeSnapshotPort(SnapshotPort, Protocol):
    """The snapshots, those of the node's own state included. ``install`` also loads the state and reports
    ``StateLoaded``."""

    def write(self, snapshot_id: SnapshotId, *, is_urgent: bool) -> None:
        """Write a snapshot of everything below its end offset, then report ``SnapshotWritten`` or
        ``SnapshotFailed``. Unless it is urgent, other work comes first."""

    def digest_state(self, metadata: MetadataState, end_offset: int) -> None:
        """Make a digest of the metadata as it is now, without what was applied from ``end_offset`` on, then
        report ``DigestMade`` or ``DigestFailed``."""

    def free_state(self, metadata: MetadataState) -> None:
        """Free metadata that another snapshot's has replaced, in short steps."""


class NodePorts(Ports, Protocol):
    """Everything that a node's effects are executed on."""

    @property
    def log(self) -> NodeLogPort: ...
    @property
    def snapshots(self) -> NodeSnapshotPort: ...

    def set_log_levels(self, levels: Mapping[str, str | None]) -> None:
        """Give loggers of this process these levels, in Kafka's words; None unsets a level."""

    def notice(self, notice: NodeNotice) -> None:
        """Take note of a fact about this node. Nothing has to be done for it to become true."""
