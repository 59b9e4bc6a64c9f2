"""Decide whether a node is ready, and say why it isn't."""

from __future__ import annotations

from typing import Final, NamedTuple

from kraft_wire.controller.node.node import Node
from kraft_wire.metrics.counts import Counts

PATIENCE_MS: Final = 5_000
"""The time after which a commit, a flush, or records that aren't applied make a node unready."""


class Check(NamedTuple):
    """One condition of readiness. ``problem`` is None if it holds."""

    name: str
    problem: str | None

    def __str__(self) -> str:
        return f"{self.name}: {self.problem or 'ok'}"


def readiness(node: Node, counts: Counts, now_ms: int) -> list[Check]:
    """Return all checks. The node is ready if none has a problem."""
    delays = counts.delays
    return [
        Check("running", "this controller stops" if counts.is_stopping else None),
        Check("leader", "none is known" if node.core.live_leader_id is None else None),
        Check("high watermark", _high_watermark(node, _late_s(delays.uncommitted_ms, now_ms))),
        Check("state", _state(node, _late_s(delays.unapplied_ms, now_ms))),
        Check("replay", _replay(node)),
        Check("disk", _disk(_late_s(delays.unflushed_ms, now_ms))),
    ]


def _late_s(since_ms: int | None, now_ms: int) -> int:
    """Return for how many seconds something is overdue; 0 if it isn't."""
    return 0 if since_ms is None or now_ms - since_ms < PATIENCE_MS else (now_ms - since_ms) // 1000


def _high_watermark(node: Node, late_s: int) -> str | None:
    if node.core.high_watermark is None:
        return "it isn't known yet"
    return f"it hasn't moved for {late_s} s, though the log goes on" if late_s else None


def _state(node: Node, late_s: int) -> str | None:
    if node.is_loading_state:
        return "a snapshot is being loaded"
    if late_s and node.replay_stopped is None:
        return f"{node.unapplied_records} committed records aren't applied, for {late_s} s"
    return None


def _replay(node: Node) -> str | None:
    stopped = node.replay_stopped
    return None if stopped is None else f"replay stopped at offset {stopped.offset}: {stopped.reason}"


def _disk(late_s: int) -> str | None:
    return f"no flush has ended for {late_s} s" if late_s else None
