"""Log what a node does: its role, its activation, its snapshots, the changes it writes, what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kraft_wire.controller.node import effects as nx
from kraft_wire.controller.node.events import StateLoaded
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.raft import effects as fx
from kraft_wire.raft.events import Now, ShutDown
from kraft_wire.raft.membership.change import EntryRefusal
from kraft_wire.server.logging import get_logger
from kraft_wire.server.reports.files import report_loaded
from kraft_wire.server.reports.log import Problem, report_problem, report_records, report_refusal

log = get_logger(__name__)


_ENTRY_ADVICE: Final = {
    EntryRefusal.NOT_THERE: "look at listeners and advertised.listeners of that controller",
    EntryRefusal.OTHER_ENTRY: "it is being reconfigured, and asks again",
    EntryRefusal.STILL_THERE: "if it moves, stop what answers at its present address; if only its name"
    " is new, remove it and add it again",
}


class NodeReports:
    """The log of one node's steps (a ``Tap`` of the owner)."""

    def __init__(self) -> None:
        self._reported_leader: tuple[int, int | None] | None = None
        self._reported_fetch: fx.BadFetch | None = None
        self._reported_own_entry: fx.JoinRefused | fx.UpdateRefused | None = None
        self._reported_voters_entry: fx.VoterEntryRefused | None = None
        self._is_stopping = False

    def stepped(self, event: NodeEvent, effects: Sequence[nx.NodeEffect], now: Now) -> None:
        """Log what an operator should know of one step."""
        if type(event) is ShutDown:
            self._is_stopping = True
        elif isinstance(event, StateLoaded) and _is_taken(event, effects):
            report_loaded(event.snapshot_id)
        for effect in effects:
            report = REPORTS.get(type(effect))
            if report is not None:
                report(self, effect)

    def _role(self, effect: fx.RoleChanged) -> None:
        # A node that stands for election in vain changes its role again and again: only another epoch or
        # another leader is worth more than a debug line.
        leader = effect.epoch, effect.leader_id
        report = log.debug if leader == self._reported_leader else log.info
        self._reported_leader = leader
        report("role changed", role=effect.role.value, epoch=effect.epoch, leader_id=effect.leader_id)

    def _leadership(self, effect: fx.BecameLeader) -> None:
        log.info("became leader", epoch=effect.epoch, epoch_start_offset=effect.epoch_start_offset)

    def _lost_leadership(self, effect: fx.LostLeadership) -> None:
        report = log.info if self._is_stopping else log.warning
        report("lost leadership", epoch=effect.epoch, leader_id=effect.leader_id)

    def _refused_epoch(self, effect: fx.HigherEpochRefused) -> None:
        log.warning(
            "higher epoch refused",
            claimed_by=str(effect.caller),
            claimed_epoch=effect.epoch,
            epoch=effect.own_epoch,
            advice="if no such controller exists, let only controllers and brokers reach this port;"
            " if it is a Java controller that moved to another address, and stays out, restart the leader",
        )

    def _voters(self, effect: fx.VotersChanged) -> None:
        log.info("voters changed", voters=str(effect.voters), offset=effect.offset)

    def _activation(self, effect: nx.Activated) -> None:
        log.info("active controller", epoch=effect.epoch, after_ms=effect.after_ms)

    def _first_write(self, effect: nx.FirstWrite) -> None:
        log.info("first write committed", epoch=effect.epoch, after_ms=effect.after_ms)

    def _stopped_replay(self, effect: nx.ReplayStopped) -> None:
        log.error(
            "replay stopped",
            offset=effect.offset,
            reason=effect.reason,
            effect="this controller votes and replicates, but doesn't lead",
            advice="run the release of kraft-wire that the other controllers run",
        )

    def _continued_replay(self, effect: nx.ReplayContinues) -> None:
        log.info("replay continues", offset=effect.offset)

    def _installed_snapshot(self, effect: fx.InstallSnapshot) -> None:
        log.info(
            "snapshot installed", end_offset=effect.snapshot_id.end_offset, epoch=effect.snapshot_id.epoch
        )

    def _deleted_snapshot(self, effect: fx.DeleteSnapshot) -> None:
        log.info("snapshot deleted", end_offset=effect.snapshot_id.end_offset, epoch=effect.snapshot_id.epoch)

    def _recovered_loss(self, effect: fx.LossMadeGood) -> None:
        log.info("lost records fetched")

    def _bad_fetch(self, effect: fx.BadFetch) -> None:
        # The leader is asked again and again, and may answer the same each time.
        report = log.debug if effect == self._reported_fetch else log.error
        self._reported_fetch = effect
        report(
            "fetched records rejected",
            leader_id=effect.leader_id,
            offset=effect.offset,
            reason=effect.reason,
        )

    def _own_entry_refused(self, effect: fx.JoinRefused | fx.UpdateRefused) -> None:
        # This node tries again each fetch timeout, and may be refused each time.
        report = log.debug if effect == self._reported_own_entry else log.error
        self._reported_own_entry = effect
        if isinstance(effect, fx.UpdateRefused):
            report(
                "update refused",
                leader_id=effect.leader_id,
                error=effect.error.name,
                advice="the others keep this voter's former endpoints: look at listeners and"
                " advertised.listeners of both controllers",
            )
        else:
            report(
                "join refused",
                leader_id=effect.leader_id,
                error=effect.error.name,
                reason=effect.text,
                advice="this node stays an observer: mend the cause, or add it with kafka-metadata-quorum.sh",
            )

    def _voters_entry_refused(self, effect: fx.VoterEntryRefused) -> None:
        # A Java controller whose name alone is new asks again each fetch timeout.
        report = log.debug if effect == self._reported_voters_entry else log.warning
        self._reported_voters_entry = effect
        report(
            "change of a voter's entry refused",
            voter=str(effect.voter),
            present=str(effect.present),
            wanted=str(effect.wanted),
            reason=effect.reason.value,
            advice=f"{_ENTRY_ADVICE[effect.reason]}; or somebody is using its name: let only controllers and"
            " brokers reach this port",
        )

    def _records(self, effect: nx.RecordsAppended) -> None:
        report_records(effect.records, effect.request, effect.response)

    def _refusal(self, effect: nx.RequestRefused) -> None:
        report_refusal(effect)

    def _problem(self, effect: Problem) -> None:
        report_problem(effect)


