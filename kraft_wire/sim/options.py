"""Define the options of a run. Two runs with equal options are the same run."""

from __future__ import annotations

from typing import Annotated

import msgspec

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.raft.config import MAX_WANTED_BYTES
from kraft_wire.sim.machines.handler_cost import HandlerCost
from kraft_wire.sim.machines.world import DiskSpeed
from kraft_wire.sim.network.connections import Faults
from kraft_wire.sim.network.links import LinkConditions

_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
_NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The options of a run.

    ``only`` names the faults of the schedule that happen, by number; None means all (see ``swarm``).
    ``retention_bytes`` is small enough that logs are trimmed. ``drift_ppm`` is the largest clock drift.
    ``handlers`` says how long the steps of nodes take.

    ``controllers`` runs whole nodes instead of raft cores alone, with ``brokers`` brokers around them. Their
    administrator creates topics with up to ``most_partitions``. ``slices`` says how much of a work is done in
    a step. ``has_elr`` is whether eligible.leader.replicas.version is 1. A run that ``has_inspector``
    compares the states of controllers by digests.

    With ``observers_only`` the observers never vote, and readers of the log read from them.

    With ``voters_change`` the voters change while the cluster runs; with ``auto_join`` nodes make themselves
    voters. If they are ``drafted``, they speak KIP-853's draft.

    With ``rolling_upgrade`` whole nodes start with an older release, which doesn't know the newer one's
    NoOpRecords.

    With ``exporters`` the leader exports what is committed. The log waits for it until it has
    ``max_wanted_bytes``.
    """

    seed: int
    seconds: _AtLeastOne = 120
    voters: _AtLeastOne = 3
    observers: _NotNegative = 0
    observers_only: bool = False
    kraft_version: int = 1
    proposals_per_second: int = 10
    value_bytes: int = 20
    snapshot_interval_ms: int = 10_000
    retention_bytes: int = 100_000
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    drift_ppm: int = 0
    fault_kinds: tuple[str, ...] = ()
    mean_fault_interval_ms: _AtLeastOne = 2_000
    link: LinkConditions = LinkConditions()
    messages: Faults = Faults()
    disk: DiskSpeed = DiskSpeed()
    handlers: HandlerCost = HandlerCost()
    slices: SliceLimits = SliceLimits()
    controllers: bool = False
    brokers: _NotNegative = 0
    most_partitions: _AtLeastOne = 4
    has_elr: bool = True
    has_inspector: bool = False
    voters_change: bool = False
    auto_join: bool = False
    drafted: bool = False
    rolling_upgrade: bool = False
    exporters: bool = False
    max_wanted_bytes: int = MAX_WANTED_BYTES
    only: tuple[int, ...] | None = None

    @property
    def ids(self) -> range:
        return range(1, self.voters + self.observers + 1)

    @property
    def broker_ids(self) -> range:
        return range(101, 101 + self.brokers)

    @property
    def voter_ids(self) -> range:
        return range(1, self.voters + 1)
