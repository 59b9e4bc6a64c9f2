"""Simulate the loss of a majority: the disks of most voters are destroyed for good."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey, voters_of_record
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS

if TYPE_CHECKING:
    from kraft_wire.sim.machines.cluster import Cluster
    from kraft_wire.sim.machines.node import SimNode

LAG_MS: Final = (0, 3_500, 4_500, 5_500)
"""How long the later survivors are cut off, or their disks stall, before the others lose their disks."""

STOPPED_AFTER_MS: Final = (10, 300, 2_000)
"""How long the survivors run on before the operator stops them."""


class LostDisk(NamedTuple):
    """A disk that is lost until it turns up, and its directory id."""

    disk: Disk
    directory_id: Uuid


class Disasters:
    """Losses of a majority, one at a time. ``is_under_way`` from the first sign of one until the operator
    begins to recover."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chance = stream(cluster.options.seed, "disasters")
        self._lost: dict[int, LostDisk] = {}
        self.is_under_way = False

    def lose_majority(self, chance: random.Random) -> None:
        """Destroy the disks of most voters, perhaps some time after the others have begun to lag."""
        cluster = self._cluster
        if self.is_under_way or cluster.is_calm:
            return
        leader = cluster.leader
        preferred = [] if leader is None or chance.random() < 0.4 else [leader.id]
        spared = self._choose_survivors(chance, preferred)
        if not spared:
            return
        self.is_under_way = True
        self._chance = chance
        lag_us = chance.choice(LAG_MS) * MS
        if chance.random() < 0.75:
            most = max(1, (len(self._newest_voters()) - 1) // 2)
            self._cut_off([node.id for node in spared[: chance.randint(1, most)]], lag_us)
        else:
            # Until they are stopped: a leader whose disk stalls may have applied more than it has flushed.
            for node in spared:
                node.disk_stalled_until_us = cluster.scheduler.now_us + lag_us + STOPPED_AFTER_MS[-1] * MS
        cluster.scheduler.after(lag_us, self._destroy, [node.id for node in spared])

    def _cut_off(self, ids: Sequence[int], duration_us: int) -> None:
        """Let the others, which are a majority, elect a leader without these. Their logs may get an end that
        nobody else has."""
        others = [id for id in self._cluster.nodes if id not in ids]
        pairs = [pair for one in ids for other in others for pair in ((one, other), (other, one))]
        self._cluster.partition(pairs, duration_us)

    def _choose_survivors(self, chance: random.Random, preferred: Sequence[int]) -> list[SimNode]:
        """Return voters that are no majority; the first one is established. None if that can't be.

        Static voters are known by their configuration, and no plan is applied to their disks.
        """
        voters = self._newest_voters()
        working = [node for node in self._cluster.nodes.values() if node.config.replica_key in voters]
        chance.shuffle(working)
        working.sort(key=lambda node: node.id not in preferred)
        working.sort(key=lambda node: not _is_established(node))
        if len(voters) < 2 or not _is_established(working[0]):
            return []
        return working[: chance.randint(1, len(voters) // 2)]

    def _newest_voters(self) -> frozenset[ReplicaKey]:
        """Return the voters by the newest log; none if it names none."""
        disks = [node.disk for node in self._cluster.nodes.values() if not node.disk.is_estranged]
        newest = max(disks, key=lambda disk: (disk.last_epoch, disk.end_offset))
        sets = voter_sets(newest)
        return sets[-1] if sets else frozenset()

    def _destroy(self, preferred: Sequence[int]) -> None:
        """Destroy the disks of all other voters, and of some observers."""
        cluster, chance = self._cluster, self._chance
        spared = [] if cluster.is_calm else self._choose_survivors(chance, preferred)
        if not spared:
            self.is_under_way = False
            return
        voters = self._newest_voters()
        for node in cluster.nodes.values():
            is_voter = node.config.replica_key in voters
            if node not in spared and (is_voter or chance.random() < 0.3):
                self.destroy_disk(node)
        cluster.operator.note(f"the disks of {list(self._lost)} are lost")
        cluster.scheduler.after(chance.choice(STOPPED_AFTER_MS) * MS, self.end)

    def destroy_disk(self, node: SimNode) -> LostDisk:
        """Destroy a disk and keep the node down until ``end``. Returns the disk, in case that it turns
        up."""
        node.lose_power(self._chance)
        lost = self._lost[node.id] = LostDisk(node.disk, node.config.directory_id)
        self._cluster.replace_disk(node)
        self._cluster.keep_down(node)
        return lost

    def end(self) -> None:
        """Let the operator recover what is lost, if that isn't done yet."""
        if self._lost:
            lost, self._lost = self._lost, {}
            self.is_under_way = False
            self._cluster.operator.recover(lost, self._chance)


def _is_established(node: SimNode) -> bool:
    """Whether a node has committed records, and among them, or from its format, one that makes it a voter. No
    leader cuts them, and no power cut takes them."""
    disk, key = node.disk, node.config.replica_key
    kept_below = min(disk.committed_offset, disk.flushed_offset)
    return kept_below > 0 and any(
        offset < kept_below and any(voter.key == key for voter in voters_of_record(record).voters)
        for offset, record in disk.voters_records()
    )


def voter_sets(disk: Disk) -> list[frozenset[ReplicaKey]]:
    """Return the voter sets that a disk names, the newest last."""
    return [
        frozenset(voter.key for voter in voters_of_record(record).voters)
        for _, record in disk.voters_records()
    ]
