"""Elections are held in slices: the same records as one by one."""

from __future__ import annotations

from random import Random
from typing import Any

from kraft_wire.controller.partitions.elections import Elections
from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from tests.controller.partitions import one_step
from tests.controller.partitions.random_cluster import BROKERS, RandomCluster
from tests.controller.partitions.slice_checks import check_applying, in_order
from tests.support.narrow_columns import columns_hold

KINDS: list[tuple[Election, dict[str, Any]]] = [
    (Election.PREFERRED, {}),
    (Election.UNCLEAN, {}),
    (Election.UNCLEAN, {"everywhere": True}),
    *[(Election.ONLINE, {"arriving": (broker_id,)}) for broker_id in range(BROKERS)],
]


def test_a_slice_has_the_records_of_one_step_and_can_be_undone() -> None:
    in_columns = 0
    for seed in range(400):
        with columns_hold(8 if seed % 3 else 3):
            in_columns += _held_in_columns(seed)
    assert in_columns > 1_000


def _held_in_columns(seed: int) -> int:
    """Hold all kinds of elections as one by one; return how many records came in columns."""
    in_columns = 0
    cluster = RandomCluster(Random(seed))
    for election, options in KINDS:
        expected = one_step.elections(cluster.state, election, **options)
        held = Elections(election, **options).next_slice(cluster.state)
        assert held.is_complete
        assert in_order(list(held.records)) == in_order(expected), (seed, election, options)
        in_columns += sum(len(part) for part in held.records.parts if isinstance(part, PartitionChanges))
        check_applying(cluster, held.records)
    return in_columns
