"""Execute a node's effects on ports: raft's executors and those of the controller's own effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kraft_wire.controller.node import effects as nx
from kraft_wire.controller.node.ports import NodePorts
from kraft_wire.raft import executor as raft_executor


def execute(effect: nx.NodeEffect, ports: NodePorts) -> None:
    """Execute one effect."""
    EXECUTORS[type(effect)](ports, effect)


def execute_all(effects: Iterable[nx.NodeEffect], ports: NodePorts) -> None:
    """Execute the effects of a step in their order. Successive appends become one write."""
    raft_executor.execute_by(EXECUTORS, effects, ports)


def _read_committed(ports: NodePorts, effect: nx.ReadCommitted) -> None:
    ports.log.read_committed(effect.start_offset, effect.end_offset)


def _reply_committed(ports: NodePorts, effect: nx.ReplyCommitted) -> None:
    read = effect.read
    records = ports.log.read(read.offset, read.end_offset, read.max_bytes)
    ports.reply(effect.token, effect.fill(records))


def _find_timestamps(ports: NodePorts, effect: nx.FindTimestamps) -> None:
    ports.log.find_timestamps(effect.timestamps, effect.end_offset)


def _write_snapshot(ports: NodePorts, effect: nx.WriteSnapshot) -> None:
    ports.snapshots.write(effect.snapshot_id, is_urgent=effect.is_urgent)


def _make_digest(ports: NodePorts, effect: nx.MakeDigest) -> None:
    ports.snapshots.digest_state(effect.metadata, effect.end_offset)


def _free_state(ports: NodePorts, effect: nx.FreeState) -> None:
    ports.snapshots.free_state(effect.metadata)


def _set_log_levels(ports: NodePorts, effect: nx.SetLogLevels) -> None:
    ports.set_log_levels(effect.levels)


def _notice(ports: NodePorts, effect: nx.NodeNotice) -> None:
    ports.notice(effect)


EXECUTORS: Final[Mapping[type[Any], Callable[[NodePorts, Any], None]]] = {
    **raft_executor.EXECUTORS,
    nx.ReadCommitted: _read_committed,
    nx.ReplyCommitted: _reply_committed,
    nx.FindTimestamps: _find_timestamps,
    nx.WriteSnapshot: _write_snapshot,
    nx.MakeDigest: _make_digest,
    nx.FreeState: _free_state,
    nx.SetLogLevels: _set_log_levels,
    nx.Activated: _notice,
    nx.FirstWrite: _notice,
    nx.ReplayStopped: _notice,
    nx.ReplayContinues: _notice,
    nx.RecordsAppended: _notice,
    nx.RequestRefused: _notice,
    nx.HandlerFailed: _notice,
    nx.WorkFailed: _notice,
    nx.TaskFailed: _notice,
}
