"""Check the rules of the metadata, record by record and batch by batch. A rule has its name from the TLA+
specification of KRaft's controller, if it has one there."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    Partition,
    PartitionRef,
)
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.sim.checkers.violations import Violation

MIN_ISR = "min.insync.replicas"
ELR_FEATURE = "eligible.leader.replicas.version"


class MetadataRules:
    """The rules. They are called before and after each record is replayed, and at the end of each batch."""

    def __init__(self, state: MetadataState) -> None:
        self._state = state
        self._old: Partition | None = None
        self._gone = ""
        self._epochs: dict[int, int] = {}
        self._touched: dict[PartitionRef, None] = {}
        self._touches_all = False

    # Records.

    def before(self, record: Message, base_offset: int) -> None:
        """Check that a record refers only to brokers and topics that exist (NoDanglingRecord)."""
        match record:
            case RegisterBrokerRecord():
                self._check_epoch(record, base_offset)
                self._touches_all = True
            case UnregisterBrokerRecord() | BrokerRegistrationChangeRecord() | ProducerIdsRecord():
                self._check_broker(record, record.broker_id, record.broker_epoch)
                self._touches_all = True
            case PartitionRecord():
                self._check_topic(record, self._has_topic(record.topic_id))
                self._check_brokers(record, record.replicas)
                self._check_joining(record, record.isr)
                self._touch(record)
            case PartitionChangeRecord():
                self._old = self._state.partitions.get(record.topic_id, record.partition_id)
                self._check_topic(record, self._old is not None)
                self._check_members(record)
                self._touch(record)
            case RemoveTopicRecord():
                topic = self._state.topics.by_id(record.topic_id)
                self._check_topic(record, topic is not None)
                self._gone = "" if topic is None else topic.name
                removed = [ref for ref in self._touched if ref.topic_id == record.topic_id]
                for ref in removed:
                    del self._touched[ref]
            case ConfigRecord():
                is_topic = record.resource_type == ResourceType.TOPIC
                self._check_topic(record, not is_topic or self._is_topic(record.resource_name))
                self._touches_all = True
            case ClearElrRecord():
                self._check_topic(record, not record.topic_name or self._is_topic(record.topic_name))
                self._touches_all = True
            case _:
                pass

    def after(self, record: Message) -> None:
        """Check the state after a record was replayed."""
        if isinstance(record, PartitionChangeRecord):
            new = self._state.partitions.get(record.topic_id, record.partition_id)
            assert new is not None
            assert self._old is not None
            self._check_election(record, self._old, new)
        if isinstance(record, RemoveTopicRecord):
            left = self._state.configs.get(ResourceType.TOPIC, self._gone)
            self._check_topic(record, not left)

    def _has_topic(self, topic_id: Uuid) -> bool:
        return self._state.topics.by_id(topic_id) is not None

    def _is_topic(self, name: str) -> bool:
        return self._state.topics.by_name(name) is not None

    def _touch(self, record: PartitionRecord | PartitionChangeRecord) -> None:
        self._touched[PartitionRef(record.topic_id, record.partition_id)] = None

    def _check_topic(self, record: Message, is_there: bool) -> None:
        if not is_there:
            raise Violation("NoDanglingRecord", f"{record} is about a topic that isn't there")

    def _check_broker(self, record: Message, broker_id: int, epoch: int) -> None:
        broker = self._state.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise Violation("NoDanglingRecord", f"{record} is about {broker}")

    def _check_brokers(self, record: Message, broker_ids: tuple[int, ...]) -> None:
        missing = [id for id in broker_ids if id not in self._state.brokers]
        if missing:
            raise Violation("NoDanglingRecord", f"{record} is about brokers {missing}, which aren't there")

    def _check_members(self, record: PartitionChangeRecord) -> None:
        """Check that replicas which join a partition or its ISR exist. Its old members may be
        unregistered."""
        assert self._old is not None
        joining = {
            *(record.isr or ()),
            *(record.replicas or ()),
            *({record.leader} - {NO_LEADER_CHANGE, NO_LEADER}),
        }
        self._check_brokers(record, tuple(sorted(joining - {*self._old.replicas, *self._old.isr})))
        self._check_joining(record, sorted({*(record.isr or ())} - {*self._old.isr}))
        changed_leader = {record.leader} - {NO_LEADER_CHANGE, NO_LEADER, self._old.leader}
        self._check_joining(record, changed_leader)

    def _check_joining(self, record: Message, broker_ids: Iterable[int]) -> None:
        """Check that only active brokers join an ISR, or begin to lead."""
        for id in broker_ids:
            self._check_brokers(record, (id,))
            if not _is_active(self._state.brokers.get(id)):
                raise Violation("ValidControllerState", f"{record} lets {self._state.brokers[id]} in")

    def _check_epoch(self, record: RegisterBrokerRecord, base_offset: int) -> None:
        """Check that a broker's epoch is the offset of the batch that registered it."""
        old = self._state.brokers.get(record.broker_id)
        if old is not None and old.incarnation_id == record.incarnation_id:
            expected = old.epoch
        else:
            expected = base_offset
            if not record.fenced:
                raise Violation("ValidBrokerState", f"{record} begins unfenced")
            if base_offset <= self._epochs.get(record.broker_id, -1):
                raise Violation("ValidBrokerState", f"{record} is not younger than the one before")
        if record.broker_epoch != expected:
            raise Violation("ValidBrokerState", f"{record} has another epoch than {expected}")
        self._epochs[record.broker_id] = record.broker_epoch

    def _check_election(self, record: PartitionChangeRecord, old: Partition, new: Partition) -> None:
        """Check that a replica which may lack committed records becomes leader only in recovery
        (LeaderCandidateCompleteness)."""
        if new.partition_epoch != old.partition_epoch + 1:
            raise Violation("PartitionEpoch", f"{record} makes {new} of {old}")
        if new.leader in (NO_LEADER, old.leader) or new.leader in {*old.isr, *old.elr}:
            return
        if new.isr != (new.leader,) or new.leader_recovery_state != RECOVERING:
            raise Violation("LeaderCandidateCompleteness", f"{record} makes {new} of {old}")

    # Batches.

    def at_the_end(self) -> None:
        """Check the partitions that a batch changed. Between batches the state is consistent."""
        if self._touches_all:
            refs = [
                PartitionRef(topic.id, index)
                for topic in self._state.topics
                for index, _ in self._state.partitions.indexed(topic.id)
            ]
        else:
            refs = list(self._touched)
        self._touched.clear()
        self._touches_all = False
        for ref in refs:
            partition = self._state.partitions.get(ref.topic_id, ref.index)
            if partition is not None:
                self._check_partition(ref, partition)

    def _check_partition(self, ref: PartitionRef, partition: Partition) -> None:
        isr, elr, replicas = map(frozenset, (partition.isr, partition.elr, partition.replicas))
        brokers = self._state.brokers
        where = f"partition {ref.index} of {ref.topic_id}: {partition}"
        if not (isr <= replicas and elr <= replicas) or isr & elr:
            raise Violation("ValidControllerIsrAndElr", where)
        if any(map(_has_doubles, (partition.isr, partition.elr, partition.replicas))):
            raise Violation("ValidControllerIsrAndElr", where)
        if elr and len(isr) >= self._min_isr(ref, partition):
            raise Violation("ValidControllerIsrAndElr", f"the ISR needs no ELR, {where}")
        for id in partition.isr:
            if not _may_stay(brokers.get(id)) and not is_last_stand(self._state, partition):
                raise Violation("ValidControllerState", f"{brokers.get(id)} is in the ISR of {where}")
        if partition.leader != NO_LEADER and partition.leader not in isr:
            raise Violation("LeaderInIsr", where)

    def _min_isr(self, ref: PartitionRef, partition: Partition) -> int:
        topic = self._state.topics.by_id(ref.topic_id)
        assert topic is not None
        configs = self._state.configs
        own = configs.value(ResourceType.TOPIC, topic.name, MIN_ISR)
        cluster = configs.value(ResourceType.BROKER, "", MIN_ISR)
        return min(int(own or cluster or 1), len(partition.replicas))


def is_last_stand(state: MetadataState, partition: Partition) -> bool:
    """Whether a partition keeps the last member of its ISR, up or not, because there is no ELR."""
    has_elr = state.features.levels.get(ELR_FEATURE, 0) > 0
    return len(partition.isr) == 1 and partition.leader == NO_LEADER and not has_elr


def _may_stay(broker: BrokerRegistration | None) -> bool:
    """Whether a member may stay in an ISR. One in controlled shutdown leaves its ISRs in several batches."""
    return broker is not None and not broker.fenced


def _is_active(broker: BrokerRegistration | None) -> bool:
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def _has_doubles(ids: tuple[int, ...]) -> bool:
    return len(set(ids)) < len(ids)
