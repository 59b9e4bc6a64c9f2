"""Columns grow in place, and what somebody else still looks at stays as it is."""

from __future__ import annotations

from kraft_wire.metadata.partitions.cells import PAD
from kraft_wire.metadata.partitions.columns import PartitionColumns, Rare
from kraft_wire.metadata.partitions.partition import Partition

PARTITION = Partition((1, 2, 3), (1, 2), 1, 0, 0, (), elr=(3,))
NO_RARE_LISTS: Rare = ((), (), ())


def filled(rows: int) -> PartitionColumns:
    columns = PartitionColumns()
    columns.reserve(rows)
    for row in range(rows):
        columns.put(row, PARTITION)
    return columns


def test_columns_grow_in_place() -> None:
    columns = filled(10)
    before = [columns.leader, columns.replicas, columns.rare]
    addresses = [id(column) for column in before]
    before.clear()
    columns.reserve(200_000)
    assert [id(column) for column in (columns.leader, columns.replicas, columns.rare)] == addresses
    assert len(columns.leader) >= 200_000


def test_rows_are_kept_and_new_ones_are_free() -> None:
    columns = filled(10)
    columns.reserve(5_000)
    assert [columns.get(row, NO_RARE_LISTS) for row in range(10)] == [PARTITION] * 10
    assert all(columns.is_free(row) for row in range(10, 5_000))
    assert (columns.isr[10:] == PAD).all() and not columns.rare[10:].any()
    columns.put(4_999, PARTITION)
    assert columns.elrs.get(4_999) == ((3,), ())


def test_a_view_of_columns_that_grow_stays_valid() -> None:
    columns = filled(10)
    leaders = columns.leader[:10]
    column = columns.isr
    columns.reserve(500_000)
    assert leaders.tolist() == [1] * 10
    assert column.shape[0] < 500_000 <= columns.isr.shape[0]


def test_columns_grow_by_few_rows_at_once() -> None:
    columns = PartitionColumns()
    columns.reserve(1_000_000)
    columns.reserve(1_000_001)
    assert len(columns.leader) < 1_200_000
