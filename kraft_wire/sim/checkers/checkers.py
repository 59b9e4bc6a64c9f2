"""Collect the checkers of a run. Each one is a class and checks one invariant.

A checker implements the hooks that it needs; ``Checkers`` calls only those. An invariant has its name from
Kafka (RaftEventSimulationTest) or from the TLA+ specification of KRaft, if it has one there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kraft_wire.sim.checkers.checker import Checked, Checker
from kraft_wire.sim.checkers.elections import (
    LeaderCompleteness,
    LeadershipIsDurable,
    MonotonicEpoch,
    OneVote,
    SingleLeader,
    StepWithinFetchTimeout,
    VoteGoesToTheUpToDate,
    VoteIsDurable,
)
from kraft_wire.sim.checkers.membership import (
    AnsweredChangeIsCommitted,
    EntriesAreWanted,
    OneUncommittedChange,
    OverlappingMajorities,
    RemovedLeaderResigns,
)
from kraft_wire.sim.checkers.readers import ReadersSeeCommitted
from kraft_wire.sim.checkers.recovery import (
    NewQuorumLeads,
    RecoveryEpochIsNew,
    RecoveryKeepsTheNewestLog,
    RecoveryLosesWhatItSays,
)
from kraft_wire.sim.checkers.releases import AllApplyAfterTheUpgrade, StoppedIsNeverActive
from kraft_wire.sim.checkers.replication import (
    AcknowledgedStays,
    ConsistentCommittedData,
    EqualState,
    FlushedBeforeFetch,
    LogMatching,
    MajorityReachedHighWatermark,
    MonotonicHighWatermark,
    NoTruncationBelowHighWatermark,
)
from kraft_wire.sim.checkers.shutdowns import ShutdownLeavesIsrs
from kraft_wire.sim.checkers.snapshots import (
    LeaderNeverLoadsSnapshot,
    SnapshotAtLogStart,
    SnapshotGoesForward,
    VotersAreThoseOfTheLog,
)

ALL: Final[Sequence[type[Checker]]] = (
    SingleLeader,
    OneVote,
    VoteIsDurable,
    LeadershipIsDurable,
    VoteGoesToTheUpToDate,
    MonotonicEpoch,
    StepWithinFetchTimeout,
    LeaderCompleteness,
    LogMatching,
    ConsistentCommittedData,
    AcknowledgedStays,
    MonotonicHighWatermark,
    MajorityReachedHighWatermark,
    FlushedBeforeFetch,
    NoTruncationBelowHighWatermark,
    ReadersSeeCommitted,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    SnapshotGoesForward,
    VotersAreThoseOfTheLog,
    OverlappingMajorities,
    OneUncommittedChange,
    AnsweredChangeIsCommitted,
    EntriesAreWanted,
    RemovedLeaderResigns,
    RecoveryKeepsTheNewestLog,
    RecoveryLosesWhatItSays,
    RecoveryEpochIsNew,
    NewQuorumLeads,
)

Hook = Callable[..., None]

HOOKS: Final = (
    "started",
    "timed",
    "stepped",
    "persisted",
    "sending",
    "answering",
    "appended",
    "truncated",
    "trimmed",
    "installed",
    "led",
    "advanced",
    "applied",
    "acknowledged",
    "recovered",
)


class Checkers:
    """All checkers, except those that a scenario breaks on purpose. The attributes named in ``HOOKS`` are
    lists of the functions to call."""

    def __init__(self, nodes: Mapping[int, Checked], without: Sequence[type[Checker]] = ()) -> None:
        checkers = [kind(nodes) for kind in ALL if kind not in without]
        self.acknowledgements = AcknowledgedStays(nodes)
        self.majority = MajorityReachedHighWatermark(nodes)
        self.committed_data = ConsistentCommittedData(nodes)
        self.committed = NoTruncationBelowHighWatermark(nodes)
        self.equal_state = EqualState(nodes)
        self.shutdowns = ShutdownLeavesIsrs(nodes)
        self.stopped_is_never_active = StoppedIsNeverActive(nodes)
        self.all_apply = AllApplyAfterTheUpgrade(nodes)
        for checker in checkers:
            if isinstance(checker, AcknowledgedStays):
                self.acknowledgements = checker
            elif isinstance(checker, MajorityReachedHighWatermark):
                self.majority = checker
            elif isinstance(checker, ConsistentCommittedData):
                self.committed_data = checker
            elif isinstance(checker, NoTruncationBelowHighWatermark):
                self.committed = checker
        self.started = _hooks(checkers, "started")
        self.timed = _hooks(checkers, "timed")
        self.stepped = _hooks(checkers, "stepped")
        self.persisted = _hooks(checkers, "persisted")
        self.sending = _hooks(checkers, "sending")
        self.answering = _hooks(checkers, "answering")
        self.appended = _hooks(checkers, "appended")
        self.truncated = _hooks(checkers, "truncated")
        self.trimmed = _hooks(checkers, "trimmed")
        self.installed = _hooks(checkers, "installed")
        self.led = _hooks(checkers, "led")
        self.advanced = _hooks(checkers, "advanced")
        self.applied = _hooks(checkers, "applied")
        self.acknowledged = _hooks(checkers, "acknowledged")
        self.recovered = _hooks(checkers, "recovered")

    def add(self, checker: Checker) -> None:
        """Add a checker."""
        for name in HOOKS:
            getattr(self, name).extend(_hooks([checker], name))


def _hooks(checkers: Sequence[Checker], name: str) -> list[Hook]:
    return [getattr(c, name) for c in checkers if getattr(type(c), name) is not getattr(Checker, name)]
