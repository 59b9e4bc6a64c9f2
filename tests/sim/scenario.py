"""Direct a cluster from a test: which nodes run, which links work, and what to wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import Any

import msgspec

from kraft_wire.sim.checkers.checker import Checker
from kraft_wire.sim.machines.cluster import Cluster
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.network.connections import PORT, host_of, other_host_of
from kraft_wire.sim.options import Options
from kraft_wire.sim.population.population import Population
from kraft_wire.sim.population.workload import Workload
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.simulation import simulate
from kraft_wire.sim.trace import Trace

WITHIN_MS = 60_000
LONG_EVERY = 4
"""Every so many seeds one is long."""


def seconds_of(seed: int, short: int, long: int) -> int:
    """Return how long a seed is simulated: every fourth is long."""
    return short if seed % LONG_EVERY else long


def assert_they_hold(runs: Iterable[Options]) -> None:
    """Check that every run holds, and that at least one of them acknowledges records."""
    acknowledged = 0
    for options in runs:
        result = simulate(options)
        replay = msgspec.json.encode(result.options).decode()
        assert result.violation is None, f"kraft-wire sim --trace --options '{replay}'\n{result.details}"
        assert result.simulated_seconds >= options.seconds
        acknowledged += result.acknowledged
    assert acknowledged > 0


class Scenario:
    """A cluster of nodes 1 to ``voters``, and observers after them. Clients propose records from ``started``
    on."""

    def __init__(
        self,
        seed: int,
        voters: int = 3,
        observers: int = 0,
        *,
        without: Sequence[type[Checker]] = (),
        trace: Trace | None = None,
        **settings: Any,
    ) -> None:
        settings.setdefault("proposals_per_second", 40)
        settings.setdefault("kraft_version", seed % 2)
        self.options = Options(seed=seed, voters=voters, observers=observers, **settings)
        self.cluster = Cluster(self.options, trace or Trace(), without)
        self.workload = Workload(self.cluster)
        self.population = Population(self.cluster) if self.options.brokers else None
        self.chance = stream(seed, "scenario")

    @property
    def nodes(self) -> list[SimNode]:
        return list(self.cluster.nodes.values())

    @property
    def leader(self) -> SimNode:
        leader = self.cluster.leader
        assert leader is not None
        return leader

    # Actions.

    def started(self) -> Scenario:
        for node in self.nodes:
            node.start()
        self.workload.start()
        if self.population is not None:
            self.population.start()
        return self

    def with_leader(self, committed: int = 10) -> Scenario:
        """Start, and wait until ``committed`` records are committed."""
        self.started()
        self.until(self.has_consistent_leader)
        self.until(lambda: self.committed >= committed)
        return self

    def isolate(self, node: SimNode) -> None:
        self.cut([pair for pair in permutations(self.cluster.nodes, 2) if node.id in pair])

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.cluster.network.links.block(pairs)

    def leave_only(self, edges: Iterable[tuple[int, int]]) -> None:
        """Block all links between voters except these pairs, in both directions. Observers reach all
        nodes."""
        open_pairs = {pair for one, other in edges for pair in ((one, other), (other, one))}
        self.cut(pair for pair in permutations(self.options.voter_ids, 2) if pair not in open_pairs)

    def make_unroutable(self, node: SimNode, other_id: int) -> None:
        """Let a node reach another one only at the bootstrap servers' addresses, which differ now."""
        servers = tuple((other_host_of(voter_id), PORT) for voter_id in self.options.voter_ids)
        node.config = msgspec.structs.replace(node.config, bootstrap_servers=servers)
        self.cluster.network.unroutable.add((node.id, host_of(other_id)))

    def heal(self) -> None:
        self.cluster.network.links.unblock_all()

    # Waiting.

    def until(self, condition: Callable[[], bool], within_ms: int = WITHIN_MS, poll_us: int = 5 * MS) -> None:
        scheduler = self.cluster.scheduler
        end_us = scheduler.now_us + within_ms * MS
        assert scheduler.run_until_true(condition, end_us, poll_us), f"not within {within_ms} ms"

    def run_for(self, ms: int) -> None:
        self.cluster.scheduler.run_until(self.cluster.scheduler.now_us + ms * MS)

    # Looking.

    @property
    def committed(self) -> int:
        """The highest high watermark of any node."""
        return max((node.high_watermark for node in self.nodes if node.is_up), default=0)

    def has_consistent_leader(self) -> bool:
        """Whether all running nodes agree on the leader and its epoch."""
        views = {(node.raft.epoch, node.raft.leader_id) for node in self.nodes if node.is_up}
        return len(views) == 1 and None not in next(iter(views))

    def all_reached(self, offset: int, nodes: Iterable[SimNode] | None = None) -> bool:
        chosen = self.nodes if nodes is None else nodes
        return all(node.high_watermark >= offset for node in chosen if node.is_up)
