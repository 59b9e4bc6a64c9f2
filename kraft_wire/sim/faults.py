"""Define the faults of a schedule: what each kind does to the cluster at its time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Final

import msgspec

from kraft_wire.sim.machines.cluster import Cluster
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.machines.releases import Release
from kraft_wire.sim.machines.world import NextFlush
from kraft_wire.sim.network.links import Pair
from kraft_wire.sim.population.brokers import SimBroker
from kraft_wire.sim.scheduler import MS


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of the schedule. ``nodes`` are all nodes in random order; the fault hits the first ones. If
    ``hits_leader``, the leader comes first."""

    number: int
    at_ms: int
    kind: str
    nodes: tuple[int, ...]
    hits_leader: bool
    duration_ms: int
    seed: int

    def __str__(self) -> str:
        whom = "the leader" if self.hits_leader else f"node {self.nodes[0]}"
        return f"#{self.number} at {self.at_ms} ms: {self.kind} {whom}, {self.duration_ms} ms"


class Strike:
    """A fault at the time when it happens, with its order of nodes."""

    def __init__(self, fault: Fault, cluster: Cluster) -> None:
        self.cluster = cluster
        self.chance = random.Random(fault.seed)
        self.duration_us = fault.duration_ms * MS
        leader = cluster.leader
        order = list(fault.nodes)
        if fault.hits_leader and leader is not None:
            order.remove(leader.id)
            order.insert(0, leader.id)
        self.order = order

    @property
    def node(self) -> SimNode:
        return self.cluster.nodes[self.order[0]]

    def restart_later(self, node: SimNode) -> None:
        self.cluster.scheduler.after(self.duration_us, self.cluster.restart, node)

    def block(self, pairs: list[Pair]) -> None:
        self.cluster.partition(pairs, self.duration_us)


def _kill(strike: Strike) -> None:
    strike.node.kill()
    strike.restart_later(strike.node)


def _lose_power(strike: Strike) -> None:
    """Cut the power at once, or during a flush, when there is most to lose."""
    if strike.chance.random() < 0.5:
        strike.node.lose_power(strike.chance)
        strike.restart_later(strike.node)
    else:
        _lose_power_in_a_flush(strike, strike.node)


def _lose_power_in_a_flush(strike: Strike, node: SimNode) -> None:
    node.flush_to_die_in = NextFlush(
        until_us=strike.cluster.scheduler.now_us + 30_000 * MS,
        stall_us=strike.duration_us,
        is_after_truncation=strike.chance.random() < 0.5,
        then=strike.restart_later,
    )


def _lose_power_everywhere(strike: Strike) -> None:
    is_in_a_flush = strike.chance.random() < 0.5
    for node in strike.cluster.nodes.values():
        if is_in_a_flush:
            _lose_power_in_a_flush(strike, node)
        else:
            node.lose_power(strike.chance)
            delay_us = strike.chance.randrange(strike.duration_us)
            strike.cluster.scheduler.after(delay_us, strike.cluster.restart, node)


def _die_between_effects(strike: Strike) -> None:
    node = strike.node
    if node.is_up:
        node.die_within(strike.chance.randrange(1, 8), power_fails=strike.chance.random() < 0.5)
        strike.cluster.restart_when_dead(node, strike.duration_us)


def _shut_down(strike: Strike) -> None:
    strike.node.shut_down()
    strike.cluster.restart_when_dead(strike.node, strike.duration_us)


def _pause(strike: Strike) -> None:
    strike.node.pause(strike.duration_us)


def _isolate(strike: Strike) -> None:
    one = strike.order[0]
    strike.block([pair for other in strike.order[1:] for pair in ((one, other), (other, one))])


def _mute(strike: Strike) -> None:
    strike.block([(strike.order[0], other) for other in strike.order[1:]])


def _deafen(strike: Strike) -> None:
    strike.block([(other, strike.order[0]) for other in strike.order[1:]])


def _split(strike: Strike) -> None:
    half = strike.chance.randrange(1, len(strike.order)) if len(strike.order) > 1 else 0
    here, there = strike.order[:half], strike.order[half:]
    strike.block([pair for one in here for other in there for pair in ((one, other), (other, one))])


def _bridge(strike: Strike) -> None:
    """Split the other nodes into two halves; only one node reaches both."""
    rest = strike.order[1:]
    here, there = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    strike.block([pair for one in here for other in there for pair in ((one, other), (other, one))])


def _cut_at_random(strike: Strike) -> None:
    strike.block([pair for pair in permutations(strike.order, 2) if strike.chance.random() < 0.4])


