"""Execute raft's effects on ports: one function for each class of effects.

The server, the simulator and the tests all execute effects through this table, so that no effect is dropped.
``kraft_wire.controller.node.executor`` adds the effects of a whole node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from kraft_wire.raft import effects as fx
from kraft_wire.raft.ports import Ports

P = TypeVar("P", bound=Ports)


def execute(effect: fx.Effect, ports: Ports) -> None:
    """Execute one effect."""
    EXECUTORS[type(effect)](ports, effect)


def execute_all(effects: Iterable[fx.Effect], ports: Ports) -> None:
    """Execute the effects of a step in their order. Successive appends become one write."""
    execute_by(EXECUTORS, effects, ports)


def execute_by(
    executors: Mapping[type[Any], Callable[[P, Any], None]], effects: Iterable[object], ports: P
) -> None:
    """Execute effects in their order by a table that may know more classes than raft's."""
    appends: list[fx.AppendBatch] = []
    for effect in effects:
        if type(effect) is fx.AppendBatch:
            appends.append(effect)
            continue
        if appends:
            ports.log.append(appends)
            appends = []
        executors[type(effect)](ports, effect)
    if appends:
        ports.log.append(appends)


def _append(ports: Ports, effect: fx.AppendBatch) -> None:
    ports.log.append([effect])


def _truncate_log(ports: Ports, effect: fx.TruncateLog) -> None:
    ports.log.truncate(effect.end_offset)


def _trim_log(ports: Ports, effect: fx.TrimLog) -> None:
    ports.log.trim(effect.start_offset)


def _note_committed(ports: Ports, effect: fx.HighWatermarkAdvanced) -> None:
    ports.log.note_committed(effect.offset)


def _forget_loss(ports: Ports, effect: fx.LossMadeGood) -> None:
    ports.log.forget_loss()


def _write_election_state(ports: Ports, effect: fx.PersistElectionState) -> None:
    ports.election.write_election_state(
        effect.state, kraft_version=effect.kraft_version, voter_ids=effect.voter_ids
    )


def _append_snapshot_bytes(ports: Ports, effect: fx.AppendSnapshotBytes) -> None:
    ports.snapshots.append_bytes(effect.snapshot_id, effect.position, effect.data)


def _verify_snapshot(ports: Ports, effect: fx.VerifySnapshot) -> None:
    ports.snapshots.verify(effect.snapshot_id)


def _install_snapshot(ports: Ports, effect: fx.InstallSnapshot) -> None:
    ports.snapshots.install(effect.snapshot_id)


def _abandon_snapshot(ports: Ports, effect: fx.AbandonSnapshot) -> None:
    ports.snapshots.abandon(effect.snapshot_id)


def _delete_snapshot(ports: Ports, effect: fx.DeleteSnapshot) -> None:
    ports.snapshots.delete(effect.snapshot_id)


def _send_request(ports: Ports, effect: fx.SendRequest) -> None:
    ports.peers.send(effect.request_id, effect.peer, effect.request)


def _cancel_request(ports: Ports, effect: fx.CancelRequest) -> None:
    ports.peers.cancel(effect.request_id)


def _reply(ports: Ports, effect: fx.Reply) -> None:
    ports.reply(effect.token, effect.response)


def _reply_alike(ports: Ports, effect: fx.ReplyAlike) -> None:
    ports.reply_alike(effect.tokens, effect.response)


def _reply_records(ports: Ports, effect: fx.ReplyRecords) -> None:
    records = ports.log.read(effect.offset, effect.end_offset, effect.max_bytes)
    ports.reply_alike(effect.tokens, effect.fill(records))


def _reply_snapshot_bytes(ports: Ports, effect: fx.ReplySnapshotBytes) -> None:
    data = ports.snapshots.read(effect.snapshot_id, effect.position, effect.max_bytes)
    ports.reply(effect.token, effect.fill(data))


def _notice(ports: Ports, effect: fx.Notice) -> None:
    ports.notice(effect)


EXECUTORS: Final[Mapping[type[Any], Callable[[Ports, Any], None]]] = {
    fx.AppendBatch: _append,
    fx.TruncateLog: _truncate_log,
    fx.TrimLog: _trim_log,
    fx.HighWatermarkAdvanced: _note_committed,
    fx.LossMadeGood: _forget_loss,
    fx.PersistElectionState: _write_election_state,
    fx.AppendSnapshotBytes: _append_snapshot_bytes,
    fx.VerifySnapshot: _verify_snapshot,
    fx.InstallSnapshot: _install_snapshot,
    fx.AbandonSnapshot: _abandon_snapshot,
    fx.DeleteSnapshot: _delete_snapshot,
    fx.SendRequest: _send_request,
    fx.CancelRequest: _cancel_request,
    fx.Reply: _reply,
    fx.ReplyAlike: _reply_alike,
    fx.ReplyRecords: _reply_records,
    fx.ReplySnapshotBytes: _reply_snapshot_bytes,
    fx.RoleChanged: _notice,
    fx.BecameLeader: _notice,
    fx.LostLeadership: _notice,
    fx.BadFetch: _notice,
    fx.LeaderLacksCommitted: _notice,
    fx.EpochsUsedUp: _notice,
    fx.HigherEpochRefused: _notice,
    fx.JoinRefused: _notice,
    fx.UpdateRefused: _notice,
    fx.VoterEntryRefused: _notice,
    fx.VotersChanged: _notice,
    fx.ReadyToStop: _notice,
}
