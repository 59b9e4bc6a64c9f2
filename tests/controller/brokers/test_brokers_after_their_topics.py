"""What a broker was in an ISR or ELR of is gone: a deleted topic stands in no broker's way.

Kafka 4.4.0 remembers such a topic: each further request is an internal error, or ends the leadership.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.controller.topics import delete_topics
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import SESSION_TIMEOUT_MS, directory
from tests.controller.topic_cluster import TopicCluster


def delete(cluster: TopicCluster, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
    (answer,) = cluster.run(delete_topics, request, 6, DeleteTopicsResponse).responses
    assert answer.error_code == 0


def cluster_with_elr() -> tuple[TopicCluster, Uuid]:
    """Return a cluster of two brokers with directories 0 and 1 each, and the id of topic foo on both."""
    cluster = TopicCluster(elr=True)
    for broker_id in (0, 1):
        cluster.register(broker_id, log_dirs=[directory(broker_id), directory(broker_id, 1)])
        cluster.heartbeat(broker_id)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.set_min_isr("foo", 2)
    return cluster, foo


def test_a_directory_fails_after_a_topic_with_an_empty_isr_was_deleted() -> None:
    cluster, foo = cluster_with_elr()
    cluster.fence(1, 0)
    assert (cluster.partition(foo).isr, cluster.partition(foo).elr) == ((), (0, 1))
    delete(cluster, "foo")
    for failed in (directory(0), directory(0, 1)):
        assert cluster.heartbeat(0, want_fence=True, offline=[failed]).error_code == 0
    assert cluster.metadata.partitions.get(foo, 0) is None


def unregister(cluster: TopicCluster) -> None:
    cluster.unregister(1)
    assert list(cluster.metadata.brokers) == [0]


def come_back_after_a_crash(cluster: TopicCluster) -> None:
    cluster.now_ms += SESSION_TIMEOUT_MS + 1
    cluster.register(1, 2, log_dirs=[directory(1), directory(1, 1)])
    assert not cluster.heartbeat(1).is_fenced


@pytest.mark.parametrize("what_follows", [unregister, come_back_after_a_crash])
def test_a_broker_that_was_in_a_cleared_elr_of_a_deleted_topic(
    what_follows: Callable[[TopicCluster], None],
) -> None:
    cluster, foo = cluster_with_elr()
    cluster.fence(1)
    assert cluster.partition(foo).elr == (1,)
    cluster.replay([(ClearElrRecord(topic_name="foo"), 0)])
    assert cluster.partition(foo).elr == ()
    delete(cluster, "foo")
    what_follows(cluster)
    assert PartitionRef(foo, 0) not in cluster.led_by(1)
