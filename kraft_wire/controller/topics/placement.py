"""Choose the brokers for the replicas of new partitions (Kafka's StripedReplicaPlacer).

Replicas go to racks round robin, and within a rack to its brokers round robin, unfenced brokers first. Each
partition starts one rack and one broker after the previous one. The first replica, which will lead, is never
on a fenced broker. When every broker has led once, the lists are shuffled, so that the partitions of one
leader have different followers. Brokers without a rack count as one rack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class ReplicaPlacer:
    """The placement of topics on a set of brokers. Every topic starts at a random rack and broker."""

    def __init__(self, brokers: Iterable[UsableBroker], entropy: Entropy) -> None:
        self._entropy = entropy
        self._racks: dict[str | None, tuple[list[int], list[int]]] = {}
        self._broker_count = 0
        self._unfenced_count = 0
        for broker in sorted(brokers, key=lambda broker: broker.id):
            self._racks.setdefault(broker.rack, ([], []))[broker.fenced].append(broker.id)
            self._broker_count += 1
            self._unfenced_count += not broker.fenced

    def place(self, partition_count: int, replication_factor: int) -> Assignments:
        """Return the brokers of each of ``partition_count`` new partitions of one topic.

        Raises ApiError(INVALID_REPLICATION_FACTOR) if there are too few brokers, or all are fenced.
        """
        self.check(replication_factor)
        stripes = _Stripes(self._racks, self._unfenced_count, self._entropy)
        if len(self._racks) == 1 and partition_count >= FEWEST_IN_COLUMNS:
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


class _Stripes:
    """An endless sequence of assignments for one topic."""

    def __init__(
        self, racks: dict[str | None, tuple[list[int], list[int]]], unfenced_count: int, entropy: Entropy
    ) -> None:
        names = sorted(racks, key=lambda rack: (rack is not None, rack or ""))
        self._racks = [_Rack(*racks[name], entropy) for name in names]
        self._unfenced_count = unfenced_count
        self._entropy = entropy
        self._first_rack = entropy.below(len(names))
        self._partition = 0

    def next(self, replication_factor: int) -> Assignment:
        """Return the brokers of the next partition.

        The caller has checked that there are enough brokers and that at least one is unfenced.
        """
        if self._partition and self._unfenced_count > 1 and self._partition % self._unfenced_count == 0:
            self._shuffle()
        racks, start, partition = self._racks, self._first_rack, self._partition
        self._partition += 1
        if len(racks) == 1:
            return racks[0].first(partition, replication_factor)
        self._first_rack = (start + 1) % len(racks)

        leaders_rack = start
        while (leader := racks[leaders_rack].unfenced.take(partition)) is None:
            leaders_rack = (leaders_rack + 1) % len(racks)
        replicas = [leader]
        rack, pass_over = start, leaders_rack
        while len(replicas) < replication_factor:
            if rack == pass_over:
                pass_over = -1  # in the first round this rack gave the leader
            elif (replica := racks[rack].take(partition)) is not None:
                replicas.append(replica)
            rack = (rack + 1) % len(racks)
        return tuple(replicas)

    def in_one_rack(self, partition_count: int, replication_factor: int) -> Int32s:
        """Return the brokers of the first partitions, one partition in each row, if there is only one rack.

        They are those that ``next`` would return.
        """
        (rack,) = self._racks
        period = self._unfenced_count if self._unfenced_count > 1 else partition_count
        orders = [(rack.unfenced.ids.copy(), rack.fenced.ids.copy())]
        for _ in range(period, partition_count, period):
            self._shuffle()
            orders.append((rack.unfenced.ids.copy(), rack.fenced.ids.copy()))
        unfenced, fenced = zip(*orders, strict=True)
        partitions = np.arange(partition_count)
        first_count = min(replication_factor, self._unfenced_count)
        first = rack.unfenced.turns(unfenced, partitions, period, first_count)
        others = rack.fenced.turns(fenced, partitions, period, replication_factor - first_count)
        return np.concatenate((first, others), axis=1)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._entropy)
        for rack in self._racks:
            _shuffle(rack.unfenced.ids, self._entropy)
            _shuffle(rack.fenced.ids, self._entropy)


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
        self.ids = ids.copy()
        self._start = entropy.below(len(ids)) if ids else 0
        self._partition = 0
        self._taken = 0

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
        ids = np.array(orders, np.int32)
        if not count:
            return np.empty((len(partitions), 0), np.int32)
        places = (self._start + partitions[:, None] + np.arange(count)) % len(self.ids)
        found: Int32s = ids[(partitions // period)[:, None], places]
        return found


def _shuffle(items: list[T], entropy: Entropy) -> None:
    for last in range(len(items) - 1, 0, -1):
        chosen = entropy.below(last + 1)
        items[last], items[chosen] = items[chosen], items[last]