def _clog(strike: Strike) -> None:
    until_us = strike.cluster.scheduler.now_us + strike.duration_us
    for pair in permutations(strike.order, 2):
        if strike.chance.random() < 0.5:
            strike.cluster.network.links.clog(pair, until_us)


def _reset(strike: Strike) -> None:
    for other in strike.order[1:]:
        if strike.chance.random() < 0.7:
            strike.cluster.network.reset_between(strike.order[0], other)


def _stall_disk(strike: Strike) -> None:
    strike.node.disk_stalled_until_us = strike.cluster.scheduler.now_us + strike.duration_us


def _fail_fsync(strike: Strike) -> None:
    node = strike.node
    if node.is_up:
        node.next_flush_fails = True
        strike.cluster.restart_when_dead(node, strike.duration_us)


def _damage(do: Callable[[Disk, random.Random], bool]) -> Callable[[Strike], None]:
    """Return a fault that damages a disk after a power cut. ``do`` returns whether it did any damage."""

    def strike_disk(strike: Strike) -> None:
        node = strike.node
        if strike.cluster.may_damage(node):
            node.lose_power(strike.chance)
            if do(node.disk, strike.chance):
                strike.cluster.damaged(node)
            strike.restart_later(node)

    return strike_disk


def _lose_quorum_state(strike: Strike) -> None:
    node = strike.node
    node.lose_power(strike.chance)
    if node.disk.may_lose_election_state:
        node.disk.lose_election_state()
    strike.restart_later(node)


def _reformat(strike: Strike) -> None:
    """Replace a node's disk, but not that of a static voter: static voters are known by their id alone, and
    one with an empty disk could vote a second time in an epoch (KAFKA-14205)."""
    node = strike.node
    if strike.cluster.options.kraft_version and strike.cluster.may_damage(node):
        node.lose_power(strike.chance)
        strike.cluster.reformat(node)
        strike.restart_later(node)


def _fail_read(strike: Strike) -> None:
    node = strike.node
    if node.is_up:
        node.next_read_fails = True
        strike.cluster.restart_when_dead(node, strike.duration_us)


def _fill_disk(strike: Strike) -> None:
    """Fill the disk: every write ends the process, also if it is started again too early."""
    node = strike.node
    node.disk_full_until_us = strike.cluster.scheduler.now_us + strike.duration_us
    strike.cluster.restart_when_dead(node, strike.chance.randrange(2 * strike.duration_us))
    strike.cluster.scheduler.after(2 * strike.duration_us, strike.cluster.restart, node)


def _restart_one_by_one(strike: Strike) -> None:
    for turn, id in enumerate(strike.order):
        strike.cluster.scheduler.after(turn * strike.duration_us, _restart, strike.cluster, id)


def _restart(cluster: Cluster, id: int) -> None:
    if not cluster.is_calm:
        cluster.nodes[id].shut_down()
        cluster.restart_when_dead(cluster.nodes[id], 500 * MS)


def _garble(strike: Strike) -> None:
    strike.cluster.garble(strike.node, strike.duration_us, strike.chance)


def _jump_clock(strike: Strike) -> None:
    strike.node.clock.wall_offset_ms += strike.chance.randrange(-3_600_000, 3_600_000)


# Strangers.


def _strangers(strike: Strike) -> None:
    """Let strangers ask one node, or all, several times."""
    asked = [strike.node] if strike.chance.random() < 0.5 else list(strike.cluster.nodes.values())
    for node in asked:
        for _ in range(strike.chance.choice((1, 3, 20))):
            delay_us = strike.chance.randrange(strike.duration_us)
            strike.cluster.scheduler.after(delay_us, strike.cluster.strangers.ask, node, strike.chance)


# Voters.


def _change_voters(strike: Strike) -> None:
    strike.cluster.voter_changes.change(strike.chance)


def _change_voters_twice(strike: Strike) -> None:
    """Ask for a second change before the first one is complete."""
    _change_voters(strike)
    strike.cluster.scheduler.after(strike.chance.randrange(50 * MS), _change_voters, strike)


def _upgrade_kraft_version(strike: Strike) -> None:
    strike.cluster.voter_changes.upgrade(strike.node)


def _replace_disk(strike: Strike) -> None:
    """Replace a node's disk. The node comes back with another directory id, as an observer."""
    if strike.cluster.may_replace_disk(strike.node):
        strike.node.lose_power(strike.chance)
        strike.cluster.replace_disk(strike.node)
        strike.restart_later(strike.node)


