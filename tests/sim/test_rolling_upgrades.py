"""Rolling upgrades in the simulator: the newer release writes records that the older one doesn't know."""

from __future__ import annotations

import pytest

from kraft_wire.sim.swarm import rolling_of
from tests.sim.planted_release_bugs import RELEASES
from tests.sim.scenario import assert_they_hold

SEEDS = 60
SEEDS_A_TEST = 10
SECONDS = 40
FIRST_SEED = {"replay_skips_the_record": 4, "the_older_release_is_started_again": 3}
"""The first seed that a planted bug is looked for with; 0 for the others."""


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_seeds_hold_during_rolling_upgrades(first: int) -> None:
    assert_they_hold(rolling_of(seed, SECONDS) for seed in range(first, first + SEEDS_A_TEST))


@pytest.mark.parametrize("name", RELEASES.names)
def test_a_planted_bug_is_found(name: str) -> None:
    RELEASES.find(name, lambda seed: rolling_of(seed, SECONDS), SEEDS, FIRST_SEED.get(name, 0))
