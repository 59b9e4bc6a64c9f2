"""Run brokers and an administrator beside the controllers, and check what the controllers answer and whether
all brokers recover."""

from __future__ import annotations

from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.sim.checkers.committed import CommittedMetadata
from kraft_wire.sim.checkers.confirmations import Confirmations
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.cluster import Cluster
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.machines.metadata_state import state_hash
from kraft_wire.sim.network.connections import CLUSTER_ID, Faults
from kraft_wire.sim.population.administrators import Administrator
from kraft_wire.sim.population.brokers import BrokerWorld, SimBroker
from kraft_wire.sim.population.clients import Clients
from kraft_wire.sim.population.inspectors import Inspector
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS

NEVER_US = 10**15


class Population:
    """The brokers of a run, which faults hit, one administrator, and in some runs one inspector."""

    def __init__(self, cluster: Cluster) -> None:
        options = cluster.options
        controllers = {id: node for id, node in cluster.nodes.items() if isinstance(node, ControllerNode)}
        self.committed = CommittedMetadata(cluster.nodes)
        cluster.checkers.add(self.committed)
        confirmations = Confirmations(self.committed, cluster.checkers.acknowledgements)
        self.clients = Clients(
            cluster.scheduler,
            cluster.network.links,
            controllers,
            confirmations.check,
            stream(options.seed, "clients"),
            options.messages,
        )
        self.brokers = cluster.brokers
        self._world = BrokerWorld(
            cluster.scheduler,
            cluster.world.trace,
            self.clients,
            self.committed,
            cluster.nodes,
            self.brokers,
            CLUSTER_ID,
        )
        for id in options.broker_ids:
            self.brokers[id] = SimBroker(id, self._world, stream(options.seed, f"broker {id}"))
        chance = stream(options.seed, "administrator")
        self.administrator = Administrator(
            self._world, chance, options.proposals_per_second, options.most_partitions
        )
        inspector = Inspector(self._world, stream(options.seed, "inspector"))
        self.inspector = inspector if options.has_inspector else None
        self._absent = chance.sample(list(self.brokers.values()), min(1, len(self.brokers)))
        self._known_by_all = 0
        self._scheduler = cluster.scheduler

    def start(self) -> None:
        for broker in self.brokers.values():
            self._scheduler.after(2_000 * MS, self._start_first, broker)
        self.administrator.start()
        if self.inspector is not None:
            self.inspector.start()

    def _start_first(self, broker: SimBroker) -> None:
        """Start a broker, unless the faults are over: then it runs already, or is to stay absent."""
        if not self._world.is_calm:
            broker.start()

    def stop(self) -> None:
        self.administrator.stop()
        if self.inspector is not None:
            self.inspector.stop()

    def calm(self) -> None:
        """End the faults of brokers, but kill one: controllers have to notice that (KAFKA-18138)."""
        self._world.is_calm = True
        self._known_by_all = self.committed.end_offset
        self.clients.faults = Faults()
        for broker in self.brokers.values():
            broker.calm()
        for broker in self._absent:
            broker.kill(NEVER_US)

    def let_up(self) -> None:
        """Start the brokers that were kept down."""
        for broker in self._absent:
            broker.start()

    def unnoticed(self) -> str | None:
        """Return a dead broker that isn't fenced, as text (EventuallyFenced)."""
        for broker in self._absent:
            registered = self.committed.state.brokers.get(broker.id)
            if registered is not None and not registered.fenced:
                return f"dead broker {broker.id} is {registered}"
        return None

    # The end of a run.

    def check_replay(self) -> None:
        """Check that the committed log, replayed again and from a snapshot, leads to the same state."""
        state = self.committed.state
        again = MetadataState()
        for offset, record in self.committed.records:
            again.replay(record, offset)
        records = [record for record, _ in snapshot_records(state)]
        loaded = MetadataState.from_snapshot(records, self.committed.end_offset - 1)
        if not state_hash(state) == state_hash(again) == state_hash(loaded):
            raise Violation("EqualState", f"replayed again the log makes another state: {records}")
        if self.inspector is not None:
            self.inspector.check_log(self.committed.records)

    def unsettled(self) -> str | None:
        """Return what has not recovered yet, as text (EventuallyUnfenced, EventuallyMetadataConverges)."""
        state = self.committed.state
        for broker in self.brokers.values():
            registered = state.brokers.get(broker.id)
            if registered is None or registered.epoch != broker.epoch or registered.fenced:
                return f"broker {broker.id} of epoch {broker.epoch} is {registered}"
            if broker.is_stopping:
                return f"broker {broker.id} waits to be let go"
            if broker.view_end <= self._known_by_all:
                return f"broker {broker.id} has read up to {broker.view_end}"
        for topic in state.topics:
            for index, partition in state.partitions.indexed(topic.id):
                if not self._is_settled(partition):
                    return f"{topic.name}-{index} is {partition}"
        return None

    def _is_settled(self, partition: Partition) -> bool:
        """Whether all replicas are in sync, or no replica may lead because all may lack committed records."""
        if partition.leader != NO_LEADER:
            return set(partition.isr) == set(partition.replicas)
        return not {*partition.isr, *partition.elr} and len(partition.last_known_elr) != 1
