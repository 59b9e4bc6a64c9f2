"""Run one simulation: a safety phase under faults, a liveness phase in which a healed majority has to
converge, and a quiet phase in which leader and brokers have to be stable."""

from __future__ import annotations

from collections.abc import Callable
from traceback import format_exception

import msgspec

from kraft_wire.sim.checkers.exporters import ExportedIsCommitted
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.faults import ALL_FAULTS, Fault, Strike
from kraft_wire.sim.machines.cluster import Cluster
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.network.connections import LATEST_DUPLICATE_US
from kraft_wire.sim.options import Options
from kraft_wire.sim.population.exporters import Exporters
from kraft_wire.sim.population.population import Population
from kraft_wire.sim.population.workload import SECOND_US, Workload
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.swarm import safety_ms, schedule_of
from kraft_wire.sim.trace import Trace

CONVERGE_WITHIN_US = 20 * SECOND_US
SETTLE_WITHIN_US = 40 * SECOND_US
"""Brokers wait until the session of their former incarnation ends before they register, and join ISRs one by
one."""

LOOK_EVERY_US = 50 * MS
RESIGN_WITHIN_US = 5 * SECOND_US
"""One and a half fetch timeouts, the drift of slow clocks, and a margin."""

QUIET_US = 8 * SECOND_US
REQUESTS_ARRIVE_WITHIN_US = SECOND_US // 2
CHANGES_END_WITHIN_US = 2 * SECOND_US
"""The time limit of a change of the voters, and a margin."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. ``violation`` is None if every invariant held."""

    options: Options
    events: int
    simulated_seconds: float
    acknowledged: int
    hash: str
    violation: str | None = None
    details: str = ""

    @property
    def invariant(self) -> str | None:
        """The name of the violated invariant."""
        return None if self.violation is None else self.violation.partition(":")[0]


