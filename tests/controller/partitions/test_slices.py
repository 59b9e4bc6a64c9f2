"""Decisions that take several steps, while other things happen between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.controller.brokers import broker_changes
from kraft_wire.controller.brokers.broker_changes import BrokerChange
from kraft_wire.controller.decision.work import SliceLimits, Work
from kraft_wire.controller.partitions.timed_elections import elect_unclean_leaders
from kraft_wire.controller.topics import create_partitions, delete_topics
from kraft_wire.metadata.partitions import regions
from kraft_wire.metadata.partitions.partition import NO_LEADER
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from tests.controller.topic_cluster import TopicCluster

FEW = SliceLimits(window_rows=4, few_changes=4, most_considered=4, most_unusual=4)


class SlicedCluster(TopicCluster):
    """The brokers 1 and 2, and steps that decide about four partitions."""

    def __init__(self) -> None:
        super().__init__(1, 2)
        self.state.slice_limits = FEW
        self.works: list[Work] = []

    def start(self, change: BrokerChange) -> None:
        self.replay(change.records)
        self.works += change.works
        self.state.in_work = [work.key for work in self.works]

    def step(self) -> None:
        """Decide the next piece of the work whose turn it is."""
        work = self.works.pop(0)
        piece = work.decide(self.state, self.context())
        self.replay(piece.records)
        self.state.sessions.apply(piece.session_changes)
        self.works += piece.rest_of(work)
        self.state.in_work = [work.key for work in self.works]

    def steps_to_the_end(self, between: Callable[[int], None] = lambda step: None, most: int = 200) -> int:
        for step in range(most):
            if not self.works:
                return step
            self.step()
            between(step)
        raise AssertionError("it never ends")

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions. It moves if it has no room."""
        request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(topic, partitions, None)])
        (result,) = self.run(create_partitions, request, 3, CreatePartitionsResponse).results
        assert result.error_code == ErrorCode.NONE, result.error_message

    def delete(self, topic: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(topic)])
        (result,) = self.run(delete_topics, request, 6, DeleteTopicsResponse).responses
        assert result.error_code == ErrorCode.NONE, result.error_message


def begin(cluster: SlicedCluster, change: Callable[..., BrokerChange]) -> None:
    """Begin to fence or unfence broker 1."""
    cluster.start(change(cluster.state, cluster.metadata.brokers[1], cluster.context()))


def test_a_broker_that_is_fenced_while_it_is_unfenced_leads_nothing() -> None:
    cluster = SlicedCluster()
    for number in range(40):
        cluster.create_topic(f"of-2-{number}", (2,))
    own = [cluster.create_topic(f"of-1-{number}", (1,)) for number in range(6)]
    cluster.fence(1, 2)
    begin(cluster, broker_changes.unfence)
    begin(cluster, broker_changes.fence)
    cluster.steps_to_the_end()
    assert cluster.metadata.brokers[1].fenced
    assert [cluster.partition(topic_id).leader for topic_id in own] == [NO_LEADER] * 6


def moved_while_unfenced(cluster: SlicedCluster) -> TopicCluster:
    """Unfence broker 1; meanwhile, the last of its topics moves to the front."""
    cluster.create_topic("hole", *[(2,)] * 8)
    for number in range(20):
        cluster.create_topic(f"of-1-{number}", (1,))
    cluster.create_topic("last", (1,))
    cluster.create_topic("end", (1,))
    cluster.fence(1)
    begin(cluster, broker_changes.unfence)
    cluster.step()
    cluster.step()
    cluster.delete("hole")
    cluster.grow("last", 3)
    cluster.steps_to_the_end()
    return cluster


def test_a_partition_that_moves_to_passed_rows_is_not_missed() -> None:
    cluster = moved_while_unfenced(SlicedCluster())
    assert cluster.metadata.partitions.led_by(NO_LEADER) == []


def test_if_too_many_moves_are_to_be_remembered_it_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "_REMEMBERED_MOVES", 0)
    cluster = moved_while_unfenced(SlicedCluster())
    assert cluster.metadata.partitions.led_by(NO_LEADER) == []


def test_partitions_without_a_leader_that_keep_none_are_looked_at_in_several_steps() -> None:
    """Their topics don't allow unclean elections, and finding that out takes time."""
    cluster = SlicedCluster()
    for number in range(10):
        cluster.create_topic(f"of-1-{number}", *[(1,)] * 4)
    cluster.fence(1)
    done = elect_unclean_leaders(cluster.state, cluster.context())
    assert not done.records
    cluster.works += done.works
    assert cluster.steps_to_the_end() == 9


def test_topics_that_move_again_and_again_cannot_keep_a_broker_from_being_fenced() -> None:
    cluster = SlicedCluster()
    for number in range(20):
        cluster.create_topic(f"of-1-{number}", (1,))
    cluster.create_topic("new-0", (2,))
    begin(cluster, broker_changes.fence)

    def move_another(step: int) -> None:
        cluster.create_topic(f"new-{step + 1}", (2,))
        cluster.grow(f"new-{step}", 2)

    assert cluster.steps_to_the_end(move_another) < 15
    assert cluster.metadata.brokers[1].fenced


def test_many_partitions_of_a_moved_topic_take_several_slices() -> None:
    cluster = SlicedCluster()
    cluster.create_topic("hole", *[(2,)] * 100)
    for number in range(8):
        cluster.create_topic(f"of-1-{number}", (1,))
    cluster.create_topic("last", *[(1, 2)] * 30)
    cluster.create_topic("end", (2,))
    begin(cluster, broker_changes.fence)
    cluster.step()
    cluster.delete("hole")
    cluster.grow("last", 40)
    assert cluster.steps_to_the_end() >= 8
    partitions = cluster.metadata.partitions
    assert {ref.topic_id for ref in partitions.with_isr_member(1)}.isdisjoint(
        {topic.id for topic in cluster.metadata.topics if topic.name == "last"}
    )
