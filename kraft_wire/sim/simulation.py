"""One run: a safety phase under faults, a liveness phase in which a healed majority has to converge, and a
quiet time in which nothing may happen any more."""

from __future__ import annotations

from collections.abc import Callable
from traceback import format_exception

import msgspec

from kraft_wire.sim.cluster import Cluster
from kraft_wire.sim.controller_node import ControllerNode
from kraft_wire.sim.faults import BROKER_FAULTS, FAULTS, Fault, Strike
from kraft_wire.sim.node import SimNode
from kraft_wire.sim.options import Options
from kraft_wire.sim.population import Population
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.swarm import safety_ms, schedule_of
from kraft_wire.sim.trace import Trace
from kraft_wire.sim.violations import Violation
from kraft_wire.sim.workload import SECOND_US, Workload

CONVERGE_WITHIN_US = 20 * SECOND_US
SETTLE_WITHIN_US = 40 * SECOND_US
"""Brokers wait for sessions of the former ones to end before they register, and join ISRs one by one."""

LOOK_EVERY_US = 50 * MS
RESIGN_WITHIN_US = 5 * SECOND_US
"""One and a half fetch timeouts, clocks that run slow, and a margin."""

QUIET_US = 8 * SECOND_US


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to. ``violation`` is None for a good one."""

    options: Options
    events: int
    simulated_seconds: float
    acknowledged: int
    hash: str
    violation: str | None = None
    details: str = ""

    @property
    def invariant(self) -> str | None:
        """The name of what was violated."""
        return None if self.violation is None else self.violation.partition(":")[0]


def simulate(options: Options, printer: Callable[[str], object] | None = None) -> Result:
    """Run to the end, or to the first violation."""
    trace = Trace(printer)
    run = Simulation(options, trace)
    violation, details = None, ""
    try:
        run.run()
    except Violation as error:
        violation, details = str(error), "".join(format_exception(error))
        trace.add(violation)
    return Result(
        options=options,
        events=run.cluster.scheduler.events,
        simulated_seconds=run.cluster.scheduler.now_us / SECOND_US,
        acknowledged=run.cluster.checkers.acknowledgements.count,
        hash=trace.hexdigest,
        violation=violation,
        details=details,
    )


class Simulation:
    """The phases of a run."""

    def __init__(self, options: Options, trace: Trace) -> None:
        self.options = options
        self.cluster = Cluster(options, trace)
        self.workload = Workload(self.cluster)
        self.population = Population(self.cluster) if options.controllers else None
        self._trace = trace
        self._highest_epoch_shut_out = 0
        self._chance = stream(options.seed, "phases")

    def run(self) -> None:
        for node in self.cluster.nodes.values():
            self.cluster.scheduler.after(self._chance.randrange(200 * MS), self.cluster.restart, node)
        self.workload.start()
        if self.population is not None:
            self.population.start()
        for fault in schedule_of(self.options):
            self.cluster.scheduler.at(fault.at_ms * MS, self._strike, fault)
        self.cluster.scheduler.run_until(safety_ms(self.options.seconds) * MS)
        self._heal_majority()
        self._heal_all()

    def _strike(self, fault: Fault) -> None:
        self._trace.add(f"{self.cluster.scheduler.now_us} fault {fault}")
        strike = FAULTS.get(fault.kind) or BROKER_FAULTS[fault.kind]
        strike(Strike(fault, self.cluster))

    # Liveness.

    def _heal_majority(self) -> None:
        """Some majority gets well; the others stay dead, or out of its hearing, or are heard without
        hearing."""
        cluster = self.cluster
        cluster.calm()
        if self.population is not None:
            self.population.calm()
        core = self._choose_core()
        for node in cluster.nodes.values():
            if node not in core:
                self._shut_out(node, core)
        for node in core:
            node.start()
        self._trace.add(f"{cluster.scheduler.now_us} healed {[node.id for node in core]}")
        shut_out_us = cluster.scheduler.now_us
        self._converge(core, "Liveness")
        cluster.scheduler.run_until(max(cluster.scheduler.now_us, shut_out_us + RESIGN_WITHIN_US))
        self._check_quorum(core)
        self._notice_absent_broker()

    def _check_quorum(self, core: list[SimNode]) -> None:
        """Whoever leads without hearing of a majority has noticed by now (KAFKA-15489)."""
        for node in self.cluster.nodes.values():
            if node not in core and node.leading is not None:
                raise Violation("CheckQuorum", f"node {node.id} still leads epoch {node.leading[0]} alone")

    def _notice_absent_broker(self) -> None:
        population, scheduler = self.population, self.cluster.scheduler
        if population is None:
            return
        deadline_us = scheduler.now_us + SETTLE_WITHIN_US
        if not scheduler.run_until_true(
            lambda: population.unnoticed() is None, deadline_us, 10 * LOOK_EVERY_US
        ):
            raise Violation("EventuallyFenced", str(population.unnoticed()))
        population.let_up()

    def _choose_core(self) -> list[SimNode]:
        voters = [voter for voter in self.cluster.voters if voter.id not in self.cluster.reformatted]
        self._chance.shuffle(voters)
        voters.sort(key=self.cluster.may_have_lost)
        fewest = self.options.voters // 2 + 1
        return voters[: self._chance.randint(fewest, len(voters))]

    def _shut_out(self, node: SimNode, core: list[SimNode]) -> None:
        self._highest_epoch_shut_out = max(self._highest_epoch_shut_out, _epoch_of(node))
        how = self._chance.choice(("down", "isolated", "mute", "deaf"))
        if how == "down":
            self.cluster.keep_down(node)
            return
        if how in ("isolated", "mute"):
            self.cluster.network.links.block([(node.id, other.id) for other in core])
        if how in ("isolated", "deaf"):
            self.cluster.network.links.block([(other.id, node.id) for other in core])

    def _heal_all(self) -> None:
        """Everybody comes back, and the leader that there is stays."""
        cluster = self.cluster
        leader = cluster.leader
        assert leader is not None, "the majority has converged"
        epoch = leader.raft.epoch
        cluster.network.links.unblock_all()
        cluster.let_up()
        self._trace.add(f"{cluster.scheduler.now_us} healed all")
        self._converge(list(cluster.nodes.values()), "Liveness")
        self._settle()
        fencings = 0 if self.population is None else self.population.committed.fencings
        whole_run_us = (self.options.seconds - 1) * SECOND_US
        cluster.scheduler.run_until(max(cluster.scheduler.now_us + QUIET_US, whole_run_us))
        self._converge(list(cluster.nodes.values()), "Liveness")
        if self.population is not None and self.population.committed.fencings > fencings:
            raise Violation("NoFencingInPeace", "a broker was fenced, though nothing is wrong")
        self.workload.stop()
        if self.population is not None:
            self.population.stop()
        cluster.scheduler.run_until(cluster.scheduler.now_us + SECOND_US)
        self._check_states()
        now_leads = cluster.leader
        if self._highest_epoch_shut_out > epoch:
            return  # it was ahead before it was shut out: nobody can lead over it without overtaking it
        if now_leads is not leader or leader.raft.epoch != epoch:
            who = "nobody" if now_leads is None else f"{now_leads.id} in epoch {now_leads.raft.epoch}"
            raise Violation("StableLeadership", f"node {leader.id} led epoch {epoch}, now leads {who}")

    def _settle(self) -> None:
        """Brokers are unfenced, and their replicas in sync."""
        if self.population is None:
            return
        scheduler, population = self.cluster.scheduler, self.population
        deadline_us = scheduler.now_us + SETTLE_WITHIN_US
        if not scheduler.run_until_true(
            lambda: population.unsettled() is None, deadline_us, 10 * LOOK_EVERY_US
        ):
            raise Violation("EventuallyUnfenced", str(population.unsettled()))

    def _check_states(self) -> None:
        if self.population is None:
            return
        self._settle()
        self.population.check_replay()
        for node in self.cluster.nodes.values():
            if isinstance(node, ControllerNode):
                node.look_at_whole_state()

    def _converge(self, nodes: list[SimNode], invariant: str) -> None:
        """Within bounded time there is one leader, a new record commits, and all have what it has."""
        scheduler = self.cluster.scheduler
        deadline_us = scheduler.now_us + CONVERGE_WITHIN_US
        committed = self.cluster.checkers.majority.end_offset
        if not scheduler.run_until_true(
            lambda: self._have_converged(nodes, committed), deadline_us, LOOK_EVERY_US
        ):
            raise Violation(invariant, "; ".join(_state_of(node) for node in self.cluster.nodes.values()))

    def _have_converged(self, nodes: list[SimNode], committed: int) -> bool:
        leader = self.cluster.leader
        if leader is None or leader not in nodes or leader.high_watermark <= committed:
            return False
        return all(node.is_up and node.applied_end >= self._goal(leader, committed) for node in nodes)

    def _goal(self, leader: SimNode, committed: int) -> int:
        """More than was committed before; what goes on being proposed needn't have reached everybody."""
        return committed + 1


def _epoch_of(node: SimNode) -> int:
    """The highest epoch that a node is in, will be in when it starts, or asks for when it is to vote."""
    epoch = node.raft.epoch if node.is_up else node.disk.recovered_epoch
    return max(epoch, node.disk.no_vote_up_to_epoch)


def _state_of(node: SimNode) -> str:
    if not node.is_up:
        return f"node {node.id} is down"
    raft = node.raft
    return (
        f"node {node.id} is {raft.role.value} of {raft.leader_id} in epoch {raft.epoch},"
        f" has {raft.log_start_offset} to {raft.log_end_offset}, flushed {raft.flushed_offset},"
        f" applied {node.applied_end}, lost below {node.disk.lost_below}"
    )
