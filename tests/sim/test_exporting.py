"""Exporters in the simulator: exported is what is committed, in order, and nothing is missing."""

from __future__ import annotations

import pytest

from kraft_wire.sim.swarm import exporting_of
from tests.sim.planted_exporter_bugs import EXPORTING
from tests.sim.scenario import assert_they_hold

SEEDS = 60
SEEDS_A_TEST = 10
SECONDS = 40
FIRST_SEED = {"a_gap_is_told_once_though_it_grew": 3, "an_exporter_gives_up": 9}
"""The first seed that a planted bug is looked for with; 0 for the others."""


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_seeds_hold_with_exporters(first: int) -> None:
    assert_they_hold(exporting_of(seed, SECONDS) for seed in range(first, first + SEEDS_A_TEST))


@pytest.mark.parametrize("name", EXPORTING.names)
def test_a_planted_bug_is_found(name: str) -> None:
    EXPORTING.find(name, lambda seed: exporting_of(seed, SECONDS), SEEDS, FIRST_SEED.get(name, 0))
