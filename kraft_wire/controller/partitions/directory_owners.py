"""Tell of many replicas at once whether their log directories are online (DirectoryId.isOnline)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.partitions.cells import PAD
from kraft_wire.metadata.partitions.columns import DirectoryNumbers
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
)

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Int32s, Mask


_NOBODY: Final = -1
_ANYBODY: Final = -2
_SEVERAL: Final = -3
_LOST: Final = -4


class DirectoryOwners(msgspec.Struct, frozen=True):
    """The brokers whose online directories have these numbers.

    ``owner`` has one entry for each number: the id of a broker, or one of the constants above.
    ``without_list`` are brokers that registered without directories: all of theirs count as online.
    """

    owner: Int32s
    without_list: Int32s

    @classmethod
    def of(cls, brokers: Iterable[BrokerRegistration], numbers: DirectoryNumbers) -> DirectoryOwners:
        """Return the owners of all numbered directories, by the brokers' registrations."""
        owner = np.full(len(numbers), _NOBODY, np.int32)
        without_list = []
        for broker in brokers:
            if not broker.directories:
                without_list.append(broker.id)
            for number in map(numbers.known, broker.directories):
                if number is not None:
                    owner[number] = broker.id if owner[number] == _NOBODY else _SEVERAL
        for directory, stands_for in (
            (DIRECTORY_MIGRATING, _ANYBODY),
            (DIRECTORY_UNASSIGNED, _ANYBODY),
            (DIRECTORY_LOST, _LOST),
        ):
            owner[numbers.of((directory,))[0]] = stands_for
        return cls(owner, np.array(without_list, np.int32))

    def online(self, replicas: Int32s, directories: Int32s) -> Mask:
        """Return which replicas are in online directories, given the brokers and the directories' numbers.

        PAD is never online. Where ``is_known`` is false, the result has no meaning.
        """
        owner = self.owner[directories]
        online: Mask = (owner == replicas) | (owner == _ANYBODY)
        if len(self.without_list):
            online |= np.isin(replicas, self.without_list) & (owner != _LOST)
        online[directories == PAD] = False
        return online

    def is_known(self, directories: Int32s) -> Mask:
        """Return for which rows ``online`` is right: no directory of theirs belongs to several brokers."""
        unclear = (self.owner[directories] == _SEVERAL) & (directories != PAD)
        is_known: Mask = np.count_nonzero(unclear, axis=1) == 0
        return is_known
