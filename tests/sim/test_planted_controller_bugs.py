"""The invariants of the metadata find every planted bug of the controller."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.sim.machines.handler_cost import HandlerCost
from kraft_wire.sim.options import Options
from kraft_wire.sim.swarm import controllers_of
from tests.sim.planted_controller_bugs import CONTROLLER

SECONDS = 60
SEEDS = 30

FIRST_SEED = {
    "a_digest_is_told_before_its_commit": 19,
    "a_broker_that_has_arrived_counts_as_active_for_ever": 0,
    "a_fenced_broker_is_never_unfenced_on_a_busy_log": 5,
    "heartbeats_of_former_incarnations_count": 8,
    "what_is_lost_with_leadership_is_not_undone": 13,
    "a_silent_broker_is_not_noticed_after_failover": 3,
    "a_leaders_old_view_is_believed": 2,
    "an_answer_tells_of_the_partition_as_it_was": 2,
    "a_fenced_replica_joins_the_isr": 2,
    "a_replica_of_a_former_incarnation_joins_the_isr": 3,
}
"""The first seed to try; 0 for the others. They change with what a seed stands for, such as the time that
steps take."""

CONDITIONS: dict[str, dict[str, Any]] = {
    "a_digest_is_told_before_its_commit": {
        "voters": 3,
        "fault_kinds": ("isolate", "split"),
        "mean_fault_interval_ms": 300,
        "proposals_per_second": 20,
        "has_inspector": True,
    },
    "a_leader_that_stood_still_decides_first": {
        "voters": 3,
        "fault_kinds": ("pause",),
        "mean_fault_interval_ms": 300,
        "proposals_per_second": 40,
    },
    "a_fenced_broker_is_never_unfenced_on_a_busy_log": {"proposals_per_second": 100},
    "a_broker_that_has_arrived_counts_as_active_for_ever": {
        "voters": 3,
        "brokers": 4,
        "most_partitions": 30,
        "handlers": HandlerCost(step_us=50, decided_record_us=30_000, replayed_record_us=500),
        "slices": SliceLimits(window_rows=2, few_changes=0, most_considered=2),
        "fault_kinds": ("shut-down-broker", "kill-broker"),
        "mean_fault_interval_ms": 1500,
        "proposals_per_second": 5,
    },
    "a_work_is_done_in_one_step": {
        "voters": 3,
        "brokers": 4,
        "most_partitions": 30,
        "handlers": HandlerCost(step_us=50, decided_record_us=30_000, replayed_record_us=500),
        "slices": SliceLimits(window_rows=8, few_changes=0),
        "proposals_per_second": 5,
        "fault_kinds": ("shut-down-broker", "kill-broker"),
    },
}
"""Options that a bug needs and that few seeds have."""


def _options(name: str, seed: int) -> Options:
    return msgspec.structs.replace(controllers_of(seed, SECONDS), **CONDITIONS.get(name, {}))


@pytest.mark.parametrize("name", CONTROLLER.names)
def test_a_planted_bug_is_found(name: str) -> None:
    CONTROLLER.find(name, lambda seed: _options(name, seed), SEEDS, FIRST_SEED.get(name, 0))
