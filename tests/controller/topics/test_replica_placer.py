"""Placement of replicas: the scenarios of Kafka's StripedReplicaPlacerTest, and properties."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.controller.partitions.cluster_view import UsableBroker
from kraft_wire.controller.topics import placement
from kraft_wire.controller.topics.placement import Assignment, Assignments, ReplicaPlacer
from kraft_wire.protocol.errors import ApiError, ErrorCode
from tests.controller.scripted_entropy import ScriptedEntropy, SeededEntropy


def up(broker_id: int, rack: str | None = None) -> UsableBroker:
    return UsableBroker(broker_id, rack, fenced=False)


def fenced(broker_id: int, rack: str | None = None) -> UsableBroker:
    return UsableBroker(broker_id, rack, fenced=True)


def as_tuples(assignments: Assignments) -> list[Assignment]:
    return [tuple(map(int, assignment)) for assignment in assignments]


def place_from_the_first(brokers: list[UsableBroker], partitions: int, factor: int) -> list[Assignment]:
    """Place with every random start at the first rack and broker."""
    return as_tuples(ReplicaPlacer(brokers, ScriptedEntropy()).place(partitions, factor))


def test_each_partition_starts_one_broker_further_and_avoids_the_fenced_one() -> None:
    brokers = [up(3), fenced(1), up(0), up(4), up(2)]
    assert place_from_the_first(brokers, 4, 4) == [(0, 2, 3, 4), (2, 3, 4, 0), (3, 4, 0, 2), (4, 0, 2, 3)]


def test_brokers_are_shuffled_once_every_unfenced_one_has_led() -> None:
    *_, first_of_next_round = ReplicaPlacer(
        [up(0), up(1), up(2), up(3)], ScriptedEntropy([0, 0, 0, 3, 1, 0])
    ).place(5, 3)
    assert first_of_next_round not in [(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)]


def test_one_unfenced_broker_leads_every_partition() -> None:
    assert place_from_the_first([up(0), fenced(1)], 3, 1) == [(0,), (0,), (0,)]


def test_fenced_brokers_follow_where_there_are_no_others() -> None:
    assert place_from_the_first([up(3), fenced(1), up(2)], 2, 3) == [(2, 3, 1), (3, 2, 1)]


def test_replicas_are_striped_over_racks() -> None:
    brokers = [up(11, "1"), up(10, "1"), up(30, "3"), up(31, "3"), up(21, "2"), fenced(20, "2")]
    assert place_from_the_first(brokers, 3, 4) == [(10, 21, 30, 11), (21, 31, 11, 20), (30, 10, 21, 31)]


def test_a_rack_without_unfenced_brokers_cannot_give_the_leader() -> None:
    brokers = [up(11, "1"), up(10, "1"), fenced(30, "3"), fenced(31, "3"), fenced(20, "2"), up(41, "4")]
    for assignment in place_from_the_first(brokers, 12, 4):
        assert assignment[0] in (10, 11, 41)
        assert {str(broker)[0] for broker in assignment} == {"1", "2", "3", "4"}


def test_brokers_without_a_rack_count_as_one_rack() -> None:
    brokers = [up(0), up(1), up(2), up(9, "a")]
    for assignment in place_from_the_first(brokers, 8, 2):
        assert 9 in assignment


def test_every_topic_starts_at_a_random_broker_and_rack() -> None:
    brokers = [up(0, "a"), up(1, "a"), up(2, "b"), up(3, "b")]
    placer = ReplicaPlacer(brokers, ScriptedEntropy([1, 0, 1, 0, 0, 1]))
    assert placer.place(1, 2) == [(2, 1)]
    assert placer.place(1, 2) == [(0, 3)]


def test_two_hundred_partitions_are_spread_evenly() -> None:
    placed = ReplicaPlacer([up(0), up(1), up(2), up(3)], SeededEntropy(1)).place(200, 2)
    assignments = as_tuples(placed)
    assert Counter(leader for leader, _ in assignments) == {0: 50, 1: 50, 2: 50, 3: 50}
    pairs = Counter(assignments)
    assert len(pairs) == 12
    assert min(pairs.values()) >= 8
    assert max(pairs.values()) <= 26


class CountingEntropy(SeededEntropy):
    """Counts what is drawn."""

    def __init__(self) -> None:
        super().__init__(1)
        self.draws = 0

    def below(self, bound: int) -> int:
        self.draws += 1
        return super().below(bound)


@pytest.mark.parametrize("racks", [1, 3, 1_000])
@pytest.mark.parametrize("factor", [1, 4])
def test_the_work_for_a_partition_does_not_grow_with_the_fenced_brokers(racks: int, factor: int) -> None:
    brokers = [
        UsableBroker(broker, None if racks == 1 else str(broker % racks), fenced=broker >= 3)
        for broker in range(1_000)
    ]
    entropy = CountingEntropy()
    placed = as_tuples(ReplicaPlacer(brokers, entropy).place(5_000, factor))
    assert {leader for leader, *_ in placed} == {0, 1, 2}
    assert entropy.draws < 5 * 5_000


@pytest.mark.parametrize("racks", [1, 500])
def test_the_work_for_a_topic_does_not_grow_with_the_racks(racks: int) -> None:
    brokers = [up(broker, None if racks == 1 else str(broker % racks)) for broker in range(1_000)]
    entropy = CountingEntropy()
    placer = ReplicaPlacer(brokers, entropy)
    for _ in range(100):
        placer.place(1, 3)
    assert entropy.draws <= 100 * 4


@given(st.integers(1, 8), st.integers(0, 8), st.integers(1, 200), st.data())
def test_columns_are_the_assignments_that_come_one_after_the_other(
    unfenced: int, others: int, partitions: int, data: st.DataObject
) -> None:
    brokers = [UsableBroker(broker, None, fenced=broker >= unfenced) for broker in range(unfenced + others)]
    factor = data.draw(st.integers(1, unfenced + others))
    placed = as_tuples(ReplicaPlacer(brokers, SeededEntropy(3)).place(partitions, factor))
    with pytest.MonkeyPatch.context() as one_by_one:
        one_by_one.setattr(placement, "FEWEST_IN_COLUMNS", 1_000)
        assert as_tuples(ReplicaPlacer(brokers, SeededEntropy(3)).place(partitions, factor)) == placed


@pytest.mark.parametrize(
    ("brokers", "factor", "problem"),
    [
        ([up(10), up(11)], 3, "can take replicas is 2"),
        ([up(10), up(11)], 0, "positive"),
        ([up(10), up(11)], -1, "positive"),
        ([fenced(10), fenced(11)], 1, "every broker is fenced"),
        ([], 1, "every broker is fenced"),
    ],
)
def test_what_cannot_be_placed_is_refused(brokers: list[UsableBroker], factor: int, problem: str) -> None:
    with pytest.raises(ApiError, match=problem) as refused:
        ReplicaPlacer(brokers, SeededEntropy()).place(1, factor)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


racks = st.sampled_from([None, "a", "b", "c"])
clusters = st.lists(
    st.builds(UsableBroker, st.integers(0, 40), racks, st.booleans()), max_size=12, unique_by=lambda b: b.id
).filter(lambda brokers: any(not broker.fenced for broker in brokers))


@given(clusters, st.data())
def test_constraints_hold_for_every_cluster(brokers: list[UsableBroker], data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    seed = data.draw(st.integers(0, 5))
    by_id = {broker.id: broker for broker in brokers}
    in_rack = Counter(broker.rack for broker in brokers)
    for assignment in as_tuples(ReplicaPlacer(brokers, SeededEntropy(seed)).place(30, factor)):
        assert len(set(assignment)) == factor
        assert not by_id[assignment[0]].fenced
        spread = Counter(by_id[broker_id].rack for broker_id in assignment)
        for rack, size in in_rack.items():
            assert spread[rack] >= min(size, factor // len(in_rack))
        left_out = {broker.rack for broker in brokers if not broker.fenced and broker.id not in assignment}
        used_fenced = {by_id[broker_id].rack for broker_id in assignment if by_id[broker_id].fenced}
        assert left_out.isdisjoint(used_fenced)
