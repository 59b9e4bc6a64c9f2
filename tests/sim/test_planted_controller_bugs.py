"""Whatever is broken in the controller, the invariants of the metadata find it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from planted_controller_bugs import BUGS, FOUND_BY, planted

from kraft_wire.sim.options import Options
from kraft_wire.sim.simulation import simulate
from kraft_wire.sim.swarm import controllers_of

SECONDS = 60
SEEDS = 30

CONDITIONS: dict[str, dict[str, Any]] = {
    "a_leader_that_stood_still_decides_first": {
        "voters": 3,
        "fault_kinds": ("pause",),
        "mean_fault_interval_ms": 300,
        "proposals_per_second": 40,
    },
    "a_fenced_broker_is_never_unfenced_on_a_busy_log": {"proposals_per_second": 100},
}
"""What a bug needs that few seeds bring with them."""


def _options(name: str, seed: int) -> Options:
    return msgspec.structs.replace(controllers_of(seed, SECONDS), **CONDITIONS.get(name, {}))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    for seed in range(SEEDS):
        with planted(name):
            result = simulate(_options(name, seed))
        if result.invariant in FOUND_BY[name]:
            assert simulate(_options(name, seed)).violation is None, "without the bug nothing is wrong"
            return
    pytest.fail(f"{name} was not found in {SEEDS} seeds by {FOUND_BY[name]}")
