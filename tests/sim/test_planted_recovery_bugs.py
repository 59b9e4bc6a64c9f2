"""The simulator finds every planted bug of the recovery of a lost majority."""

from __future__ import annotations

import pytest

from kraft_wire.sim.swarm import membership_of
from tests.sim.planted_recovery_bugs import RECOVERY

SECONDS = 20
SEEDS = 40

FIRST_SEED: dict[str, int] = {
    "a_node_gives_up_committed_records": 50,
    "a_plan_takes_the_epoch_after_those_of_the_survivors": 443,
    "equal_logs_count_as_equal_folders": 1164,
    "the_longest_log_goes_on": 556,
    "the_kept_log_is_taken_for_committed": 26,
}
"""The first seed to try; 0 for the others."""


@pytest.mark.parametrize("name", RECOVERY.names)
def test_a_planted_bug_is_found(name: str) -> None:
    RECOVERY.find(name, lambda seed: membership_of(seed, SECONDS), SEEDS, FIRST_SEED.get(name, 0))


def test_there_are_enough_of_them() -> None:
    assert len(RECOVERY.names) >= 8
