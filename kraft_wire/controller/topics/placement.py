"""Choose the brokers for the replicas of new partitions (Kafka's StripedReplicaPlacer).

Replicas go to racks round robin, and within a rack to its brokers round robin, unfenced brokers first. Each
partition starts one rack and one broker after the previous one. The first replica, which will lead, is never
on a fenced broker. When every broker has led once, the lists are shuffled, so that the partitions of one
leader have different followers. Brokers without a rack count as one rack.

With many fenced brokers, Kafka shuffles them and the racks as often. Here they are shuffled more rarely, and
racks are looked at when they are needed: the work for a partition doesn't grow with the cluster.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from kraft_wire.controller.decision.context import Entropy
from kraft_wire.controller.partitions.cluster_view import UsableBroker
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.columns import Int32s

T = TypeVar("T")

Assignment = tuple[int, ...]
"""The broker ids of one partition, the preferred leader first."""

Assignments: TypeAlias = "Sequence[Assignment] | Int32s"
"""The broker ids of several partitions; in an array all partitions have equally many."""

FEWEST_IN_COLUMNS: Final = 24
"""From so many new partitions on, columns are faster than one partition after the other."""
_BROKERS_PER_PARTITION: Final = 16
"""With more brokers for each new partition, columns are slower, since all brokers are put into one."""

_RackIds = tuple[list[int], list[int]]
"""The unfenced and the fenced brokers of a rack."""


class ReplicaPlacer:
    """The placement of topics on a set of brokers. Every topic starts at a random rack and broker."""

    def __init__(self, brokers: Iterable[UsableBroker], entropy: Entropy) -> None:
        self._entropy = entropy
        racks: dict[str | None, _RackIds] = {}
        self._broker_count = 0
        self._unfenced_count = 0
        for broker in sorted(brokers, key=lambda broker: broker.id):
            racks.setdefault(broker.rack, ([], []))[broker.fenced].append(broker.id)
            self._broker_count += 1
            self._unfenced_count += not broker.fenced
        self._racks = [racks[name] for name in sorted(racks, key=lambda rack: (rack is not None, rack or ""))]
        self._leader_racks = _leader_racks(self._racks)

    def place(self, partition_count: int, replication_factor: int) -> Assignments:
        """Return the brokers of each of ``partition_count`` new partitions of one topic.

        Raises ApiError(INVALID_REPLICATION_FACTOR) if there are too few brokers, or all are fenced.
        """
        self.check(replication_factor)
        stripes = _Stripes(
            self._racks, self._leader_racks, self._unfenced_count, self._broker_count, self._entropy
        )
        fewest = max(FEWEST_IN_COLUMNS, self._broker_count // _BROKERS_PER_PARTITION)
        if len(self._racks) == 1 and partition_count >= fewest:
            return stripes.in_one_rack(partition_count, replication_factor)
        return [stripes.next(replication_factor) for _ in range(partition_count)]

    def check(self, replication_factor: int) -> None:
        """Raise ApiError(INVALID_REPLICATION_FACTOR) as ``place`` does."""
        if replication_factor <= 0:
            problem = "it must be positive"
        elif not self._unfenced_count:
            problem = "every broker is fenced, shutting down or has all its log directories cordoned"
        elif replication_factor > self._broker_count:
            problem = (
                f"the number of brokers that can take replicas is {self._broker_count}; brokers that "
                "are shutting down or have only cordoned log directories do not count"
            )
        else:
            return
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {replication_factor}: {problem}"
        )


def _leader_racks(racks: Sequence[_RackIds]) -> Sequence[int]:
    """Return for each rack the first one, from it on, that has an unfenced broker; empty if none has."""
    with_unfenced = [place for place, (unfenced, _) in enumerate(racks) if unfenced]
    if not with_unfenced:
        return []
    return [
        with_unfenced[bisect_left(with_unfenced, place) % len(with_unfenced)] for place in range(len(racks))
    ]


class _Stripes:
    """An endless sequence of assignments for one topic.

    The racks and their brokers are those of all topics: what is shuffled is copied before.
    """

    def __init__(
        self,
        racks: Sequence[_RackIds],
        leader_racks: Sequence[int],
        unfenced_count: int,
        broker_count: int,
        entropy: Entropy,
    ) -> None:
        self._ids = racks
        self._leader_racks = leader_racks
        self._unfenced_count = unfenced_count
        self._broker_count = broker_count
        self._entropy = entropy
        self._order: Sequence[int] = range(len(racks))
        self._racks: dict[int, _Rack] = {}
        self._unfenced: list[_Brokers] = []
        self._fenced: list[_Brokers] = []
        self._first_rack = entropy.below(len(racks))
        self._partition = 0

    def next(self, replication_factor: int) -> Assignment:
        """Return the brokers of the next partition.

        The caller has checked that there are enough brokers and that at least one is unfenced.
        """
        start, partition = self._first_rack, self._partition
        self._shuffle(partition)
        self._partition += 1
        if len(self._ids) == 1:
            return self._rack(0).first(partition, replication_factor)
        self._first_rack = (start + 1) % len(self._ids)
        replicas: list[int] = []
        for place in self._places(start):
            replica = self._rack(place).take(partition)
            if replica is not None:
                replicas.append(replica)
                if len(replicas) == replication_factor:
                    break
        return tuple(replicas)

    def _places(self, start: int) -> Iterator[int]:
        """Yield the racks in which a partition's replicas are looked for, endlessly, the leader's first."""
        racks, leaders_rack = len(self._ids), self._leader_racks[start]
        yield leaders_rack
        for turn in count():
            place = (start + turn) % racks
            if turn >= racks or place != leaders_rack:
                yield place

    def in_one_rack(self, partition_count: int, replication_factor: int) -> Int32s:
        """Return the brokers of the first partitions, one partition in each row, if there is only one rack.

        They are those that ``next`` would return.
        """
        rack = self._rack(0)
        unfenced, fenced = [], []
        for partition in range(partition_count):
            self._shuffle(partition)
            if partition % self._unfenced_count == 0:
                unfenced.append(rack.unfenced.ids)
            if partition % self._broker_count == 0:
                fenced.append(rack.fenced.ids)
        partitions = np.arange(partition_count)
        first_count = min(replication_factor, self._unfenced_count)
        first = rack.unfenced.turns(unfenced, partitions, self._unfenced_count, first_count)
        others = rack.fenced.turns(fenced, partitions, self._broker_count, replication_factor - first_count)
        return np.concatenate((first, others), axis=1)

    def _shuffle(self, partition: int) -> None:
        """Shuffle what has had its turn before this partition. A single leader has all turns."""
        if not partition or self._unfenced_count == 1:
            return
        if partition % self._broker_count == 0:
            self._shuffle_racks()
            for brokers in self._fenced:
                brokers.shuffle(self._entropy)
        if partition % self._unfenced_count == 0:
            for brokers in self._unfenced:
                brokers.shuffle(self._entropy)

    def _shuffle_racks(self) -> None:
        order = list(self._order)
        _shuffle(order, self._entropy)
        self._order = order
        self._leader_racks = _leader_racks([self._ids[rack] for rack in order])

    def _rack(self, place: int) -> _Rack:
        """Return the rack that has this place in the order."""
        name = self._order[place]
        rack = self._racks.get(name)
        if rack is None:
            rack = self._racks[name] = _Rack(*self._ids[name], self._entropy)
            if rack.unfenced.ids:
                self._unfenced.append(rack.unfenced)
            if rack.fenced.ids:
                self._fenced.append(rack.fenced)
        return rack


class _Rack:
    """The brokers of one rack. Unfenced brokers are taken before fenced ones."""

    __slots__ = ("fenced", "unfenced")

    def __init__(self, unfenced: list[int], fenced: list[int], entropy: Entropy) -> None:
        self.unfenced = _Brokers(unfenced, entropy)
        self.fenced = _Brokers(fenced, entropy)

    def first(self, partition: int, count: int) -> Assignment:
        """Return the first brokers that ``take`` would return."""
        unfenced = self.unfenced.first(partition, count)
        missing = count - len(unfenced)
        return unfenced + self.fenced.first(partition, missing) if missing else unfenced

    def take(self, partition: int) -> int | None:
        broker = self.unfenced.take(partition)
        return self.fenced.take(partition) if broker is None else broker


class _Brokers:
    """Brokers that are taken in turn, each at most once for a partition.

    Every partition starts one broker after the previous one.
    """

    __slots__ = ("_partition", "_start", "_taken", "ids")

    def __init__(self, ids: list[int], entropy: Entropy) -> None:
        self.ids = ids
        self._start = entropy.below(len(ids)) if ids else 0
        self._partition = 0
        self._taken = 0

    def shuffle(self, entropy: Entropy) -> None:
        """Bring the brokers into another order."""
        if len(self.ids) > 1:
            ids = self.ids.copy()
            _shuffle(ids, entropy)
            self.ids = ids

    def take(self, partition: int) -> int | None:
        ids = self.ids
        if partition != self._partition:
            self._partition = partition
            self._start += 1
            self._taken = 0
        if self._taken >= len(ids):
            return None
        broker = ids[(self._start + self._taken) % len(ids)]
        self._taken += 1
        return broker

    def first(self, partition: int, count: int) -> Assignment:
        """Return the first brokers that this partition takes, at most all. Every one before it took some."""
        size = len(self.ids)
        begin = (self._start + partition) % size
        end = begin + min(count, size)
        return tuple(self.ids[begin:end] + self.ids[: max(end - size, 0)])

    def turns(
        self, orders: Sequence[list[int]], partitions: NDArray[np.intp], period: int, count: int
    ) -> Int32s:
        """Return the first ``count`` brokers that each partition takes. The order of the brokers changes
        after each ``period`` of partitions."""
        if not count:
            return np.empty((len(partitions), 0), np.int32)
        ids = np.array(orders, np.int32)
        places = (self._start + partitions[:, None] + np.arange(count)) % len(self.ids)
        found: Int32s = ids[(partitions // period)[:, None], places]
        return found


def _shuffle(items: list[T], entropy: Entropy) -> None:
    for last in range(len(items) - 1, 0, -1):
        chosen = entropy.below(last + 1)
        items[last], items[chosen] = items[chosen], items[last]
