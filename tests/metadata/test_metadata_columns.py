"""Columns grow in place, and what somebody else still looks at stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

from kraft_wire.metadata.partitions.cells import PAD
from kraft_wire.metadata.partitions.columns import PartitionColumns
from kraft_wire.metadata.partitions.partition import Partition
from kraft_wire.metadata.partitions.rare import COMMON

PARTITION = Partition((1, 2, 3), (1, 2), 1, 0, 0, (), elr=(3,))
FIVE_REPLICAS = Partition((1, 2, 3, 4, 5), (1, 2, 3, 4, 5), 1, 0, 0, ())


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
    assert [columns.get(row, COMMON) for row in range(10)] == [PARTITION] * 10
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


@pytest.mark.parametrize("rows", [1, 16_383, 16_384, 50_000])
def test_columns_get_wider_in_place(rows: int) -> None:
    columns = filled(rows)
    at = id(columns.replicas), id(columns.isr), id(columns.directories)
    columns.put(rows // 2, FIVE_REPLICAS)
    assert (id(columns.replicas), id(columns.isr), id(columns.directories)) == at
    assert columns.width == 5
    for row in {0, rows // 4, rows - 1} - {rows // 2}:
        assert columns.get(row, COMMON) == PARTITION
    assert columns.get(rows // 2, COMMON) == FIVE_REPLICAS
    assert (columns.replicas[rows:] == PAD).all()
    kept = np.delete(columns.replicas[:rows], rows // 2, axis=0)
    assert (kept == (1, 2, 3, PAD, PAD)).all()


def test_a_view_of_columns_that_get_wider_stays_valid() -> None:
    columns = filled(10)
    replicas, one = columns.replicas, columns.isr[0]
    columns.put(9, FIVE_REPLICAS)
    assert replicas[:10].tolist() == [[1, 2, 3]] * 10
    assert one.tolist() == [1, 2, PAD]
    assert columns.replicas[:10].tolist() == [[1, 2, 3, PAD, PAD]] * 9 + [[1, 2, 3, 4, 5]]


def test_columns_grow_by_few_rows_at_once() -> None:
    columns = PartitionColumns()
    columns.reserve(1_000_000)
    columns.reserve(1_000_001)
    assert len(columns.leader) < 1_200_000
