"""AlterPartition: the scenarios of Kafka's ReplicationControlManagerTest, and the order of the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from kraft_wire.controller.partitions import alter_partition
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import RECOVERED, RECOVERING, Ids
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.alter_partition_response import (
    AlterPartitionResponse,
)
from kraft_wire.protocol.messages.alter_partition_response import (
    PartitionData as Altered,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import directory, failure, uuid
from tests.controller.topic_cluster import TopicCluster

both_versions = pytest.mark.parametrize("version", [2, 3])


def proposal(cluster: TopicCluster, topic_id: Uuid, isr: Sequence[int], index: int = 0) -> PartitionData:
    """Return the proposal that the leader sends for this ISR."""
    partition = cluster.partition(topic_id, index)
    return PartitionData(
        partition_index=index,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr=tuple(isr),
        new_isr_with_epochs=[BrokerState(member, -1) for member in isr],
        leader_recovery_state=RECOVERED,
    )


def alter(
    cluster: TopicCluster,
    topic_id: Uuid,
    *proposals: PartitionData,
    version: int = 3,
    sender: int | None = None,
    broker_epoch: int | None = None,
) -> list[Altered]:
    """Send proposals for one topic as its leader. The answers must agree with the state afterwards."""
    if sender is None:
        sender = cluster.partition(topic_id, proposals[0].partition_index).leader
    epoch = cluster.metadata.brokers[sender].epoch if broker_epoch is None else broker_epoch
    with_epochs = version >= 3
    partitions = [
        msgspec.structs.replace(
            each,
            new_isr=() if with_epochs else each.new_isr,
            new_isr_with_epochs=each.new_isr_with_epochs if with_epochs else [],
        )
        for each in proposals
    ]
    request = AlterPartitionRequest(sender, epoch, [TopicData(topic_id, partitions)])
    response = cluster.run(alter_partition, request, version, AlterPartitionResponse)
    assert response.error_code == ErrorCode.NONE
    (topic,) = response.topics
    assert topic.topic_id == topic_id
    for answer in topic.partitions:
        if answer.error_code == ErrorCode.NONE:
            partition = cluster.partition(topic_id, answer.partition_index)
            assert (answer.leader_id, answer.isr) == (partition.leader, partition.isr)
            assert answer.leader_epoch == partition.leader_epoch
            assert answer.partition_epoch == partition.partition_epoch
            assert answer.leader_recovery_state == partition.leader_recovery_state
    return topic.partitions


def code(answers: list[Altered]) -> ErrorCode:
    (answer,) = answers
    return ErrorCode(answer.error_code)


@pytest.fixture
def cluster() -> TopicCluster:
    return TopicCluster(0, 1, 2)


@both_versions
def test_an_isr_shrinks_and_grows(cluster: TopicCluster, version: int) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0, 1]), version=version)
    assert (answer.error_code, answer.isr, answer.partition_epoch, answer.leader_epoch) == (0, (0, 1), 1, 0)
    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0, 1, 2]), version=version)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (0, 1, 2), 2)


def test_an_isr_that_is_already_so_is_confirmed_without_a_record(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    before = cluster.state.next_offset
    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0, 1, 2]))
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (0, 1, 2), 0)
    assert cluster.state.next_offset == before


def test_before_3_6_a_smaller_isr_raises_the_leader_epoch() -> None:
    cluster = TopicCluster(0, 1, level=11)
    foo = cluster.create_topic("foo", [0, 1])
    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0]))
    assert (answer.error_code, answer.isr, answer.leader_epoch) == (0, (0,), 1)


def test_with_elr_the_members_that_leave_are_eligible() -> None:
    cluster = TopicCluster(0, 1, 2, elr=True)
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.set_min_isr("foo", 2)
    alter(cluster, foo, proposal(cluster, foo, [0]))
    assert cluster.partition(foo).elr == (1, 2)
    alter(cluster, foo, proposal(cluster, foo, [0, 1]))
    assert cluster.partition(foo).elr == ()
    assert cluster.partition(foo).isr == (0, 1)


# Eligible members


@both_versions
def test_a_fenced_broker_is_not_eligible(cluster: TopicCluster, version: int) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.fence(2)
    everybody = proposal(cluster, foo, [0, 1, 2])
    assert code(alter(cluster, foo, everybody, version=version)) is ErrorCode.INELIGIBLE_REPLICA
    cluster.unfence(2)
    (answer,) = alter(cluster, foo, everybody, version=version)
    assert (answer.error_code, answer.isr) == (0, (0, 1, 2))


@both_versions
def test_a_broker_that_shuts_down_is_not_eligible(cluster: TopicCluster, version: int) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.begin_shutdown(2)
    answers = alter(cluster, foo, proposal(cluster, foo, [0, 1, 2]), version=version)
    assert code(answers) is ErrorCode.INELIGIBLE_REPLICA


def test_an_unregistered_broker_is_not_eligible(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.unregister(2)
    assert code(alter(cluster, foo, proposal(cluster, foo, [0, 1, 2]))) is ErrorCode.INELIGIBLE_REPLICA


def test_the_epoch_of_a_member_must_be_current_where_it_is_given(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    alter(cluster, foo, proposal(cluster, foo, [0, 1]))
    epoch = cluster.metadata.brokers[2].epoch
    wanted = proposal(cluster, foo, [0, 1, 2])
    wanted.new_isr_with_epochs[2] = BrokerState(2, epoch - 1)
    assert code(alter(cluster, foo, wanted)) is ErrorCode.INELIGIBLE_REPLICA
    wanted.new_isr_with_epochs[2] = BrokerState(2, epoch)
    assert code(alter(cluster, foo, wanted)) is ErrorCode.NONE


# Refusals


Edit = Callable[[PartitionData], None]


def edited(**fields: object) -> Edit:
    def edit(wanted: PartitionData) -> None:
        for name, value in fields.items():
            setattr(wanted, name, value)

    return edit


def isr(*members: int) -> Edit:
    return edited(new_isr=members, new_isr_with_epochs=[BrokerState(member, -1) for member in members])


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([edited(leader_epoch=9)], ErrorCode.NOT_CONTROLLER),
        ([edited(partition_epoch=9)], ErrorCode.NOT_CONTROLLER),
        ([edited(leader_epoch=0, partition_epoch=9)], ErrorCode.NOT_CONTROLLER),
        ([edited(leader_epoch=0)], ErrorCode.FENCED_LEADER_EPOCH),
        ([edited(leader_epoch=0, partition_epoch=0)], ErrorCode.FENCED_LEADER_EPOCH),
        ([edited(partition_epoch=0)], ErrorCode.INVALID_UPDATE_VERSION),
        ([edited(partition_epoch=0), isr(2)], ErrorCode.INVALID_UPDATE_VERSION),
        ([isr(1, 2, 3)], ErrorCode.INVALID_REQUEST),
        ([isr(1, 1)], ErrorCode.INVALID_REQUEST),
        ([isr(2)], ErrorCode.INVALID_REQUEST),
        ([isr()], ErrorCode.INVALID_REQUEST),
        ([isr(1, -1)], ErrorCode.INVALID_REQUEST),
        ([edited(leader_recovery_state=RECOVERING)], ErrorCode.INVALID_REQUEST),
        ([isr(1), edited(leader_recovery_state=RECOVERING)], ErrorCode.INVALID_REQUEST),
        ([edited(leader_recovery_state=2)], ErrorCode.INVALID_REQUEST),
        ([edited(leader_recovery_state=7)], ErrorCode.INVALID_REQUEST),
        ([edited(leader_recovery_state=-1)], ErrorCode.INVALID_REQUEST),
        ([isr(1, 0)], ErrorCode.INELIGIBLE_REPLICA),
        ([isr(1, 2)], ErrorCode.NONE),
    ],
)
def test_which_error_a_proposal_of_the_leader_gets(edits: list[Edit], expected: ErrorCode) -> None:
    cluster = TopicCluster(0, 1, 2, 3)
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.fence(0)  # leader epoch 1, partition epoch 1, ISR 1 and 2
    wanted = proposal(cluster, foo, [1, 2])
    for edit in edits:
        edit(wanted)
    assert code(alter(cluster, foo, wanted)) is expected


def test_epochs_are_looked_at_before_who_leads(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    wanted = proposal(cluster, foo, [0, 1])
    assert code(alter(cluster, foo, wanted, sender=1)) is ErrorCode.INVALID_REQUEST
    wanted.partition_epoch = 5
    assert code(alter(cluster, foo, wanted, sender=1)) is ErrorCode.NOT_CONTROLLER


def test_unknown_topics_and_partitions(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0])
    assert code(alter(cluster, foo, PartitionData(partition_index=1), sender=0)) is (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert code(alter(cluster, uuid(999), PartitionData(), sender=0)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert code(alter(cluster, Uuid.ZERO, PartitionData(), sender=0)) is ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("sender", "epoch"), [(0, -1), (0, 10**6), (7, 0)])
def test_a_stale_sender_fails_as_a_whole(cluster: TopicCluster, sender: int, epoch: int) -> None:
    request = AlterPartitionRequest(sender, epoch, [])
    with pytest.raises(ApiError) as refused:
        cluster.decide(alter_partition, request, 3)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    response = failure(AlterPartitionResponse, request, 3, refused.value.code, refused.value.message)
    assert response == AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)


def test_one_refusal_does_not_cost_the_others(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1], [0, 2])
    stale = proposal(cluster, foo, [0], 0)
    stale.partition_epoch = 8
    answers = alter(cluster, foo, stale, proposal(cluster, foo, [0], 1))
    assert [ErrorCode(answer.error_code) for answer in answers] == [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]
    assert cluster.partition(foo, 1).isr == (0,)


# Recovery and reassignment


def test_a_leader_that_recovered_says_so() -> None:
    cluster = TopicCluster(0, 1)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.set_config(ResourceType.TOPIC, "foo", "unclean.leader.election.enable", "true")
    cluster.fence(0)
    cluster.fence(1)
    cluster.unfence(0)
    assert cluster.partition(foo).leader == 0
    assert cluster.partition(foo).leader_recovery_state == RECOVERING

    still = proposal(cluster, foo, [0])
    still.leader_recovery_state = RECOVERING
    (answer,) = alter(cluster, foo, still)
    assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERING)

    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0]))
    assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERED)
    assert cluster.partition(foo).leader_recovery_state == RECOVERED


def reassign(
    cluster: TopicCluster, topic_id: Uuid, replicas: Ids, adding: Ids, removing: Ids, isr: Ids | None = None
) -> None:
    record = PartitionChangeRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=replicas,
        adding_replicas=adding,
        removing_replicas=removing,
        directories=tuple(map(directory, replicas)),
        isr=isr,
    )
    cluster.replay([(record, 2)])


def test_the_isr_that_completes_a_reassignment_is_answered_with_the_outcome() -> None:
    cluster = TopicCluster(0, 1, 2, 3)
    foo = cluster.create_topic("foo", [0, 1, 2])
    reassign(cluster, foo, (0, 1, 3, 2), adding=(3,), removing=(2,))
    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0, 1, 2, 3]))
    assert (answer.error_code, answer.isr, answer.leader_id, answer.leader_epoch) == (0, (0, 1, 3), 0, 1)
    partition = cluster.partition(foo)
    assert partition.replicas == (0, 1, 3)
    assert partition.directories == tuple(map(directory, (0, 1, 3)))
    assert not partition.is_reassigning


def test_a_leader_that_is_reassigned_away_is_told_of_the_new_one() -> None:
    cluster = TopicCluster(0, 1, 2)
    foo = cluster.create_topic("foo", [0, 1])
    reassign(cluster, foo, (1, 2, 0), adding=(2,), removing=(0,))
    answers = alter(cluster, foo, proposal(cluster, foo, [0, 1, 2]))
    assert code(answers) is ErrorCode.NEW_LEADER_ELECTED
    partition = cluster.partition(foo)
    assert (partition.replicas, partition.leader, partition.isr) == ((1, 2), 1, (1, 2))


def test_a_reassignment_waits_while_nothing_that_stays_is_in_sync() -> None:
    cluster = TopicCluster(0, 1, 2)
    foo = cluster.create_topic("foo", [0, 1])
    reassign(cluster, foo, (1, 0), adding=(), removing=(0,), isr=(0,))
    (answer,) = alter(cluster, foo, proposal(cluster, foo, [0]))
    assert (answer.error_code, answer.leader_id, answer.isr) == (0, 0, (0,))
    assert cluster.partition(foo).is_reassigning
