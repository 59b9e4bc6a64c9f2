"""The simulator finds bugs in what readers of an observer may read."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.raft.core import RaftCore
from kraft_wire.sim.options import Options
from kraft_wire.sim.swarm import membership_of, options_of
from tests.sim.planting import Bugs, Patch

SECONDS = 30
SEEDS = 10
READERS = Bugs()
bug = READERS.bug


@bug("ReadersSeeCommitted")
def readers_read_to_the_end_of_the_log(patch: Patch) -> None:
    patch.attribute(RaftCore, "read_end_offset", property(lambda core: core.log_end_offset))


@bug("ReadersSeeCommitted")
def readers_hear_of_an_epoch_before_it_has_committed_anything(patch: Patch) -> None:
    patch.attribute(RaftCore, "read_epoch", property(lambda core: core.epoch))


@bug("ReadersSeeCommitted")
def readers_read_to_the_high_watermark_of_a_leader_in_doubt(patch: Patch) -> None:
    patch.attribute(
        RaftCore,
        "read_end_offset",
        property(lambda core: 0 if core.leader_id is None else core._quorum.committed_offset),
    )


def _observed(seed: int) -> Options:
    return msgspec.structs.replace(
        options_of(seed, SECONDS), voters=3, observers=2, observers_only=True, mean_fault_interval_ms=1_000
    )


@pytest.mark.parametrize("name", READERS.names)
def test_a_planted_bug_is_found(name: str) -> None:
    READERS.find(name, _observed, SEEDS)


def test_half_of_the_seeds_have_observers_that_never_vote() -> None:
    only = [options_of(seed).observers_only for seed in range(1_000)]
    assert 400 < sum(only) < 600
    assert not any(membership_of(seed).observers_only for seed in range(100)), "these add observers as voters"
