"""ElectLeaders: the scenarios of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kraft_wire.controller.partitions import elect_leaders
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import NO_LEADER, RECOVERING
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import SESSION_TIMEOUT_MS, failure
from tests.controller.topic_cluster import TopicCluster, changes

PREFERRED, UNCLEAN = 0, 1


def test_the_longest_name_still_gets_an_answer() -> None:
    name = "n" * 32_767
    response = TopicCluster(0).run(elect_leaders, request(PREFERRED, {name: [0]}), 2, ElectLeadersResponse)
    (topic,) = ElectLeadersResponse.decode(response.encode(2), 2).replica_election_results
    assert topic.topic == name


def request(election: int, partitions: Mapping[str, Sequence[int]] | None) -> ElectLeadersRequest:
    named = None
    if partitions is not None:
        named = [TopicPartitions(name, tuple(indexes)) for name, indexes in partitions.items()]
    return ElectLeadersRequest(election, named)


def elect(
    cluster: TopicCluster, election: int, partitions: Mapping[str, Sequence[int]] | None, version: int = 2
) -> dict[tuple[str, int], ErrorCode]:
    response = cluster.run(elect_leaders, request(election, partitions), version, ElectLeadersResponse)
    assert response.error_code == ErrorCode.NONE
    return {
        (topic.topic, result.partition_id): ErrorCode(result.error_code)
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def join_isr(cluster: TopicCluster, topic_id: Uuid, index: int, isr: tuple[int, ...]) -> None:
    cluster.replay([(PartitionChangeRecord(partition_id=index, topic_id=topic_id, isr=isr), 2)])


@pytest.mark.parametrize("version", range(3))
def test_preferred_leaders_are_elected_once_they_are_in_sync(version: int) -> None:
    cluster = TopicCluster(1, 2, 3, 4)
    cluster.register(0)
    cluster.begin_shutdown(1)
    foo = cluster.create_topic("foo", [1, 2, 3], [2, 3, 4], [0, 2, 1])
    wanted = {"foo": [0, 1, 2, 7], "bar": [0]}
    assert elect(cluster, PREFERRED, wanted, version) == {
        ("foo", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("foo", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("foo", 2): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("foo", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("bar", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    cluster.unfence(0)
    cluster.now_ms += 2 * SESSION_TIMEOUT_MS
    cluster.register(1, incarnation=2)
    cluster.unfence(1)
    join_isr(cluster, foo, 0, (1, 2, 3))
    join_isr(cluster, foo, 2, (0, 2, 1))
    assert elect(cluster, PREFERRED, wanted, version) == {
        ("foo", 0): ErrorCode.NONE,
        ("foo", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("foo", 2): ErrorCode.NONE,
        ("foo", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("bar", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert cluster.leader_and_isr(foo, 0) == (1, (1, 2, 3))
    assert cluster.leader_and_isr(foo, 2) == (0, (0, 2, 1))
    assert cluster.partition(foo, 0).leader_epoch == 1


def test_a_preferred_election_of_all_answers_for_those_that_needed_it() -> None:
    cluster = TopicCluster(0, 1, 2)
    foo = cluster.create_topic("foo", [0, 1], [1, 0])
    bar = cluster.create_topic("bar", [2, 1])
    cluster.create_topic("fine", [1, 0])
    cluster.fence(0, 2)
    cluster.unfence(0)
    join_isr(cluster, foo, 0, (0, 1))
    assert elect(cluster, PREFERRED, None) == {
        ("foo", 0): ErrorCode.NONE,
        ("bar", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
    assert cluster.partition(foo, 0).leader == 0
    assert cluster.partition(bar, 0).leader == 1


@pytest.mark.parametrize("everything", [False, True])
def test_unclean_elections_where_nothing_in_sync_is_left(everything: bool) -> None:
    cluster = TopicCluster(0, 1, 2, 3, 4, level=13)
    foo = cluster.create_topic("foo", [1, 2, 3], [2, 3, 4], [0, 2, 1])
    wanted = None if everything else {"foo": [0, 1, 2]}
    not_needed = {} if everything else {
        ("foo", 1): ErrorCode.ELECTION_NOT_NEEDED, ("foo", 2): ErrorCode.ELECTION_NOT_NEEDED
    }  # fmt: skip
    cluster.fence(2, 3, 1)
    assert cluster.leader_and_isr(foo, 0) == (NO_LEADER, (1,))
    assert (
        elect(cluster, UNCLEAN, wanted) == {("foo", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE} | not_needed
    )

    cluster.unfence(2)
    join_isr(cluster, foo, 1, (2, 4))
    assert elect(cluster, UNCLEAN, wanted) == {("foo", 0): ErrorCode.NONE} | not_needed
    assert cluster.leader_and_isr(foo, 0) == (2, (2,))
    assert cluster.partition(foo, 0).leader_recovery_state == RECOVERING
    # An unclean election does not elect the preferred leader: 2 is the first replica of partition 1.
    assert cluster.leader_and_isr(foo, 1) == (4, (2, 4))


def test_a_preferred_election_is_never_unclean() -> None:
    cluster = TopicCluster(1, 2, 3)
    foo = cluster.create_topic("foo", [1, 2, 3])
    cluster.fence(2, 3, 1)
    cluster.unfence(2)
    cluster.set_config(ResourceType.TOPIC, "foo", "unclean.leader.election.enable", "true")
    assert elect(cluster, PREFERRED, {"foo": [0]}) == {("foo", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert cluster.leader_and_isr(foo) == (NO_LEADER, (1,))


def test_records_have_the_version_of_the_finalized_level_and_may_be_split() -> None:
    cluster = TopicCluster(0, 1)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(0)
    cluster.unfence(0)
    join_isr(cluster, foo, 0, (0, 1))
    result = cluster.decide(elect_leaders, request(PREFERRED, None), 2)
    assert not result.atomic
    assert [version for _, version in result.records] == [2]
    assert changes(result.records) == [PartitionChangeRecord(partition_id=0, topic_id=foo, leader=0)]


def test_an_unknown_type_of_election_fails_as_a_whole() -> None:
    wrong = request(2, {"foo": [0, 1]})
    with pytest.raises(ApiError) as refused:
        TopicCluster().decide(elect_leaders, wrong, 2)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    response = failure(ElectLeadersResponse, wrong, 2, refused.value.code, refused.value.message)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    (topic,) = response.replica_election_results
    assert [(result.partition_id, result.error_code) for result in topic.partition_result] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.INVALID_REQUEST),
    ]


def test_version_0_has_no_place_for_an_error_at_the_top() -> None:
    asked = request(PREFERRED, {"foo": [0]})
    response = failure(ElectLeadersResponse, asked, 0, ErrorCode.NOT_CONTROLLER, "not here")
    decoded = ElectLeadersResponse.decode(response.encode(0), 0)
    assert decoded.replica_election_results[0].partition_result[0].error_code == ErrorCode.NOT_CONTROLLER


def test_an_error_of_all_partitions_has_only_the_code_at_the_top() -> None:
    response = failure(
        ElectLeadersResponse, request(PREFERRED, None), 2, ErrorCode.NOT_CONTROLLER, "not here"
    )
    assert response == ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER)
