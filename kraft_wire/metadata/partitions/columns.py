"""The columns of the partitions: numpy arrays with one row per partition, without an object per partition.

Single rows are read and written through memoryviews of the same arrays, which is much faster than numpy's own
item access. Queries over all rows use the arrays.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from kraft_wire.metadata.partitions.cells import PAD, copied, lengthened, trim, unpadded, widened
from kraft_wire.metadata.partitions.elr_columns import Elr, ElrChanges, ElrColumns
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    NO_LEADER_CHANGE,
    Ids,
    Partition,
)
from kraft_wire.metadata.partitions.rare import Lists, Rare, is_leader
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.partitions.cells import Int32s as Int32s
    from kraft_wire.metadata.partitions.cells import Rows

FREE: Final = -2
"""The leader of a row that holds no partition. No query for a leader matches it."""
_FIRST_ROWS: Final = 1024
_FIRST_WIDTH: Final = 3
_MOST_SPARE_ROWS: Final = 1 << 17
"""The columns grow by so many rows at most, which takes some milliseconds."""


class DirectoryNumbers:
    """Directory ids as small numbers. A cluster has few directories, and no number is used twice."""

    def __init__(self) -> None:
        self._ids: list[Uuid] = []
        self._numbers: dict[Uuid, int] = {}
        self.of((DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST))

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, directories: tuple[Uuid, ...]) -> Ids:
        """Return the numbers of these ids. New ids get new numbers."""
        numbers = self._numbers
        try:
            return tuple([numbers[directory] for directory in directories])
        except KeyError:
            for directory in directories:
                if directory not in numbers:
                    numbers[directory] = len(self._ids)
                    self._ids.append(directory)
            return tuple([numbers[directory] for directory in directories])

    def of_bytes(self, directories: list[bytes]) -> Ids:
        """Return the same as ``of`` for raw ids."""
        numbers = self._numbers
        try:
            return tuple([numbers[directory] for directory in cast(list[Uuid], directories)])
        except KeyError:
            return self.of(tuple(map(Uuid, directories)))

    def known(self, directory: Uuid) -> int | None:
        """Return the number of an id; None if no partition ever had it."""
        return self._numbers.get(directory)

    def ids(self, numbers: list[int]) -> tuple[Uuid, ...]:
        """Return the ids of these numbers."""
        ids = self._ids
        return tuple([ids[number] for number in numbers])


class Block(msgspec.Struct, frozen=True):
    """Rows outside the columns: not yet written to them, or copied from them."""

    leader: Int32s
    leader_epoch: Int32s
    partition_epoch: Int32s
    recovery_state: NDArray[np.int8]
    replicas: Int32s
    isr: Int32s
    directories: Int32s
    elr: Elr | None = None

    def part(self, rows: slice) -> Block:
        """Return some of the rows."""
        columns: list[Any] = [
            column if column is None else column[rows] for column in msgspec.structs.astuple(self)
        ]
        return Block(*columns)


class Changes(msgspec.Struct, frozen=True):
    """Changes of rows, in order. Several may be of the same row.

    NO_LEADER_CHANGE and a recovery state below 0 leave these fields as they are. ``isr`` is used where
    ``isr_given`` is true.
    """

    leader: Int32s
    recovery_state: NDArray[np.int8]
    isr: Int32s
    isr_given: NDArray[np.bool_]
    elr: ElrChanges | None = None

    def part(self, changes: slice | NDArray[np.bool_]) -> Changes:
        """Return some of the changes."""
        columns: list[Any] = [
            column if column is None else column[changes] for column in msgspec.structs.astuple(self)
        ]
        return Changes(*columns)


class Before(msgspec.Struct, frozen=True):
    """The values of rows before a change."""

    leader: Int32s
    leader_epoch: Int32s
    partition_epoch: Int32s
    recovery_state: NDArray[np.int8]
    isr: Int32s
    elr: Elr | None


class PartitionColumns:
    """The columns, with methods to read and write one row or a run of rows.

    ``owner`` holds the ordinal of the topic that a row belongs to; it has no meaning in a FREE row. ``rare``
    says whether any of a row's rare lists has elements; the lists themselves are kept by the caller, who also
    allocates the rows (see Regions). ``reserve`` must create a row before it is used.
    """

    def __init__(self) -> None:
        self.directory_numbers = DirectoryNumbers()
        self.elrs = ElrColumns()
        self.width = _FIRST_WIDTH
        self._rows = 0
        self.leader: Int32s = np.empty(0, np.int32)
        self.leader_epoch: Int32s = np.empty(0, np.int32)
        self.partition_epoch: Int32s = np.empty(0, np.int32)
        self.recovery_state: NDArray[np.int8] = np.empty(0, np.int8)
        self.owner: Int32s = np.empty(0, np.int32)
        self.rare: NDArray[np.bool_] = np.empty(0, np.bool_)
        self.replicas: Int32s = np.empty((0, _FIRST_WIDTH), np.int32)
        self.isr: Int32s = np.empty((0, _FIRST_WIDTH), np.int32)
        self.directories: Int32s = np.empty((0, _FIRST_WIDTH), np.int32)
        self._view()
        self._lengthen(_FIRST_ROWS)

    @property
    def size_bytes(self) -> int:
        """The memory of the columns."""
        return (
            self.leader.nbytes * 4
            + self.recovery_state.nbytes
            + self.rare.nbytes
            + self.replicas.nbytes
            + self.isr.nbytes
            + self.directories.nbytes
            + self.elrs.size_bytes
        )

    def reserve(self, rows: int) -> None:
        """Create rows up to this number."""
        if rows > self._rows:
            self._lengthen(max(rows, self._rows + min(self._rows // 2, _MOST_SPARE_ROWS)))

    def is_free(self, row: int) -> bool:
        """Whether the row holds no partition."""
        return bool(self._leader[row] == FREE)

    def put(self, row: int, partition: Partition) -> None:
        """Write a partition into a row, except its rare lists and its owner. A wide one must be narrow."""
        replicas = partition.replicas
        isr = partition.isr
        if len(replicas) > self.width or len(isr) > self.width:
            self._widen(max(len(replicas), len(isr)))
        self._leader[row] = partition.leader
        self._leader_epoch[row] = partition.leader_epoch
        self._partition_epoch[row] = partition.partition_epoch
        self._recovery_state[row] = partition.leader_recovery_state
        width = self.width
        begin = row * width
        end = begin + width
        pads = self._pads
        self._replicas[begin:end] = array("i", replicas + pads[len(replicas)])
        self._isr[begin:end] = array("i", isr + pads[len(isr)])
        numbers = self.directory_numbers.of(partition.directories)
        self._directories[begin:end] = array("i", numbers + pads[len(numbers)])
        last_known = partition.last_known_elr
        self.elrs.put(row, partition.elr, last_known if is_leader(last_known) else ())

    def get(self, row: int, rare: Rare) -> Partition:
        """Return the partition in a row that is not FREE."""
        elr, last_known = self.elrs.get(row)
        lists = rare.wide or self._lists(row, elr)
        return Partition(
            lists.replicas,
            lists.isr,
            self._leader[row],
            self._leader_epoch[row],
            self._partition_epoch[row],
            lists.directories,
            self._recovery_state[row],
            rare.removing_replicas,
            rare.adding_replicas,
            lists.elr,
            last_known or rare.last_known_elr,
        )

    def _lists(self, row: int, elr: Ids) -> Lists:
        begin = row * self.width
        end = begin + self.width
        return Lists(
            unpadded(self._replicas[begin:end].tolist()),
            unpadded(self._isr[begin:end].tolist()),
            self.directory_numbers.ids(trim(self._directories[begin:end].tolist())),
            elr,
        )

    def set_owner(self, row: int, owner: int) -> None:
        """Set the owner of rows."""
        self._owner[row] = owner

    def set_rare(self, row: int, *, is_rare: bool) -> None:
        """Set whether a row has rare lists."""
        self._rare[row] = is_rare

    def clear(self, rows: slice | Rows) -> None:
        """Make rows FREE."""
        self.leader[rows] = FREE
        self.rare[rows] = False
        self.replicas[rows] = PAD
        self.isr[rows] = PAD
        self.directories[rows] = PAD
        self.elrs.clear(rows)

    def move(self, start: int, count: int, to: int, owner: int) -> None:
        """Move an owner's run of rows to a place that doesn't overlap. The old rows become FREE."""
        old, new = slice(start, start + count), slice(to, to + count)
        self.paste(new, self.copy(old), owner)
        self.rare[new] = self.rare[old]
        self.clear(old)

    def copy(self, rows: slice | Rows) -> Block:
        """Return a copy of rows."""
        return Block(
            copied(self.leader, rows),
            copied(self.leader_epoch, rows),
            copied(self.partition_epoch, rows),
            copied(self.recovery_state, rows),
            copied(self.replicas, rows),
            copied(self.isr, rows),
            copied(self.directories, rows),
            self.elrs.copy(rows),
        )

    def paste(self, rows: slice | Rows, block: Block, owner: int | Int32s) -> None:
        """Write a block into FREE rows, without rare lists, of one owner or with that of each row. The block
        may be narrower or wider than the columns are now."""
        width = block.replicas.shape[1]
        if width > self.width:
            self._widen(width)
        self.owner[rows] = owner
        self.leader[rows] = block.leader
        self.leader_epoch[rows] = block.leader_epoch
        self.partition_epoch[rows] = block.partition_epoch
        self.recovery_state[rows] = block.recovery_state
        self.replicas[rows, :width] = block.replicas
        self.isr[rows, :width] = block.isr
        self.directories[rows, :width] = block.directories
        self.elrs.paste(rows, block.elr)

    def copy_changing(self, rows: NDArray[np.intp]) -> Before:
        """Return a copy of what ``change`` may change in these rows."""
        return Before(
            self.leader[rows],
            self.leader_epoch[rows],
            self.partition_epoch[rows],
            self.recovery_state[rows],
            self.isr[rows],
            self.elrs.copy(rows),
        )

    def put_changing(self, rows: NDArray[np.intp], before: Before) -> None:
        """Write back what ``copy_changing`` returned."""
        width = before.isr.shape[1]
        self.leader[rows] = before.leader
        self.leader_epoch[rows] = before.leader_epoch
        self.partition_epoch[rows] = before.partition_epoch
        self.recovery_state[rows] = before.recovery_state
        self.isr[rows, :width] = before.isr
        self.isr[rows, width:] = PAD
        self.elrs.paste(rows, before.elr)

    def highest_epoch(self, rows: NDArray[np.intp]) -> int:
        """Return the highest leader or partition epoch of these rows."""
        return max(int(self.leader_epoch[rows].max()), int(self.partition_epoch[rows].max()))

    def change(self, rows: NDArray[np.intp], changes: Changes) -> None:
        """Apply changes to rows that aren't FREE, one change per row of ``rows``.

        If several are of one row, the last value stays, because that is how numpy assigns.
        """
        width = changes.isr.shape[1]
        if width > self.width:
            self._widen(width)
        led = changes.leader != NO_LEADER_CHANGE
        self.leader[rows[led]] = changes.leader[led]
        np.add.at(self.leader_epoch, rows[led], 1)
        np.add.at(self.partition_epoch, rows, 1)
        recovered = changes.recovery_state >= 0
        self.recovery_state[rows[recovered]] = changes.recovery_state[recovered]
        synced = rows[changes.isr_given]
        self.isr[synced, :width] = changes.isr[changes.isr_given]
        self.isr[synced, width:] = PAD
        if changes.elr is not None:
            self.elrs.change(rows, changes.elr)

    def clear_elr(self, rows: Rows) -> None:
        """Empty the ELRs of rows, each once. Nothing else of a partition changes, but its epoch."""
        self.partition_epoch[rows] += 1
        self.elrs.clear(rows)

    def restore_elr(self, rows: Rows, elr: Elr) -> None:
        """Do the opposite of ``clear_elr``."""
        self.partition_epoch[rows] -= 1
        self.elrs.paste(rows, elr)

    def _lengthen(self, rows: int) -> None:
        self._release_views()
        self._rows = rows
        self.leader = lengthened(self.leader, rows, FREE)
        self.leader_epoch = lengthened(self.leader_epoch, rows, 0)
        self.partition_epoch = lengthened(self.partition_epoch, rows, 0)
        self.recovery_state = lengthened(self.recovery_state, rows, 0)
        self.owner = lengthened(self.owner, rows, 0)
        self.rare = lengthened(self.rare, rows, 0)
        self.replicas = lengthened(self.replicas, rows, PAD)
        self.isr = lengthened(self.isr, rows, PAD)
        self.directories = lengthened(self.directories, rows, PAD)
        self.elrs.reserve(rows)
        self._view()

    def _widen(self, width: int) -> None:
        self._release_views()
        self.width = width
        self.replicas = widened(self.replicas, width, PAD)
        self.isr = widened(self.isr, width, PAD)
        self.directories = widened(self.directories, width, PAD)
        self._view()

    def _view(self) -> None:
        """View the columns as memory, in which single cells are read and written faster."""
        self._leader = self.leader.data
        self._leader_epoch = self.leader_epoch.data
        self._partition_epoch = self.partition_epoch.data
        self._recovery_state = self.recovery_state.data
        self._owner = self.owner.data
        self._rare = self.rare.data
        self._replicas = self.replicas.reshape(-1).data
        self._isr = self.isr.reshape(-1).data
        self._directories = self.directories.reshape(-1).data
        self._pads = [(PAD,) * (self.width - length) for length in range(self.width + 1)]

    def _release_views(self) -> None:
        for view in (
            self._leader,
            self._leader_epoch,
            self._partition_epoch,
            self._recovery_state,
            self._owner,
            self._rare,
            self._replicas,
            self._isr,
            self._directories,
        ):
            view.release()
