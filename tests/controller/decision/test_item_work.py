"""A request about many items is decided in pieces: the same results and the same state as in one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import ModuleType

import pytest

from kraft_wire.controller.decision import item_work
from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.node.speculative_writes import prepare, prepare_records
from kraft_wire.controller.partitions import alter_partition, assign_replicas_to_dirs, elect_leaders
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import alter_partition_request as alter
from kraft_wire.protocol.messages import assign_replicas_to_dirs_request as assign
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import Harness, directory, uuid
from tests.controller.partitions.random_cluster import BROKERS, RandomCluster
from tests.controller.topic_cluster import TopicCluster, new_topic

SEEDS = 60


def alteration(cluster: RandomCluster, random: Random) -> tuple[Message, int]:
    """Return proposals of any ISRs for all partitions, and for some that don't exist."""
    leader = random.randrange(BROKERS)
    topics = []
    for topic in cluster.metadata.topics:
        proposals = []
        for index, partition in cluster.metadata.partitions.indexed(topic.id):
            members = random.sample(partition.replicas, random.randint(1, len(partition.replicas)))
            isr = [alter.BrokerState(broker_id=each, broker_epoch=-1) for each in members]
            proposals.append(
                alter.PartitionData(
                    partition_index=index,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=isr,
                    partition_epoch=partition.partition_epoch,
                )
            )
        topics.append(alter.TopicData(topic_id=topic.id, partitions=proposals))
    topics.append(alter.TopicData(topic_id=uuid(99), partitions=[alter.PartitionData(partition_index=0)]))
    epoch = cluster.metadata.brokers[leader].epoch
    return alter.AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, topics=topics), 3


def assignment(cluster: RandomCluster, random: Random) -> tuple[Message, int]:
    """Return a directory for each partition, one of two, of which one may be unknown."""
    broker_id = random.randrange(BROKERS)
    refs = [
        (topic.id, index)
        for topic in cluster.metadata.topics
        for index, _ in cluster.metadata.partitions.indexed(topic.id)
    ]
    chosen: dict[Uuid, list[assign.TopicData]] = {}
    for topic_id, index in refs:
        data = assign.TopicData(topic_id, [assign.PartitionData(index)])
        chosen.setdefault(directory(broker_id, random.randint(0, 1)), []).append(data)
    epoch = cluster.metadata.brokers[broker_id].epoch
    directories = [assign.DirectoryData(id, topics) for id, topics in chosen.items()]
    return assign.AssignReplicasToDirsRequest(broker_id, epoch, directories), 0


def election(cluster: RandomCluster, random: Random) -> tuple[Message, int]:
    topics = [
        TopicPartitions(topic.name, tuple(range(topic.partition_count + 1)))
        for topic in cluster.metadata.topics
    ]
    return ElectLeadersRequest(random.randint(0, 1), topics), 2


def decide(cluster: TopicCluster, module: ModuleType, request: Message, version: int) -> tuple[object, int]:
    """Do all of a request. Returns the response, or the error, and the number of pieces."""
    try:
        return rest_of(cluster, module.handle(cluster.state, request, version, cluster.context()))
    except ApiError as error:
        return error.code, 0


def rest_of(cluster: Harness, result: Result) -> tuple[object, int]:
    """Write the first piece of a request, and do what is left of it. Raises ApiError."""
    prepare(result)
    cluster.replay(() if result.validate_only else result.records)
    response, pieces, works = result.response, 1, result.works
    while response is None:
        (work,) = works
        piece = work.decide(cluster.state, cluster.context())
        prepare_records(piece.records, atomic=piece.atomic)
        cluster.replay(() if piece.is_trial else piece.records)
        response, pieces, works = piece.response, pieces + 1, piece.rest_of(work)
    assert not works
    return response, pieces


def _is_at_the_end(cluster: RandomCluster) -> bool:
    """Whether the leader epoch of a partition can't be raised twice."""
    columns = cluster.metadata.partitions.columns
    return bool(columns.leader_epoch[: cluster.metadata.partitions.row_count].max() > 2**31 - 10)


@pytest.mark.parametrize(
    ("module", "make"),
    [(alter_partition, alteration), (assign_replicas_to_dirs, assignment), (elect_leaders, election)],
)
def test_pieces_come_to_the_same_as_the_whole(
    module: ModuleType,
    make: Callable[[RandomCluster, Random], tuple[Message, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most_pieces = 0
    for seed in range(SEEDS):
        whole, in_pieces = (RandomCluster(Random(seed)) for _ in range(2))
        if _is_at_the_end(whole):
            continue
        request, version = make(whole, Random(seed))
        monkeypatch.setattr(item_work, "ITEMS_PER_PIECE", 1_000)
        expected, _ = decide(whole, module, request, version)
        monkeypatch.setattr(item_work, "ITEMS_PER_PIECE", 3)
        found, pieces = decide(in_pieces, module, request, version)
        assert found == expected, seed
        in_pieces.metadata.last_applied_offset = whole.metadata.last_applied_offset
        assert fingerprint(in_pieces.metadata) == fingerprint(whole.metadata), seed
        most_pieces = max(most_pieces, pieces)
    assert most_pieces > 5


def test_a_broker_that_is_unregistered_meanwhile_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_work, "ITEMS_PER_PIECE", 1)
    cluster = TopicCluster(0)
    cluster.create(new_topic("foo", partitions=2))
    topic = cluster.metadata.topics.by_name("foo")
    assert topic is not None
    proposals = [alter.PartitionData(partition_index=index) for index in range(2)]
    request = alter.AlterPartitionRequest(
        0, cluster.metadata.brokers[0].epoch, [alter.TopicData(topic_id=topic.id, partitions=proposals)]
    )
    result = alter_partition.handle(cluster.state, request, 3, cluster.context())
    assert result.response is None
    cluster.unregister(0)
    (work,) = result.works
    with pytest.raises(ApiError) as refused:
        work.decide(cluster.state, cluster.context())
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
