"""Stop a node: a leader commits its last records and waits for a successor first."""

from __future__ import annotations

from enum import Enum
from typing import Final

from kraft_wire.raft.effects import ReadyToStop
from kraft_wire.raft.election import elections
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, Leader

HANDOVER_TIMEOUT_MS: Final = 2000
"""The time that a leader has, after it is asked to stop, to commit its last records and see another
leader."""


class StopWait(Enum):
    """What a node waits for before it stops."""

    COMMIT = "the commit of its last records"
    SUCCESSOR = "another leader"
    FLUSH = "the flush of its log"


def shut_down(quorum: QuorumState) -> None:
    """Begin to stop: nothing more is appended, and ``stop_if_done`` completes the stop."""
    quorum.is_shutting_down = True
    if not quorum.is_only_voter:
        quorum.stop_deadline_ms = quorum.now.monotonic_ms + HANDOVER_TIMEOUT_MS


def stop_if_done(quorum: QuorumState) -> None:
    """Continue a shutdown, and stop when it is complete.

    A leader resigns when its records are committed, and stops when another node leads. Any other node stops
    when its log is flushed. If there are other voters, neither waits longer than the handover timeout.
    """
    if not quorum.is_shutting_down or quorum.is_stopped:
        return
    is_late = quorum.stop_deadline_ms is not None and quorum.now.monotonic_ms >= quorum.stop_deadline_ms
    if isinstance(quorum.state, Leader):
        if not is_late and stop_waits_for(quorum) is StopWait.COMMIT:
            return
        quorum.is_handing_over = not quorum.is_only_voter
        elections.resign(quorum)
    if is_late or stop_waits_for(quorum) is None:
        quorum.is_stopped = True
        quorum.emit(ReadyToStop())


def stop_waits_for(quorum: QuorumState) -> StopWait | None:
    """Return what a node that is shutting down waits for; None if it may stop, or isn't shutting down."""
    if not quorum.is_shutting_down or quorum.is_stopped:
        return None
    if isinstance(quorum.state, Leader) and _is_uncommitted(quorum):
        return StopWait.COMMIT
    if _awaits_successor(quorum):
        return StopWait.SUCCESSOR
    return StopWait.FLUSH if quorum.log.flushed_offset < quorum.log.end_offset else None


def _is_uncommitted(quorum: QuorumState) -> bool:
    return quorum.high_watermark is None or quorum.high_watermark < quorum.log.end_offset


def _awaits_successor(quorum: QuorumState) -> bool:
    """Whether this node led when it was asked to stop, and no later leader is known.

    The election of the next leader may need this node's vote.
    """
    return quorum.is_handing_over and not isinstance(quorum.state, Follower)
