"""DeleteTopics: the rules of ControllerApis for names and ids, and the state after a deletion."""

from __future__ import annotations

import pytest

from kraft_wire.controller.topics import delete_topics
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import failure, uuid
from tests.controller.topic_cluster import TopicCluster, new_topic

Outcome = tuple[str | None, Uuid, ErrorCode]


def outcomes(results: list[DeletableTopicResult]) -> set[Outcome]:
    assert len({(result.name, result.topic_id) for result in results}) == len(results)
    return {(result.name, result.topic_id, ErrorCode(result.error_code)) for result in results}


def by_name(cluster: TopicCluster, *names: str, version: int = 5) -> set[Outcome]:
    request = DeleteTopicsRequest(topic_names=names)
    return outcomes(cluster.run(delete_topics, request, version, DeleteTopicsResponse).responses)


def delete(cluster: TopicCluster, *topics: str | Uuid | DeleteTopicState) -> set[Outcome]:
    """Delete topics with version 6, by names, ids or both."""
    states = []
    for topic in topics:
        if isinstance(topic, str):
            topic = DeleteTopicState(name=topic)
        elif isinstance(topic, Uuid):
            topic = DeleteTopicState(name=None, topic_id=topic)
        states.append(topic)
    request = DeleteTopicsRequest(topics=states)
    return outcomes(cluster.run(delete_topics, request, 6, DeleteTopicsResponse).responses)


@pytest.fixture
def cluster() -> TopicCluster:
    """A cluster with topics foo and bar."""
    made = TopicCluster(0, 1)
    made.create(new_topic("foo", partitions=3, factor=2), new_topic("bar"))
    made.set_config(ResourceType.TOPIC, "foo", "cleanup.policy", "compact")
    return made


def topic_id(cluster: TopicCluster, name: str) -> Uuid:
    topic = cluster.metadata.topics.by_name(name)
    assert topic is not None
    return topic.id


@pytest.mark.parametrize("version", [5, 6])
def test_the_longest_name_still_gets_an_answer(cluster: TopicCluster, version: int) -> None:
    name = "n" * 32_767
    request = DeleteTopicsRequest(topic_names=(name,))
    if version == 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
    response = cluster.run(delete_topics, request, version, DeleteTopicsResponse)
    (result,) = DeleteTopicsResponse.decode(response.encode(version), version).responses
    assert (result.name, result.error_code) == (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(cluster: TopicCluster, version: int) -> None:
    foo = topic_id(cluster, "foo")
    assert by_name(cluster, "foo", "nope", version=version) == {
        ("foo", Uuid.ZERO, ErrorCode.NONE),
        ("nope", Uuid.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    assert [topic.name for topic in cluster.metadata.topics] == ["bar"]
    assert cluster.metadata.partitions.get(foo, 0) is None
    assert cluster.metadata.configs.get(ResourceType.TOPIC, "foo") == {}
    assert cluster.metadata.partitions.with_isr_member(1) == [
        ref for ref in cluster.metadata.partitions.with_isr_member(1) if ref.topic_id != foo
    ]


def test_topics_are_deleted_by_name_and_by_id_in_version_6(cluster: TopicCluster) -> None:
    foo, bar = topic_id(cluster, "foo"), topic_id(cluster, "bar")
    assert delete(cluster, "foo", bar, uuid(999)) == {
        ("foo", foo, ErrorCode.NONE),
        ("bar", bar, ErrorCode.NONE),
        (None, uuid(999), ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert len(cluster.metadata.topics) == 0


def test_a_deleted_topic_can_be_created_again_with_another_id(cluster: TopicCluster) -> None:
    old = topic_id(cluster, "foo")
    by_name(cluster, "foo")
    cluster.create(new_topic("foo"))
    assert topic_id(cluster, "foo") != old
    assert delete(cluster, old) == {(None, old, ErrorCode.UNKNOWN_TOPIC_ID)}


def test_what_is_ambiguous_is_not_deleted(cluster: TopicCluster) -> None:
    foo, bar = topic_id(cluster, "foo"), topic_id(cluster, "bar")
    assert delete(cluster, DeleteTopicState(name="foo", topic_id=foo), DeleteTopicState(name=None)) == {
        ("foo", foo, ErrorCode.INVALID_REQUEST),
        (None, Uuid.ZERO, ErrorCode.INVALID_REQUEST),
    }
    assert delete(cluster, "foo", "foo", bar, bar) == {
        ("foo", Uuid.ZERO, ErrorCode.INVALID_REQUEST),
        (None, bar, ErrorCode.INVALID_REQUEST),
    }
    assert delete(cluster, foo, "foo") == {("foo", foo, ErrorCode.INVALID_REQUEST)}
    assert delete(cluster, "bar", bar, bar) == {
        (None, bar, ErrorCode.INVALID_REQUEST),
        ("bar", bar, ErrorCode.INVALID_REQUEST),
    }
    assert len(cluster.metadata.topics) == 2


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_REQUEST), (2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED),
     (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)  # fmt: skip
def test_deletion_can_be_disabled(version: int, code: ErrorCode) -> None:
    cluster = TopicCluster(0, delete_topic_enable=False)
    cluster.create(new_topic("foo"))
    names = DeleteTopicsRequest(topic_names=("foo",))
    request = names if version < 6 else DeleteTopicsRequest(topics=[DeleteTopicState(name="foo")])
    with pytest.raises(ApiError) as refused:
        cluster.decide(delete_topics, request, version)
    assert refused.value.code is code
    response = failure(DeleteTopicsResponse, request, version, code, refused.value.message)
    assert outcomes(response.responses) == {("foo", Uuid.ZERO, code)}
    assert DeleteTopicsResponse.decode(response.encode(version), version).responses[0].error_code == code


@pytest.mark.parametrize("count", [15, 16, 40])
def test_many_topics_are_deleted_as_few_are(count: int) -> None:
    cluster = TopicCluster(0, 1)
    names = [f"foo-{number}" for number in range(count)]
    cluster.create(*[new_topic(name, partitions=2) for name in [*names, "bar"]])
    cluster.set_config(ResourceType.TOPIC, "foo-3", "cleanup.policy", "compact")
    ids = [topic_id(cluster, name) for name in names]
    result = cluster.decide(delete_topics, DeleteTopicsRequest(topic_names=tuple(names)), 5)
    assert list(result.records) == [(RemoveTopicRecord(each), 0) for each in ids]
    cluster.apply(result)
    assert [topic.name for topic in cluster.metadata.topics] == ["bar"]
    assert len(cluster.metadata.partitions) == 2
    assert not list(cluster.metadata.configs.resources())


def test_the_decision_is_atomic(cluster: TopicCluster) -> None:
    result = cluster.decide(delete_topics, DeleteTopicsRequest(topic_names=("foo", "bar")), 5)
    assert result.atomic
    assert [(record.NAME, version) for record, version in result.records] == [("RemoveTopicRecord", 0)] * 2
