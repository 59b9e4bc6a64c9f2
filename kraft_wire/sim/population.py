"""Who lives off the controllers of a run: brokers and administrators, what they are told, and whether it ends
well for them."""

from __future__ import annotations

from kraft_wire.metadata.partition import NO_LEADER, Partition
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.sim.administrators import Administrator
from kraft_wire.sim.brokers import BrokerWorld, SimBroker
from kraft_wire.sim.clients import Clients
from kraft_wire.sim.cluster import CLUSTER_ID, Cluster
from kraft_wire.sim.committed import CommittedMetadata
from kraft_wire.sim.confirmations import Confirmations
from kraft_wire.sim.controller_node import ControllerNode, state_hash
from kraft_wire.sim.network import Faults
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.violations import Violation

NEVER_US = 10**15


class Population:
    """Brokers, which faults hit, and one administrator."""

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
        self.administrator = Administrator(self._world, chance, options.proposals_per_second)
        self._absent = chance.sample(list(self.brokers.values()), min(1, len(self.brokers)))
        self._known_by_all = 0
        self._scheduler = cluster.scheduler

    def start(self) -> None:
        for broker in self.brokers.values():
            self._scheduler.after(2_000 * MS, self._start_first, broker)
        self.administrator.start()

    def _start_first(self, broker: SimBroker) -> None:
        """In peace they run already, but for who is absent."""
        if not self._world.is_calm:
            broker.start()

    def stop(self) -> None:
        self.administrator.stop()

    def calm(self) -> None:
        """No more faults of brokers, but that one dies now: it has to be noticed (KAFKA-18138)."""
        self._world.is_calm = True
        self._known_by_all = self.committed.end_offset
        self.clients.faults = Faults()
        for broker in self.brokers.values():
            broker.calm()
        for broker in self._absent:
            broker.kill(NEVER_US)

    def let_up(self) -> None:
        """Everybody may run again, and does."""
        for broker in self._absent:
            broker.start()

    def unnoticed(self) -> str | None:
        """Who is dead, and isn't fenced: EventuallyFenced."""
        for broker in self._absent:
            registered = self.committed.state.brokers.get(broker.id)
            if registered is not None and not registered.fenced:
                return f"dead broker {broker.id} is {registered}"
        return None

    # Ending well.

    def check_replay(self) -> None:
        """Replayed once more, and from a snapshot, the committed log makes the same state."""
        state = self.committed.state
        again = MetadataState()
        for offset, record in self.committed.records:
            again.replay(record, offset)
        records = [record for record, _ in snapshot_records(state)]
        loaded = MetadataState.from_snapshot(records, self.committed.end_offset - 1)
        if not state_hash(state) == state_hash(again) == state_hash(loaded):
            raise Violation("EqualState", f"replayed again the log makes another state: {records}")

    def unsettled(self) -> str | None:
        """What has still to come right: EventuallyUnfenced, EventuallyMetadataConverges."""
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
        """All replicas are in sync; or nobody may lead, as all have lost what is committed."""
        if partition.leader != NO_LEADER:
            return set(partition.isr) == set(partition.replicas)
        return not {*partition.isr, *partition.elr} and len(partition.last_known_elr) != 1
