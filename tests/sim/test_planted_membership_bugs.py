"""The simulator finds every planted bug of changes of the voters."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kraft_wire.sim.options import Options
from kraft_wire.sim.swarm import membership_of
from tests.sim.planted_membership_bugs import MEMBERSHIP

SECONDS = 30
SEEDS = 40

FIRST_SEED = {
    "a_removed_leader_counts_itself": 34,
    "another_directory_counts_as_the_voter": 28,
    "the_end_of_a_change_is_forgotten": 4,
    "voters_are_sought_at_the_addresses_of_the_log_alone": 8,
}
"""The first seed to try; 0 for the others."""

CONDITIONS: dict[str, dict[str, Any]] = {
    "an_entry_counts_whatever_its_voter_says": {
        "kraft_version": 1,
        "drafted": False,
        "fault_kinds": ("strangers",),
        "mean_fault_interval_ms": 50,
    },
    "the_end_of_a_change_is_forgotten": {"seconds": 10},
    "voters_are_sought_at_the_addresses_of_the_log_alone": {
        "kraft_version": 1,
        "voters": 5,
        "observers": 0,
        "drafted": False,
        "fault_kinds": ("move", "power-cut-everywhere"),
        "mean_fault_interval_ms": 100,
    },
}
"""Options that a bug needs and that few seeds have."""


def _options(name: str, seed: int) -> Options:
    return msgspec.structs.replace(membership_of(seed, SECONDS), **CONDITIONS.get(name, {}))


@pytest.mark.parametrize("name", MEMBERSHIP.names)
def test_a_planted_bug_is_found(name: str) -> None:
    MEMBERSHIP.find(name, lambda seed: _options(name, seed), SEEDS, FIRST_SEED.get(name, 0))


def test_there_are_enough_of_them() -> None:
    assert len(MEMBERSHIP.names) >= 10