def simulate(options: Options, printer: Callable[[str], object] | None = None) -> Result:
    """Run to the end or to the first violation, and return the result."""
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
        self.exporters = _exporters(self.cluster) if options.exporters else None
        self._trace = trace
        self._highest_epoch_shut_out = 0
        self._chance = stream(options.seed, "phases")

    def run(self) -> None:
        for node in self.cluster.nodes.values():
            self.cluster.scheduler.after(self._chance.randrange(200 * MS), self.cluster.restart, node)
        self.workload.start()
        if self.population is not None:
            self.population.start()
        if self.exporters is not None:
            self.exporters.start()
        for fault in schedule_of(self.options):
            self.cluster.scheduler.at(fault.at_ms * MS, self._strike, fault)
        self.cluster.scheduler.run_until(safety_ms(self.options.seconds) * MS)
        self._heal_majority()
        self._heal_all()

    def _strike(self, fault: Fault) -> None:
        self._trace.add(f"{self.cluster.scheduler.now_us} fault {fault}")
        ALL_FAULTS[fault.kind](Strike(fault, self.cluster))

    # Liveness.

    def _heal_majority(self) -> None:
        """Heal some majority. The other nodes stay down, or their links to it or from it stay blocked."""
        cluster = self.cluster
        cluster.calm()
        if self.population is not None:
            self.population.calm()
        if self.exporters is not None:
            self.exporters.calm()
        cluster.disasters.end()
        cluster.operator.finish()
        if self.options.voters_change:
            self._await_changes()
        cluster.upgrade_all()
        core = self._choose_core()
        if "strangers" in self.options.fault_kinds or self.options.drafted:
            self._help_misled_observers()
        for node in cluster.nodes.values():
            if node not in core:
                self._shut_out(node, core)
        for node in core:
            node.start()
        self._trace.add(f"{cluster.scheduler.now_us} healed {[node.id for node in core]}")
        shut_out_us = cluster.scheduler.now_us
        self._converge(core, "Liveness")
        converged_us = cluster.scheduler.now_us
        cluster.scheduler.run_until(max(converged_us, shut_out_us + RESIGN_WITHIN_US))
        if self._lone_leaders(core):
            # Until the others converged, their Fetches may have reached a leader whose answers are lost.
            # Duplicates of these arrive later.
            cluster.scheduler.run_until(converged_us + LATEST_DUPLICATE_US + RESIGN_WITHIN_US)
        self._check_quorum(core)
        self._notice_absent_broker()

    def _await_changes(self) -> None:
        """Wait until no change of the voters is under way. A lone voter that adds a second one needs that
        one, which must not be shut out then."""
        scheduler = self.cluster.scheduler
        scheduler.run_until(scheduler.now_us + REQUESTS_ARRIVE_WITHIN_US)
        scheduler.run_until_true(
            lambda: not any(map(_is_changing_voters, self.cluster.nodes.values())),
            scheduler.now_us + CHANGES_END_WITHIN_US,
            LOOK_EVERY_US,
        )

    def _help_misled_observers(self) -> None:
        """Do what an operator has to do, now and every second: give an empty disk to each node outside of the
        quorum that has an epoch above the leader's. Strangers have told of it, or a voter that was removed
        while it was cut off: without pre-votes (KIP-853's draft) that one raises its epoch."""
        cluster, leader = self.cluster, self.cluster.leader
        cluster.scheduler.after(SECOND_US, self._help_misled_observers)
        if leader is None or not leader.raft.are_voters_committed:
            return
        for node in cluster.nodes.values():
            is_outside = not leader.raft.voters.is_voter(node.config.replica_key)
            if is_outside and node.is_up and node.raft.epoch > leader.raft.epoch:
                node.kill()
                cluster.replace_disk(node)
                node.start()

    def _check_quorum(self, core: list[SimNode]) -> None:
        """Check that every leader that doesn't reach a majority has resigned by now (KAFKA-15489)."""
        for node_id, epoch in self._lone_leaders(core):
            raise Violation("CheckQuorum", f"node {node_id} still leads epoch {epoch} alone")

    def _lone_leaders(self, core: list[SimNode]) -> list[tuple[int, int]]:
        """Return the ids and epochs of leaders outside of the majority."""
        others = (node for node in self.cluster.nodes.values() if node not in core)
        return [(node.id, node.leading[0]) for node in others if node.leading is not None]

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
        if self.options.voters_change:
            return self._choose_majority_of_all_sets()
        voters = [voter for voter in self.cluster.voters if voter.id not in self.cluster.reformatted]
        self._chance.shuffle(voters)
        voters.sort(key=self.cluster.may_have_lost)
        fewest = self.options.voters // 2 + 1
        return voters[: self._chance.randint(fewest, len(voters))]

    def _choose_majority_of_all_sets(self) -> list[SimNode]:
        """Return nodes with a majority of every voter set that is in effect on some node: a change that isn't
        committed may need it."""
        ids = list(self.cluster.nodes)
        self._chance.shuffle(ids)
        core: set[int] = set()
        for voters in self.cluster.voter_sets:
            working = {key.id for key in self.cluster.working(voters)}
            missing = len(voters) // 2 + 1 - len(core & working)
            core.update([id for id in ids if id in working and id not in core][: max(0, missing)])
        return [self.cluster.nodes[id] for id in ids if id in core]

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
        """Heal everything. The current leader has to stay."""
        cluster = self.cluster
        leader = cluster.leader
        assert leader is not None, "the majority has converged"
        assert leader.leading is not None
        epoch = leader.leading[0]
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
        self._await_exports()
        now_leads = cluster.leader
        if self.options.voters_change:
            self._check_not_stuck()
            return  # a removal of the leader may have been under way
        if self._highest_epoch_shut_out > epoch:
            return  # a node with a higher epoch came back, so that a new leader has to be elected
        if now_leads is not leader or leader.leading is None or leader.leading[0] != epoch:
            who = "nobody" if now_leads is None else f"{now_leads.id} in epoch {now_leads.raft.epoch}"
            raise Violation("StableLeadership", f"node {leader.id} led epoch {epoch}, now leads {who}")

    def _check_not_stuck(self) -> None:
        """Check that the voters can still be changed (ReconfigurationNotStuck)."""
        scheduler, changes = self.cluster.scheduler, self.cluster.voter_changes
        target = self._chance.choice(list(self.cluster.nodes.values()))
        before: tuple[int | None] | None = None
        deadline_us = scheduler.now_us + CONVERGE_WITHIN_US
        while scheduler.now_us < deadline_us:
            leader = self.cluster.leader
            if leader is not None and leader.raft.are_voters_committed:
                if before is None:
                    before, target = (leader.raft.voters_offset,), changes.lost_voter(leader) or target
                elif before != (leader.raft.voters_offset,):
                    return
                changes.upgrade(leader)
                if len(leader.raft.voters) == 1 and leader.raft.voters.get(target.id):
                    return  # the last voter stays
                changes.ask(leader, target)
            scheduler.run_until(scheduler.now_us + SECOND_US)
        states = "; ".join(_state_of(node) for node in self.cluster.nodes.values())
        raise Violation("ReconfigurationNotStuck", f"node {target.id} can't be changed: {states}")

    def _settle(self) -> None:
        """Wait until all brokers are unfenced and their replicas in sync."""
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

    def _await_exports(self) -> None:
        """Wait until the sink has everything that is committed now."""
        if self.exporters is None:
            return
        scheduler, sink = self.cluster.scheduler, self.exporters.sink
        end_offset = sink.rules.committed_end
        deadline_us = scheduler.now_us + SETTLE_WITHIN_US
        if not scheduler.run_until_true(lambda: sink.end_offset >= end_offset, deadline_us, LOOK_EVERY_US):
            seen = f"the sink has what is below {sink.end_offset}, {end_offset} is committed"
            raise Violation("EventuallyExported", seen)

    def _converge(self, nodes: list[SimNode], invariant: str) -> None:
        """Wait, for a bounded time, until there is one leader, a new record is committed, and all nodes have
        it."""
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
        # Records that were committed meanwhile needn't have reached every node.
        return all(node.is_up and node.applied_end > committed for node in nodes)


def _exporters(cluster: Cluster) -> Exporters:
    rules = ExportedIsCommitted(cluster.nodes)
    cluster.checkers.add(rules)
    chance = stream(cluster.options.seed, "exporters")
    return Exporters(cluster.scheduler, cluster.network.links, cluster.nodes, chance, rules)


def _is_changing_voters(node: SimNode) -> bool:
    """Whether a node leads, and a change of its voters isn't committed, or isn't even in the log."""
    if node.leading is None:
        return False
    return node.raft.is_changing_voters or not node.raft.are_voters_committed


def _epoch_of(node: SimNode) -> int:
    """Return the highest epoch that a node is in, will be in after a start, or may have voted in."""
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
