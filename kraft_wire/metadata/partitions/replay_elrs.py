"""Read the ELRs and last known ELRs of many encoded records at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.columnar.fields import Ragged, Table
from kraft_wire.columnar.gather import Malformed
from kraft_wire.metadata.partitions.elr_columns import LAST_KNOWN_UNCHANGED, Elr, ElrChanges
from kraft_wire.metadata.partitions.partition import NO_LEADER
from kraft_wire.metadata.partitions.ragged_lists import given, lengths, longest, padded
from kraft_wire.metadata.partitions.rare import fits

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Int32s, Mask

_ELR: Final = "eligible_leader_replicas"
_LAST_KNOWN: Final = "last_known_elr"


def new_elrs(table: Table) -> tuple[Elr | None, Mask]:
    """Return the ELRs of PartitionRecords, None if none has any, and which of them columns can hold."""
    if table.is_empty(_ELR) and table.is_empty(_LAST_KNOWN):
        return None, np.ones(table.row_count, np.bool_)
    members, last_known = table.ragged(_ELR), table.ragged(_LAST_KNOWN)
    leaders, usual = _last_known_leaders(last_known)
    return Elr(_padded(members), leaders), usual


def changed_elrs(table: Table) -> tuple[ElrChanges | None, Mask]:
    """Return the same of PartitionChangeRecords: None if none has these fields."""
    if table.is_default(_ELR) and table.is_default(_LAST_KNOWN):
        return None, np.ones(table.row_count, np.bool_)
    members, last_known = table.ragged(_ELR), table.ragged(_LAST_KNOWN)
    leaders, usual = _last_known_leaders(last_known)
    leaders[~given(last_known)] = LAST_KNOWN_UNCHANGED
    return ElrChanges(_padded(members), given(members), leaders), usual


def _padded(members: Ragged) -> Int32s:
    width = longest(members)
    if not fits(width):
        raise Malformed(f"an ELR has {width} members, too many for columns")
    return padded(members, width)


def _last_known_leaders(lists: Ragged) -> tuple[Int32s, Mask]:
    """Return the only member of each list, NO_LEADER without one, and which lists are of that form."""
    counts = lengths(lists)
    leaders = np.full(len(counts), NO_LEADER, np.int32)
    single = counts == 1
    leaders[single] = lists.values[lists.offsets[:-1][single]]
    usual: Mask = (counts == 0) | (single & (leaders >= 0))
    return leaders, usual
