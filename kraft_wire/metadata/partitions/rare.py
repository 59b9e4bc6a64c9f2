"""The lists of a partition that columns don't hold: nearly all partitions have none.

Columns are as wide as the longest list in them. One topic with a replica on each of a hundred brokers would
make those of all partitions so wide, so a partition with many replicas keeps its lists outside.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.metadata.partitions.partition import Ids, Partition
from kraft_wire.protocol.uuid import Uuid

WIDEST: Final = 8
"""The most members of a list in the columns."""


class Lists(msgspec.Struct, frozen=True):
    """The lists of a partition that the columns hold, unless it is wide: one of them is too long."""

    replicas: Ids
    isr: Ids
    directories: tuple[Uuid, ...]
    elr: Ids


class Rare(msgspec.Struct, frozen=True):
    """The lists of one partition that its columns don't hold.

    A last known ELR is rare unless it is one leader. ``wide`` are the lists of a wide partition, instead of
    those in the columns.
    """

    removing_replicas: Ids = ()
    adding_replicas: Ids = ()
    last_known_elr: Ids = ()
    wide: Lists | None = None

    @property
    def has_elr(self) -> bool:
        """Whether an ELR or a last known ELR is among the lists."""
        return bool(self.last_known_elr or (self.wide and self.wide.elr))


COMMON: Final = Rare()
"""Nearly all partitions have no rare lists."""


def rare_of(partition: Partition) -> Rare:
    """Return the lists of a partition that columns don't hold."""
    last_known = partition.last_known_elr
    return Rare(
        partition.removing_replicas,
        partition.adding_replicas,
        () if is_leader(last_known) else last_known,
        _wide(partition),
    )


def _wide(partition: Partition) -> Lists | None:
    longest = max(len(partition.replicas), len(partition.isr), len(partition.elr))
    if fits(longest):
        return None
    return Lists(partition.replicas, partition.isr, partition.directories, partition.elr)


def narrow(partition: Partition) -> Partition:
    """Return what the columns hold of a wide partition: of its lists only the preferred leader."""
    return msgspec.structs.replace(
        partition, replicas=partition.replicas[:1], isr=(), directories=partition.directories[:1], elr=()
    )


def fits(members: int) -> bool:
    """Whether columns hold lists of so many members."""
    return members <= WIDEST


def is_leader(last_known_elr: Ids) -> bool:
    """Whether a last known ELR is one leader, which has a column. Other modes of recovery write other lists;
    Kafka also writes broker -1."""
    return len(last_known_elr) == 1 and last_known_elr[0] >= 0
