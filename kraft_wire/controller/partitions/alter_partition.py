"""Serve AlterPartition (56), versions 2-3: accept the new ISR that a leader proposes.

Since version 3 every proposed member has its broker epoch (KIP-903); -1 is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import ItemWork
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKey, WorkKind
from kraft_wire.controller.partitions.cluster_view import ClusterView, check_broker_epoch
from kraft_wire.controller.partitions.partition_change import NO_RECOVERY_CHANGE, Goal
from kraft_wire.metadata.partitions.partition import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    Partition,
    PartitionRef,
)
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
)
from kraft_wire.protocol.messages.alter_partition_response import (
    AlterPartitionResponse,
)
from kraft_wire.protocol.messages.alter_partition_response import (
    PartitionData as AlteredPartition,
)
from kraft_wire.protocol.messages.alter_partition_response import (
    TopicData as AlteredTopic,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid

_FIRST_VERSION_WITH_EPOCHS = 3
_ANY_EPOCH = -1


def handle(state: ControllerState, request: AlterPartitionRequest, version: int, context: Context) -> Result:
    """Change the ISRs that may be changed.

    Raises ApiError(STALE_BROKER_EPOCH) unless the sender is the registered broker.
    """
    return Result.of_work(_AlterWork(request, version), state, context)


class _AlterWork(ItemWork[tuple[AlteredTopic, PartitionData]]):
    """The proposals of one request. Each goes with the topic of the response that gets its answer."""

    def __init__(self, request: AlterPartitionRequest, version: int) -> None:
        answers = [AlteredTopic(topic_id=topic.topic_id) for topic in request.topics]
        proposals = [
            (answer, proposal)
            for answer, topic in zip(answers, request.topics, strict=True)
            for proposal in topic.partitions
        ]
        super().__init__(WorkKey(WorkKind.ALTER, request.broker_id), proposals)
        self._answers = answers
        self._request = request
        self._version = version

    def decide_items(
        self, state: ControllerState, items: Sequence[tuple[AlteredTopic, PartitionData]]
    ) -> list[VersionedRecord]:
        broker_id = self._request.broker_id
        check_broker_epoch(state, broker_id, self._request.broker_epoch)
        alteration = _Alteration(ClusterView(state), broker_id, self._version)
        for answer, proposal in items:
            answer.partitions.append(alteration.alter(answer.topic_id, proposal))
        return alteration.records

    def response(self) -> AlterPartitionResponse:
        return AlterPartitionResponse(topics=self._answers)


class _Alteration:
    """Proposals of one leader, decided one after the other."""

    def __init__(self, view: ClusterView, leader_id: int, version: int) -> None:
        self.records: list[VersionedRecord] = []
        self._view = view
        self._leader_id = leader_id
        self._version = version

    def alter(self, topic_id: Uuid, proposal: PartitionData) -> AlteredPartition:
        metadata = self._view.state.metadata
        index = proposal.partition_index
        if metadata.topics.by_id(topic_id) is None:
            return _refusal(index, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = metadata.partitions.get(topic_id, index)
        if partition is None:
            return _refusal(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        members = self._members(proposal)
        refusal = self._stale(partition, proposal) or self._invalid(partition, proposal, members)
        if refusal is not None:
            return _refusal(index, refusal)
        if not all(map(self._is_eligible, members)):
            return _refusal(index, ErrorCode.INELIGIBLE_REPLICA)
        goal = Goal(
            election=self._view.online_election(topic_id),
            isr=tuple(member.broker_id for member in members),
            recovery_state=proposal.leader_recovery_state,
        )
        record = self._view.change(PartitionRef(topic_id, index), partition, goal)
        if record is None:
            return _answer(index, partition, None)
        self.records.append(record)
        change = record[0]
        assert isinstance(change, PartitionChangeRecord)
        if change.leader not in (self._leader_id, NO_LEADER_CHANGE):
            # The change completed a reassignment that gives the leadership to another broker. It is written.
            return _refusal(index, ErrorCode.NEW_LEADER_ELECTED)
        return _answer(index, partition, change)

    def _members(self, proposal: PartitionData) -> list[BrokerState]:
        if self._version >= _FIRST_VERSION_WITH_EPOCHS:
            return proposal.new_isr_with_epochs
        return [BrokerState(broker_id=broker_id, broker_epoch=_ANY_EPOCH) for broker_id in proposal.new_isr]

    def _stale(self, partition: Partition, proposal: PartitionData) -> ErrorCode | None:
        """Return the error for a proposal that is based on an older or a newer state of the partition.

        A newer state means that this node is no longer the active controller.
        """
        if (
            proposal.leader_epoch > partition.leader_epoch
            or proposal.partition_epoch > partition.partition_epoch
        ):
            return ErrorCode.NOT_CONTROLLER
        if proposal.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if self._leader_id != partition.leader:
            return ErrorCode.INVALID_REQUEST
        if proposal.partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        return None

    @staticmethod
    def _invalid(
        partition: Partition, proposal: PartitionData, members: list[BrokerState]
    ) -> ErrorCode | None:
        ids = {member.broker_id for member in members}
        recovery = proposal.leader_recovery_state
        is_valid = (
            len(ids) == len(members)
            and ids.issubset(partition.replicas)
            and partition.leader in ids
            and recovery in (RECOVERED, RECOVERING)
            and not (recovery == RECOVERING and len(ids) > 1)
            and not (recovery == RECOVERING and partition.leader_recovery_state == RECOVERED)
        )
        return None if is_valid else ErrorCode.INVALID_REQUEST

    def _is_eligible(self, member: BrokerState) -> bool:
        registration = self._view.state.metadata.brokers.get(member.broker_id)
        return (
            registration is not None
            and member.broker_id in self._view.active
            and member.broker_epoch in (_ANY_EPOCH, registration.epoch)
        )


def _refusal(index: int, code: ErrorCode) -> AlteredPartition:
    return AlteredPartition(partition_index=index, error_code=code)


def _answer(index: int, partition: Partition, change: PartitionChangeRecord | None) -> AlteredPartition:
    """Return the state of the partition after ``change``."""
    answer = AlteredPartition(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
    if change is None:
        return answer
    answer.partition_epoch += 1
    if change.leader != NO_LEADER_CHANGE:
        answer.leader_id = change.leader
        answer.leader_epoch += 1
    if change.isr is not None:
        answer.isr = change.isr
    if change.leader_recovery_state != NO_RECOVERY_CHANGE:
        answer.leader_recovery_state = change.leader_recovery_state
    return answer
