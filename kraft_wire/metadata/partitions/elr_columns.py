"""The columns of the eligible leader replicas (KIP-966). They take no memory until a partition has some.

Next to the ELR stands the last known leader: a last known ELR of one member. Longer ones are kept elsewhere.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import msgspec

from kraft_wire.metadata.partitions.cells import PAD, any_in_row, copied, grown, lengthened, unpadded
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.partitions.partition import NO_LEADER, Ids

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Int32s, Mask, Rows

LAST_KNOWN_UNCHANGED: Final = -2


class Elr(msgspec.Struct, frozen=True):
    """The ELRs of rows, padded, and their last known leaders; NO_LEADER where there is none."""

    members: Int32s
    last_known: Int32s

    def __getitem__(self, rows: slice) -> Elr:
        """Return some of the rows."""
        return Elr(self.members[rows], self.last_known[rows])


class ElrChanges(msgspec.Struct, frozen=True):
    """Changes of rows, in order. Several may be of the same row.

    ``members`` is used where ``given`` is true. LAST_KNOWN_UNCHANGED leaves the last known leader, NO_LEADER
    removes it.
    """

    members: Int32s
    given: Mask
    last_known: Int32s

    def __getitem__(self, changes: slice | Mask) -> ElrChanges:
        """Return some of the changes."""
        return ElrChanges(self.members[changes], self.given[changes], self.last_known[changes])

    def end_before_rare(self, rare: Mask) -> int:
        """Return the number of changes before the first of a last known leader in a rare row: only a single
        change can remove a longer last known ELR."""
        unfit = rare & (self.last_known[: len(rare)] != LAST_KNOWN_UNCHANGED)
        return int(unfit.argmax()) if unfit.any() else len(rare)

    @property
    def has_any(self) -> bool:
        """Whether there is an ELR or a last known leader among them."""
        return bool((self.members != PAD).any() or (self.last_known >= 0).any())

    @property
    def changing(self) -> Mask:
        """Which of the changes change something."""
        changing: Mask = self.given | (self.last_known != LAST_KNOWN_UNCHANGED)
        return changing


class ElrColumns:
    """The ELR and the last known leader of each row. Without any, all are empty and there are no arrays."""

    def __init__(self) -> None:
        self._rows = 0
        self._width = 0
        self._members: Int32s = np.empty((0, 0), np.int32)
        self._last_known: Int32s = np.empty(0, np.int32)

    @property
    def size_bytes(self) -> int:
        """The memory of the columns."""
        return self._members.nbytes + self._last_known.nbytes

    def reserve(self, rows: int) -> None:
        """Have so many rows from now on."""
        if self._width:
            self._flat.release()
            self._last.release()
            self._members = lengthened(self._members, rows, PAD)
            self._last_known = lengthened(self._last_known, rows, NO_LEADER)
            self._view()
        self._rows = rows

    def get(self, row: int) -> tuple[Ids, Ids]:
        """Return the ELR and the last known ELR of one row."""
        if not self._width:
            return (), ()
        begin = row * self._width
        members = unpadded(self._flat[begin : begin + self._width].tolist())
        last_known = self._last[row]
        return members, () if last_known == NO_LEADER else (last_known,)

    def put(self, row: int, members: Ids, last_known: Ids) -> None:
        """Write one row. There is at most one last known leader."""
        if not members and not last_known and not self._width:
            return
        self._widen(max(1, len(members)))
        begin = row * self._width
        padded = members + (PAD,) * (self._width - len(members))
        self._flat[begin : begin + self._width] = array("i", padded)
        self._last[row] = last_known[0] if last_known else NO_LEADER

    def copy(self, rows: slice | Rows) -> Elr | None:
        """Return a copy of rows; None if none is in use."""
        if not self._width:
            return None
        return Elr(copied(self._members, rows), copied(self._last_known, rows))

    def of(self, rows: Rows) -> Elr:
        """Return a copy of rows."""
        copied = self.copy(rows)
        if copied is not None:
            return copied
        return Elr(np.full((len(rows), 1), PAD, np.int32), np.full(len(rows), NO_LEADER, np.int32))

    def paste(self, rows: slice | Rows, elr: Elr | None) -> None:
        """Write what ``copy`` returned into rows. It may be narrower or wider than the columns are now."""
        if elr is None:
            self.clear(rows)
            return
        width = elr.members.shape[1]
        self._widen(max(1, width))
        self._members[rows, :width] = elr.members
        self._members[rows, width:] = PAD
        self._last_known[rows] = elr.last_known

    def clear(self, rows: slice | Rows) -> None:
        """Make rows empty."""
        if self._width:
            self._members[rows] = PAD
            self._last_known[rows] = NO_LEADER

    def change(self, rows: Rows, changes: ElrChanges) -> None:
        """Apply changes, one per row of ``rows``. If several are of one row, the last value stays."""
        if not self._width and not changes.has_any:
            return
        width = changes.members.shape[1]
        self._widen(max(1, width))
        given = rows[changes.given]
        self._members[given, :width] = changes.members[changes.given]
        self._members[given, width:] = PAD
        known = changes.last_known != LAST_KNOWN_UNCHANGED
        self._last_known[rows[known]] = changes.last_known[known]

    def rows_with_member(self, broker_id: int, window: slice) -> Rows:
        """Return the rows of a window whose ELR contains this broker, in ascending order."""
        if not self._width:
            return np.empty(0, np.intp)
        rows: Rows = np.flatnonzero(any_in_row(self._members[window] == broker_id)) + window.start
        return rows

    def rows_with_any(self, window: slice) -> Rows:
        """Return the rows of a window that have an ELR or a last known leader, in ascending order."""
        if not self._width:
            return np.empty(0, np.intp)
        has_any = any_in_row(self._members[window] != PAD) | (self._last_known[window] != NO_LEADER)
        rows: Rows = np.flatnonzero(has_any) + window.start
        return rows

    def _widen(self, width: int) -> None:
        if width > self._width:
            self._width = width
            self._members = grown(self._members, (self._rows, width), PAD)
            self._last_known = grown(self._last_known, (self._rows,), NO_LEADER)
            self._view()

    def _view(self) -> None:
        self._flat = self._members.reshape(-1).data
        self._last = self._last_known.data