def _move(strike: Strike) -> None:
    """Give a node another name in the network from its next start on. Half of the time the node keeps the
    former one, too."""
    strike.cluster.move(strike.node, keeps_name=strike.chance.random() < 0.5)
    _kill(strike)


def _lose_majority(strike: Strike) -> None:
    strike.cluster.disasters.lose_majority(strike.chance)


# Brokers.


def _broker(strike: Strike) -> SimBroker:
    return strike.chance.choice(list(strike.cluster.brokers.values()))


def _kill_broker(strike: Strike) -> None:
    _broker(strike).kill(2 * strike.duration_us)


def _kill_brokers(strike: Strike) -> None:
    for broker in strike.cluster.brokers.values():
        broker.kill(strike.chance.randrange(strike.duration_us))


def _shut_down_broker(strike: Strike) -> None:
    _broker(strike).shut_down(strike.duration_us)


def _pause_broker(strike: Strike) -> None:
    _broker(strike).pause(strike.duration_us)


def _isolate_broker(strike: Strike) -> None:
    broker = _broker(strike)
    strike.block([pair for id in strike.order for pair in ((broker.id, id), (id, broker.id))])


def _deafen_broker(strike: Strike) -> None:
    broker = _broker(strike)
    strike.block([(id, broker.id) for id in strike.order])


def _die_at_failover(strike: Strike) -> None:
    """Kill a broker together with the controller that would have noticed its death (KAFKA-18138)."""
    _kill(strike)
    _broker(strike).kill(4 * strike.duration_us)


def _upgrade(strike: Strike) -> None:
    _change_release(strike, Release.NEWER)


def _downgrade(strike: Strike) -> None:
    _change_release(strike, Release.OLDER)


def _change_release(strike: Strike, release: Release) -> None:
    """Restart a controller with a release."""
    node = strike.node
    if isinstance(node, ControllerNode):
        node.release = release
        _kill(strike)


BROKER_FAULTS: Final[Mapping[str, Callable[[Strike], None]]] = {
    "kill-broker": _kill_broker,
    "kill-brokers": _kill_brokers,
    "shut-down-broker": _shut_down_broker,
    "pause-broker": _pause_broker,
    "isolate-broker": _isolate_broker,
    "deafen-broker": _deafen_broker,
    "die-at-failover": _die_at_failover,
}

MEMBERSHIP_FAULTS: Final[Mapping[str, Callable[[Strike], None]]] = {
    "change-voters": _change_voters,
    "change-voters-twice": _change_voters_twice,
    "move": _move,
    "replace-disk": _replace_disk,
    "upgrade-kraft-version": _upgrade_kraft_version,
}

DISASTERS: Final[Mapping[str, Callable[[Strike], None]]] = {"lose-majority": _lose_majority}
"""The faults that are drawn apart from the others, because a run survives few of them."""

STRANGERS: Final[Mapping[str, Callable[[Strike], None]]] = {"strangers": _strangers}

RELEASES: Final[Mapping[str, Callable[[Strike], None]]] = {"upgrade": _upgrade, "downgrade": _downgrade}

DAMAGE: Final = frozenset(
    {"flip-bit", "corrupt-snapshot", "lose-quorum-state", "misdirect-write", "reformat", "garble"}
)
"""The faults that a quorum survives only while few voters are damaged."""

FAULTS: Final[Mapping[str, Callable[[Strike], None]]] = {
    "kill": _kill,
    "power-cut": _lose_power,
    "power-cut-everywhere": _lose_power_everywhere,
    "die-between-effects": _die_between_effects,
    "shut-down": _shut_down,
    "pause": _pause,
    "isolate": _isolate,
    "mute": _mute,
    "deafen": _deafen,
    "split": _split,
    "bridge": _bridge,
    "cut-at-random": _cut_at_random,
    "clog": _clog,
    "reset": _reset,
    "stall-disk": _stall_disk,
    "fsync-error": _fail_fsync,
    "flip-bit": _damage(Disk.flip_bit),
    "corrupt-snapshot": _damage(Disk.corrupt_snapshot),
    "lose-quorum-state": _lose_quorum_state,
    "garble": _garble,
    "jump-clock": _jump_clock,
    "misdirect-write": _damage(Disk.misdirect_write),
    "reformat": _reformat,
    "read-error": _fail_read,
    "full-disk": _fill_disk,
    "restart-one-by-one": _restart_one_by_one,
}

ALL_FAULTS: Final = {**FAULTS, **BROKER_FAULTS, **MEMBERSHIP_FAULTS, **STRANGERS, **DISASTERS, **RELEASES}
