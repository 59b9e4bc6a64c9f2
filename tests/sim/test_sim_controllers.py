"""Whole nodes in the simulator: state machine and handlers, under changes of settings."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.metadata.state import MetadataState
from kraft_wire.sim import controller_node
from kraft_wire.sim.options import Options
from kraft_wire.sim.simulation import simulate
from kraft_wire.sim.swarm import options_of

SEEDS = 100
SEEDS_A_TEST = 10
SECONDS = 60


def _options(seed: int) -> Options:
    return msgspec.structs.replace(options_of(seed, SECONDS), controllers=True)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_seeds_hold_with_whole_nodes(first: int) -> None:
    acknowledged = 0
    for seed in range(first, first + SEEDS_A_TEST):
        result = simulate(_options(seed))
        replay = msgspec.json.encode(result.options).decode()
        assert result.violation is None, f"kraft-wire sim --trace --options '{replay}'\n{result.details}"
        acknowledged += result.acknowledged
    assert acknowledged > 0


def test_a_state_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = controller_node.state_hash
    calls: list[None] = []

    def always_another(metadata: MetadataState) -> bytes:
        calls.append(None)
        return real(metadata) + str(len(calls)).encode()

    monkeypatch.setattr(controller_node, "state_hash", always_another)
    assert simulate(_options(3)).invariant == "EqualState"