def _is_taken(loaded: StateLoaded, effects: Sequence[nx.NodeEffect]) -> bool:
    """Whether the node took the state that was loaded; it frees that of a snapshot which is not the last one
    installed."""
    return not any(
        isinstance(effect, nx.FreeState) and effect.metadata is loaded.metadata for effect in effects
    )


REPORTS: Final[Mapping[type[Any], Callable[[NodeReports, Any], None]]] = {
    fx.RoleChanged: NodeReports._role,
    fx.BecameLeader: NodeReports._leadership,
    fx.LostLeadership: NodeReports._lost_leadership,
    fx.BadFetch: NodeReports._bad_fetch,
    fx.LeaderLacksCommitted: NodeReports._problem,
    fx.EpochsUsedUp: NodeReports._problem,
    fx.HigherEpochRefused: NodeReports._refused_epoch,
    fx.JoinRefused: NodeReports._own_entry_refused,
    fx.UpdateRefused: NodeReports._own_entry_refused,
    fx.VoterEntryRefused: NodeReports._voters_entry_refused,
    fx.VotersChanged: NodeReports._voters,
    fx.InstallSnapshot: NodeReports._installed_snapshot,
    fx.DeleteSnapshot: NodeReports._deleted_snapshot,
    fx.LossMadeGood: NodeReports._recovered_loss,
    nx.Activated: NodeReports._activation,
    nx.FirstWrite: NodeReports._first_write,
    nx.ReplayStopped: NodeReports._stopped_replay,
    nx.ReplayContinues: NodeReports._continued_replay,
    nx.RecordsAppended: NodeReports._records,
    nx.RequestRefused: NodeReports._refusal,
    nx.HandlerFailed: NodeReports._problem,
    nx.WorkFailed: NodeReports._problem,
    nx.TaskFailed: NodeReports._problem,
}
