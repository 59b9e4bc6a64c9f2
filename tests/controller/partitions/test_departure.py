"""A broker leaves the ISRs in slices: the same records, and the same state, as in one step."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.controller.node.speculative_writes import SpeculativeWrites, prepare_records
from kraft_wire.controller.partitions.departure import Departure
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from kraft_wire.metadata.partitions.elr_columns import LAST_KNOWN_UNCHANGED
from tests.controller.controller_harness import directory
from tests.controller.partitions import one_step
from tests.controller.partitions.random_cluster import BROKERS, RandomCluster
from tests.controller.partitions.slice_checks import check_applying, in_order
from tests.support.narrow_columns import columns_hold

MODES = ("isr", "elr", "directories")
CLUSTERS = 400
"""With every broker and mode, that is 7,200 situations."""
WIDTHS = (8, 8, 3)
"""What the columns hold: with 3, a partition of 4 replicas is wide."""


def options(mode: str, broker_id: int) -> dict[str, Any]:
    match mode:
        case "elr":
            return {"forgets": True}
        case "directories":
            return {"directories": [directory(broker_id, 0)]}
        case _:
            return {}


def test_a_slice_has_the_records_of_one_step_and_can_be_undone() -> None:
    total = 0
    parts: list[PartitionChanges] = []
    for seed in range(CLUSTERS):
        with columns_hold(WIDTHS[seed % len(WIDTHS)]):
            cluster = RandomCluster(Random(seed))
            before = fingerprint(cluster.metadata)
            for broker_id, mode in product(range(BROKERS), MODES):
                expected = one_step.departure(cluster.state, broker_id, **options(mode, broker_id))
                changes = Departure(broker_id, **options(mode, broker_id)).next_slice(cluster.state)
                assert changes.is_complete
                assert in_order(list(changes.records)) == in_order(expected), (seed, broker_id, mode)
                parts += [part for part in changes.records.parts if isinstance(part, PartitionChanges)]
                total += len(changes.records)
                check_applying(cluster, changes.records)
                assert fingerprint(cluster.metadata) == before
    assert sum(map(len, parts)) > total / 2
    elrs = [elr for part in parts if (elr := part.changes.elr) is not None]
    assert sum(int(elr.given.sum()) for elr in elrs) > CLUSTERS
    assert sum(int((elr.last_known != LAST_KNOWN_UNCHANGED).sum()) for elr in elrs) > CLUSTERS


@pytest.mark.parametrize("mode", MODES)
def test_slices_with_anything_in_between_come_to_the_same_state(mode: str) -> None:
    for seed in range(60):
        with columns_hold(WIDTHS[seed % len(WIDTHS)]):
            _compare(seed, mode)


def _compare(seed: int, mode: str) -> None:
    random = Random(seed)
    whole, sliced = (RandomCluster(Random(seed)) for _ in range(2))
    sliced.state.slice_limits = SliceLimits(
        window_rows=random.randint(1, 9),
        few_changes=random.randint(0, 3),
        most_unusual=random.randint(1, 3),
    )
    broker_id = random.randrange(BROKERS)
    whole.replay(one_step.departure(whole.state, broker_id, **options(mode, broker_id)))
    departure = Departure(broker_id, **options(mode, broker_id))
    for _ in range(1_000):
        changes = departure.next_slice(sliced.state)
        for batch in prepare_records(changes.records, atomic=False):
            SpeculativeWrites(sliced.state).apply(batch, sliced.state.next_offset)
        if changes.is_complete:
            break
    else:
        raise AssertionError("it never ends")
    sliced.state.metadata.last_applied_offset = whole.state.metadata.last_applied_offset
    assert fingerprint(sliced.metadata) == fingerprint(whole.metadata), seed
