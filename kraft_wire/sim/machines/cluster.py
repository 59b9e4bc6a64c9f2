"""Build the machines of a run, with their disks and links, from its options."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from itertools import count

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.drafted.dialect import DRAFTED
from kraft_wire.raft.membership.voters import (
    ReplicaKey,
    Voter,
    VoterSet,
    endpoints_of,
    static_voters,
    voter_set,
    voters_of_record,
)
from kraft_wire.sim.checkers.checker import Checker
from kraft_wire.sim.checkers.checkers import Checkers
from kraft_wire.sim.machines.clock import Clock
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.machines.releases import Release
from kraft_wire.sim.machines.rot import flipped
from kraft_wire.sim.machines.snapshot_file import bootstrap_file
from kraft_wire.sim.machines.world import World
from kraft_wire.sim.network.connections import CLUSTER_ID, LISTENER, PORT, Network, host_of, other_host_of
from kraft_wire.sim.network.links import Links, Pair
from kraft_wire.sim.options import Options
from kraft_wire.sim.population.brokers import SimBroker
from kraft_wire.sim.population.disasters import Disasters
from kraft_wire.sim.population.operators import Operator
from kraft_wire.sim.population.strangers import Strangers
from kraft_wire.sim.population.voter_changes import VoterChanges
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS, Scheduler
from kraft_wire.sim.trace import Trace

Voters = frozenset[ReplicaKey]

DEATH_POLL_US = 50 * MS
DEATH_POLLS = 200


class Cluster:
    """All nodes of a run, and the operations of faults and phases on several of them."""

    def __init__(self, options: Options, trace: Trace, without: Sequence[type[Checker]] = ()) -> None:
        self.options = options
        self.scheduler = Scheduler()
        links = Links(self.scheduler, stream(options.seed, "links"), options.link)
        chance = stream(options.seed, "network")
        dialect = DRAFTED if options.drafted else None
        self.network = Network(self.scheduler, links, chance, options.messages, dialect)
        self.network.garble = self._garbled
        self.nodes: dict[int, SimNode] = {}
        self.checkers = Checkers(self.nodes, without)
        self.world = World(options.seed, self.scheduler, self.network, trace, self.checkers)
        self.brokers: dict[int, SimBroker] = {}
        self._damaged: set[int] = set()
        self.reformatted: set[int] = set()
        self._garbling_until_us: dict[int, int] = {}
        self._chance_of_garbling = random.Random(options.seed)
        self._stays_down: set[int] = set()
        self.is_calm = False
        self._disks = count()
        tokens = count(-1, -1)  # no connection of a node has a negative token
        self.voter_changes = VoterChanges(self, tokens)
        self.strangers = Strangers(self, tokens)
        self.disasters = Disasters(self)
        self.operator = Operator(self)
        for node_id in options.ids:
            self.nodes[node_id] = self._node(node_id)
        self.network.nodes = dict(self.nodes)

    def _bootstrap_hosts(self) -> list[str]:
        options = self.options
        ids = options.ids if options.voters_change else options.voter_ids
        others = ids if self._leaves_names and "move" in options.fault_kinds else ()
        return [*map(host_of, ids), *map(other_host_of, others)]

    @property
    def _leaves_names(self) -> bool:
        return self.options.kraft_version > 0 and not self.options.drafted

    def _node(self, node_id: int) -> SimNode:
        options = self.options
        addresses = {voter_id: (host_of(voter_id), PORT) for voter_id in options.voter_ids}
        config = RaftConfig(
            node_id=node_id,
            directory_id=_directory_of(node_id),
            cluster_id=CLUSTER_ID,
            endpoints=endpoints_of([(LISTENER, host_of(node_id), PORT)]),
            listener=LISTENER,
            static_voters=VoterSet() if options.kraft_version else static_voters(LISTENER, addresses),
            bootstrap_servers=tuple((host, PORT) for host in self._bootstrap_hosts()),
            auto_join=options.auto_join,
            is_observer_only=options.observers_only and node_id not in options.voter_ids,
            drafted_listeners=(LISTENER,) if options.drafted else (),
            fetch_max_bytes=options.fetch_max_bytes,
            fetch_snapshot_max_bytes=options.fetch_snapshot_max_bytes,
            max_retention_bytes=options.retention_bytes,
            max_wanted_bytes=options.max_wanted_bytes,
            cleaning_interval_ms=10_000,
        )
        drift = stream(options.seed, f"drift of {node_id}").randint(-options.drift_ppm, options.drift_ppm)
        kind = ControllerNode if options.controllers else SimNode
        node = kind(
            self.world, config, self.formatted_disk(node_id), Clock(self.scheduler, drift), options.disk
        )
        node.cost = options.handlers
        if isinstance(node, ControllerNode):
            node.has_elr = options.has_elr
            node.slice_limits = options.slices
            node.release = Release.OLDER if options.rolling_upgrade else Release.NEWER
        return node

    def formatted_disk(self, node_id: int) -> Disk:
        """Return a disk as format leaves it: a voter's has the voter set, an observer's doesn't."""
        if not self.options.kraft_version or node_id not in self.options.voter_ids:
            return Disk(None)
        voters = voter_set(_voter(voter_id) for voter_id in self.options.voter_ids)
        return Disk(bootstrap_file([KRaftVersionRecord(kraft_version=1), voters.to_record()]))

    @property
    def voters(self) -> list[SimNode]:
        return [self.nodes[voter_id] for voter_id in self.options.voter_ids]

    @property
    def voter_sets(self) -> list[Voters]:
        """The voter sets that are in effect on any node, as its disk has them; without one, the static
        voters."""
        sets = {self._last_voters(node) for node in self.nodes.values()}
        return sorted((each for each in sets if each), key=sorted)

    def _last_voters(self, node: SimNode) -> Voters:
        records = node.disk.voters_records()
        if records:
            return frozenset(voter.key for voter in voters_of_record(records[-1][1]).voters)
        return frozenset() if self.options.kraft_version else self._static_keys

    @property
    def _static_keys(self) -> Voters:
        return frozenset(ReplicaKey(node_id, _directory_of(node_id)) for node_id in self.options.voter_ids)

    @property
    def leader(self) -> SimNode | None:
        """The leader of the highest epoch."""
        leaders = [(node.leading, node) for node in self.nodes.values() if node.leading is not None]
        return max(leaders, key=lambda leader: leader[0][0], default=(None, None))[1]

    # Crashes and restarts.

    def restart(self, node: SimNode) -> None:
        if node.id not in self._stays_down:
            node.start()

    def restart_when_dead(self, node: SimNode, delay_us: int) -> None:
        """Start a node again some time after it has died of a fault."""
        self.scheduler.after(DEATH_POLL_US, self._look_whether_dead, node, node.life, delay_us, DEATH_POLLS)

    def _look_whether_dead(self, node: SimNode, life: int, delay_us: int, polls: int) -> None:
        if node.life != life:
            self.scheduler.after(delay_us, self.restart, node)
        elif polls:
            self.scheduler.after(DEATH_POLL_US, self._look_whether_dead, node, life, delay_us, polls - 1)

    def keep_down(self, node: SimNode) -> None:
        node.kill()
        self._stays_down.add(node.id)

    def let_go(self, node: SimNode) -> None:
        """Let a node that was kept down start again when somebody starts it."""
        self._stays_down.discard(node.id)

    def let_up(self) -> None:
        """Start all nodes, including those that were kept down."""
        self._stays_down.clear()
        for node in self.nodes.values():
            node.start()

    # The network.

    def partition(self, pairs: Sequence[Pair], duration_us: int) -> None:
        if not self.is_calm:
            self.network.links.block(pairs)
            self.scheduler.after(duration_us, self._heal, tuple(pairs))

    def _heal(self, pairs: Sequence[Pair]) -> None:
        if not self.is_calm:
            self.network.links.unblock(pairs)

    # Damage: a majority of the voters stays undamaged.

    def may_damage(self, node: SimNode) -> bool:
        """Whether this node's disk may be damaged: a quorum recovers from damage of a minority, not of
        more."""
        self._damaged = {id for id in self._damaged if self._is_damaged(self.nodes[id])} | self.reformatted
        if node.disk.election is None:
            return False  # only its log shows its epoch: see faults
        if node.id not in self.options.voter_ids or node.id in self._damaged:
            return node.id not in self.options.voter_ids
        return len(self._damaged) + 1 <= (self.options.voters - 1) // 2

    def _is_damaged(self, node: SimNode) -> bool:
        return not node.is_up or node.disk.lost_below is not None

    def may_have_lost(self, node: SimNode) -> bool:
        """Whether a node may be unable to vote until it has caught up. A torn tail alone has no such
        effect."""
        return node.disk.lost_below is not None or (node.disk.is_suspect and node.id in self._damaged)

    def damaged(self, node: SimNode) -> None:
        if node.id in self.options.voter_ids:
            self._damaged.add(node.id)

    def reformat(self, node: SimNode) -> None:
        """Give a node a new disk with a new directory id. It is no voter any more, and follows as an
        observer."""
        self.replace_disk(node)
        if node.id in self.options.voter_ids:
            self.reformatted.add(node.id)

    def may_replace_disk(self, node: SimNode) -> bool:
        """Whether the quorum can do without what is on this node's disk: each set of voters that is in effect
        on some node has a majority without it, and at most one such set is left to be agreed on.

        Static voters are known by their id alone, and keep their disks.
        """
        key, sets = node.config.replica_key, self.voter_sets
        if all(key not in voters for voters in sets):
            return True
        is_static = any(not node.disk.voters_records() for node in self.nodes.values())
        return not is_static and len(sets) == 1 and len(self.working(sets[0]) - {key}) > len(sets[0]) // 2

    def working(self, voters: Voters) -> Voters:
        """Return the voters that still have their disks."""
        return voters & {node.config.replica_key for node in self.nodes.values()}

    def replace_disk(self, node: SimNode) -> None:
        """Give a node an empty disk with a new directory id. Its former self stays a voter until it is
        removed."""
        node.disk = Disk(None, former=node.disk)
        directory_id = Uuid(bytes([100 + node.id] * 15 + [100 + next(self._disks) % 100]))
        node.config = msgspec.structs.replace(node.config, directory_id=directory_id)

    def move(self, node: SimNode, *, keeps_name: bool) -> None:
        """Let a node advertise its other name from its next start on. The former name leads nowhere then,
        unless the node ``keeps_name``. Static and drafted voters always keep it: nobody could find them."""
        (endpoint,) = node.config.endpoints
        names = {host_of(node.id): other_host_of(node.id), other_host_of(node.id): host_of(node.id)}
        moved = endpoints_of([(endpoint.listener, names[endpoint.host], endpoint.port)])
        node.config = msgspec.structs.replace(node.config, endpoints=moved)
        if self._leaves_names and not keeps_name:
            self.network.deserted.add(endpoint.host)
        self.network.deserted.discard(names[endpoint.host])

    def garble(self, node: SimNode, duration_us: int, chance: random.Random) -> None:
        """Flip bits now and then in the records that this node sends, for a while."""
        self._garbling_until_us[node.id] = self.scheduler.now_us + duration_us
        self._chance_of_garbling = chance

    def _garbled(self, node_id: int, response: Message) -> Message:
        until_us = self._garbling_until_us.get(node_id)
        if until_us is None or not isinstance(response, FetchResponse):
            return response
        if self.scheduler.now_us >= until_us:
            del self._garbling_until_us[node_id]
            return response
        response = deepcopy(response)  # other connections may get the same one
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.records and self._chance_of_garbling.random() < 0.5:
                    partition.records = flipped(partition.records, self._chance_of_garbling)
        return response

    # Recovery.

    def upgrade_all(self) -> None:
        """Stop the nodes of the older release. They start again with the newer one."""
        for node in self.nodes.values():
            if isinstance(node, ControllerNode) and node.release is Release.OLDER:
                node.kill()
                node.release = Release.NEWER

    def calm(self) -> None:
        """End all faults: links heal, disks are fast, no node garbles records."""
        self.is_calm = True
        self.network.links.unblock_all()
        self._garbling_until_us.clear()
        self.network.faults = type(self.network.faults)(on_the_wire=self.network.faults.on_the_wire)
        links = self.network.links
        slow_us = min(links.conditions.max_delay_us, 5_000)
        links.conditions = type(links.conditions)(
            min_delay_us=links.conditions.min_delay_us, max_delay_us=slow_us
        )
        for node in self.nodes.values():
            node.disk_stalled_until_us = 0
            node.disk_full_until_us = 0
            node.next_read_fails = False
            node.next_flush_fails = False
            node.flush_to_die_in = None
            node.effects_to_live = None
            node.speed = type(node.speed)()
            node.resume()
            if node.is_shutting_down:
                node.kill()  # otherwise it would end later, with no restart


def _directory_of(node_id: int) -> Uuid:
    return Uuid(bytes([node_id] * 16))


def _voter(node_id: int) -> Voter:
    return Voter(
        ReplicaKey(node_id, _directory_of(node_id)), endpoints_of([(LISTENER, host_of(node_id), PORT)])
    )
