"""Whole nodes in the simulator, with state machine and handlers."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.sim.machines import controller_node
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.machines.metadata_state import state_hash
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.simulation import simulate
from kraft_wire.sim.swarm import controllers_of
from tests.sim.commands import VERSION, set_broker_configs
from tests.sim.scenario import Scenario, assert_they_hold

SEEDS = 60
SEEDS_A_TEST = 10
SECONDS = 60


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_seeds_hold_with_whole_nodes(first: int) -> None:
    assert_they_hold(controllers_of(seed, SECONDS) for seed in range(first, first + SEEDS_A_TEST))


@pytest.mark.parametrize("seconds", [1, 2, 3])
def test_runs_that_end_before_the_brokers_begin_hold(seconds: int) -> None:
    assert_they_hold(controllers_of(seed, seconds) for seed in range(5))


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_that_was_suspended_checks_the_clock_before_it_decides(seed: int) -> None:
    """It would resign in the middle of its first decision, and confirm records that no other node has."""
    scenario = Scenario(seed, controllers=True).with_leader()
    scenario.workload.stop()
    scenario.run_for(1_000)
    leader = scenario.leader
    assert isinstance(leader, ControllerNode)
    answers: list[Message] = []
    leader.on_answer = lambda token, response: answers.append(response)
    leader.pause(10_000 * MS)
    for token in (1, 2):
        assert leader.ask((token,), set_broker_configs("1", {"num.io.threads": "9"}), VERSION)
    scenario.run_for(11_000)
    said = [answer.responses[0].error_code for answer in answers]  # type: ignore[attr-defined]
    assert said == [ErrorCode.NOT_CONTROLLER] * 2


def test_a_state_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = state_hash
    calls: list[None] = []

    def always_another(metadata: MetadataState) -> bytes:
        calls.append(None)
        return real(metadata) + str(len(calls)).encode()

    monkeypatch.setattr(controller_node, "state_hash", always_another)
    assert simulate(controllers_of(3, SECONDS)).invariant == "EqualState"
