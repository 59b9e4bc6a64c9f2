"""Define checkers: their hooks, and how they see a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.recovery.plan import Plan
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.snapshot_file import SnapshotFile


class Checked(Protocol):
    """A node, as checkers see it. ``raft`` is its core; the node must be up."""

    @property
    def id(self) -> int: ...
    @property
    def config(self) -> RaftConfig: ...
    @property
    def life(self) -> int: ...
    @property
    def disk(self) -> Disk: ...
    @property
    def raft(self) -> RaftCore: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def leading(self) -> tuple[int, int] | None: ...
    def request_of(self, token: int) -> Message | None: ...


class Recovered(NamedTuple):
    """A lost majority's recovery, when all nodes are stopped and the plan is written.

    ``kept`` is the disk of the plan's leader. ``left`` are the disks that the plan could have gone on with.
    ``is_best`` unless the operator chose another than the plan would. No survivor knew an epoch above
    ``known_epoch``. Committed records at ``lost_from`` or above aren't in the kept log.
    """

    plan: Plan
    kept: Disk
    left: Sequence[Disk]
    is_best: bool
    known_epoch: int
    lost_from: int


class Checker:
    """A checker of one invariant. Hooks that it doesn't override aren't called."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        self.nodes = nodes

    def fail(self, node: Checked, seen: str) -> None:
        """End the run: the invariant does not hold at this node. Raises Violation."""
        raise Violation(type(self).__name__, f"node {node.id}: {seen}")

    def started(self, node: Checked) -> None:
        """Check a process that has recovered, before its first step."""

    def timed(self, node: Checked, took_us: int) -> None:
        """Check how long a step takes that begins now. Its effects come later."""

    def stepped(self, node: Checked) -> None:
        """Check a node after a step and all its effects."""

    def persisted(self, node: Checked, state: ElectionState) -> None:
        """Check quorum-state after it was written."""

    def sending(self, node: Checked, request: Message) -> None:
        """Check a request that leaves."""

    def answering(self, node: Checked, token: int, response: Message) -> None:
        """Check a response that leaves."""

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        """Check a batch that was written and is not yet flushed."""

    def truncated(self, node: Checked, removed: Sequence[AppendBatch], end_offset: int) -> None:
        """Check a truncation of the log; ``removed`` are the removed batches."""

    def trimmed(self, node: Checked) -> None:
        """Check the log after its start moved, or after a snapshot was deleted."""

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        """Check a fetched snapshot that replaced the log."""

    def led(self, node: Checked, epoch: int) -> None:
        """Check a node that became leader."""

    def advanced(self, node: Checked, high_watermark: int) -> None:
        """Check a node whose high watermark rose."""

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        """Check a committed batch that a node's state machine applied."""

    def acknowledged(self, node: Checked, batch: AppendBatch) -> None:
        """Check records whose commitment was acknowledged to a client."""

    def recovered(self, recovery: Recovered) -> None:
        """Check a recovery of a lost majority. Forget what it has given up."""


def holds(disk: Disk, batch: AppendBatch) -> bool:
    """Whether a disk has this batch, in its log or in a snapshot before it."""
    own = disk.batch_before(batch.last_offset + 1)
    return batch.last_offset < disk.start_offset if own is None else own.data == batch.data


def vote_granted(node: Checked, token: int, response: VoteResponse) -> Any:
    """Return the only partition of a Vote request if the vote was granted, else None."""
    if not response.topics or not response.topics[0].partitions[0].vote_granted:
        return None
    request = node.request_of(token)
    return request.topics[0].partitions[0] if isinstance(request, VoteRequest) else None
