"""Steps that take simulated time."""

from __future__ import annotations

import pytest

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.sim.checkers.elections import StepWithinFetchTimeout
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.handler_cost import HandlerCost
from kraft_wire.sim.population.brokers import SimBroker
from kraft_wire.sim.population.population import Population
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.swarm import controllers_of, options_of
from kraft_wire.sim.trace import Trace
from tests.sim.planted_controller_bugs import planted
from tests.sim.scenario import Scenario

SEEDS = (0, 2)
SLOW = HandlerCost(step_us=50, decided_record_us=30_000, replayed_record_us=500)
FOR_EVER_US = 10**12


def test_the_effects_of_a_step_come_when_it_is_over() -> None:
    scenario = Scenario(0, voters=1, handlers=HandlerCost(step_us=5 * MS))
    (node,) = scenario.nodes
    node.start()
    assert node.raft.epoch == 1, "it elects itself at once"
    scenario.run_for(4)
    assert node.disk.election is None
    scenario.run_for(1)
    assert node.disk.election is not None


def test_a_process_that_dies_during_a_step_does_nothing_of_it() -> None:
    scenario = Scenario(0, voters=1, handlers=HandlerCost(step_us=5 * MS))
    (node,) = scenario.nodes
    node.start()
    node.kill()
    scenario.run_for(10)
    assert node.disk.election is None


@pytest.mark.parametrize("seed", SEEDS)
def test_others_go_on_while_a_leader_is_busy(seed: int) -> None:
    scenario = Scenario(seed, without=[StepWithinFetchTimeout]).with_leader()
    busy = scenario.leader
    busy.cost = HandlerCost(step_us=60_000 * MS)
    scenario.until(lambda: scenario.leader is not busy, 20_000)
    assert busy.leading is not None, "it knows nothing of that"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_with_a_step_as_long_as_the_fetch_timeout_is_noticed(seed: int) -> None:
    scenario = Scenario(seed).with_leader()
    scenario.leader.cost = HandlerCost(step_us=scenario.leader.config.fetch_timeout_ms * MS)
    with pytest.raises(Violation, match="StepWithinFetchTimeout"):
        scenario.run_for(5_000)


def _took_us(line: str) -> int:
    return int(line.rpartition(" takes ")[2])


def test_records_make_a_step_longer() -> None:
    lines: list[str] = []
    handlers = HandlerCost(step_us=7, replayed_record_us=100)
    Scenario(1, handlers=handlers, trace=Trace(lines.append)).with_leader().run_for(5_000)
    assert {_took_us(line) for line in lines if " propose 3 " in line} == {307}
    assert {_took_us(line) for line in lines if " flushed " in line} == {7}


def test_a_controller_decides_records_and_a_standby_replays_them() -> None:
    lines: list[str] = []
    handlers = HandlerCost(decided_record_us=1_000, replayed_record_us=1)
    trace = Trace(lines.append)
    Scenario(1, controllers=True, brokers=3, handlers=handlers, trace=trace).with_leader().run_for(10_000)
    timed = [line for line in lines if " takes " in line]
    decided = {_took_us(line) for line in timed if " CreateTopicsRequest " in line and " Leader " in line}
    assert decided and all(took_us % 1_000 == 0 for took_us in decided)
    replayed = {_took_us(line) for line in timed if " CommittedBatches " in line and " Follower " in line}
    assert replayed and max(replayed) < 1_000


@pytest.mark.parametrize("draw", [options_of, controllers_of])
def test_seeds_differ_in_the_time_that_steps_take(draw: type) -> None:
    options = [draw(seed) for seed in range(50)]
    assert {each.handlers.step_us for each in options} >= {0, 2_500}
    assert len({each.handlers for each in options}) > 20


class ManyPartitions(Scenario):
    """Three slow controllers, and three brokers with so many partitions that all of them in one step take
    longer than the fetch timeout."""

    def __init__(self, seed: int) -> None:
        super().__init__(
            seed,
            3,
            controllers=True,
            brokers=3,
            most_partitions=40,
            proposals_per_second=10,
            handlers=SLOW,
            slices=SliceLimits(window_rows=8, few_changes=0),
            without=[StepWithinFetchTimeout],
        )
        self.with_leader()
        self.until(lambda: self.places_of(self.chosen) > 150, 300_000)
        self.everybody.stop()
        self.run_for(5_000)
        assert self.places_of(self.chosen) > 100

    @property
    def everybody(self) -> Population:
        assert self.population is not None
        return self.population

    @property
    def chosen(self) -> SimBroker:
        """The broker in the most ISRs."""
        return max(self.everybody.brokers.values(), key=self.places_of)

    def places_of(self, broker: SimBroker) -> int:
        """Return the number of partitions whose ISR has the broker."""
        return len(self.everybody.committed.state.partitions.with_isr_member(broker.id))


def _a_broker_shuts_down(scenario: ManyPartitions) -> None:
    leader, led = scenario.leader, scenario.leader.leading
    broker = scenario.chosen
    broker.shut_down(FOR_EVER_US)
    scenario.until(lambda: not broker.is_up, 15_000)
    assert scenario.leader is leader and leader.leading == led, "the shutdown cost it its leadership"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_controlled_shutdown_costs_no_leader_its_leadership(seed: int) -> None:
    _a_broker_shuts_down(ManyPartitions(seed))
    scenario = ManyPartitions(seed)
    with planted("a_work_is_done_in_one_step"), pytest.raises(AssertionError, match=r"leadership|not within"):
        _a_broker_shuts_down(scenario)
