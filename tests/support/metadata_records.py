"""Generate metadata records: fixed ones, and random ones that are valid for a given state."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    RegisterControllerRecord,
)
from kraft_wire.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.messages.zk_migration_state_record import ZkMigrationStateRecord
from kraft_wire.protocol.uuid import Uuid

BROKERS = range(6)


def uuid(number: int) -> Uuid:
    """Return an id made from a number; it isn't one that Kafka reserves."""
    return Uuid((number + 1_000_000).to_bytes(16, "big"))


def topic_record(number: int, name: str = "") -> TopicRecord:
    return TopicRecord(name or f"topic-{number}", uuid(number))


def partition_record(topic: int, index: int, replicas: tuple[int, ...] = (0, 1, 2)) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=uuid(topic),
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple([uuid(100 + broker) for broker in replicas]),
    )


def broker_record(broker_id: int, epoch: int = 0) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(1000 + epoch),
        broker_epoch=epoch,
        end_points=[BrokerEndpoint("PLAINTEXT", "localhost", 9092 + broker_id, 0)],
        features=[BrokerFeature("metadata.version", 7, 33)],
        rack=None,
        fenced=True,
        log_dirs=(uuid(100 + broker_id),),
    )


class RecordScript:
    """A source of random records; each is valid for the state that it is drawn for."""

    def __init__(self, random: Random, *, transactions: bool = True) -> None:
        self.random = random
        self.transactions = transactions
        self._drawn = 0

    def next_for(self, state: MetadataState) -> Message:
        """Draw a record that can be applied to the state."""
        if state.features.metadata_version == 0:
            return FeatureLevelRecord("metadata.version", 33)
        kinds: list[Callable[[MetadataState], Message | None]] = [
            *[self._partition, self._change] * 6,
            *[self._topic, self._change_directories] * 3,
            self._remove_topic,
            self._clear_elr,
            self._register_broker,
            self._change_broker,
            self._unregister_broker,
            self._controller,
            self._config,
            self._quota,
            self._producer_ids,
            self._acl,
            self._scram,
            self._token,
            self._feature,
            self._nothing,
        ]
        if self.transactions:
            kinds += [self._transaction] * 2
        while True:
            record = self.random.choice(kinds)(state)
            if record is not None:
                return record

    def _fresh(self) -> int:
        self._drawn += 1
        return self._drawn

    def _brokers(self, least: int = 1) -> tuple[int, ...]:
        return tuple(self.random.sample(BROKERS, self.random.randint(least, 5)))

    def _a_topic(self, state: MetadataState) -> Uuid | None:
        topics = [topic.id for topic in state.topics]
        return self.random.choice(topics) if topics else None

    def _topic(self, state: MetadataState) -> Message | None:
        name = self.random.choice(["a.b", "a_b", "a-b", "c", "d", "e.f_g", "h"])
        return TopicRecord(name, uuid(self._fresh())) if state.topics.by_name(name) is None else None

    def _remove_topic(self, state: MetadataState) -> Message | None:
        topic_id = self._a_topic(state)
        return None if topic_id is None else RemoveTopicRecord(topic_id)

    def _partition(self, state: MetadataState) -> Message | None:
        topic_id = self._a_topic(state)
        if topic_id is None:
            return None
        replicas = self._brokers()
        directories = tuple([uuid(self.random.choice([-1_000_000, -999_999, 100 + one])) for one in replicas])
        return PartitionRecord(
            partition_id=self.random.randint(0, 12),
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas[: self.random.randint(0, len(replicas))],
            leader=self.random.choice((*replicas, -1)),
            leader_recovery_state=self.random.choice((0, 0, 1)),
            leader_epoch=self.random.randint(0, 9),
            partition_epoch=self.random.randint(0, 9),
            directories=self.random.choice((directories, ())),
            eligible_leader_replicas=self.random.choice((None, (), replicas[-1:])),
            last_known_elr=self.random.choice((None, None, (), replicas[:1])),
        )

    def _change(self, state: MetadataState) -> Message | None:
        topic_id = self._a_topic(state)
        if topic_id is None:
            return None
        partitions = state.partitions.indexed(topic_id)
        if not partitions:
            return None
        index, old = self.random.choice(partitions)
        some = self._brokers(0) if self.random.random() < 0.5 else old.replicas
        record = PartitionChangeRecord(
            partition_id=index,
            topic_id=topic_id,
            isr=self.random.choice((None, some)),
            leader=self.random.choice((-2, -2, -1, *some)),
            removing_replicas=self.random.choice((None, None, (), some[:1])),
            adding_replicas=self.random.choice((None, None, (), some[1:])),
            leader_recovery_state=self.random.choice((-1, -1, 0, 1)),
            eligible_leader_replicas=self.random.choice((None, None, (), some)),
            last_known_elr=self.random.choice((None, None, (), some[:1])),
        )
        if self.random.random() < 0.3:
            record.replicas = self._brokers()
            record.directories = tuple([uuid(100 + broker) for broker in record.replicas])
        return record

    def _change_directories(self, state: MetadataState) -> Message | None:
        record = self._change(state)
        if isinstance(record, PartitionChangeRecord) and record.replicas is None:
            old = state.partitions.get(record.topic_id, record.partition_id)
            assert old is not None
            record.directories = self.random.choice((None, (), tuple(map(uuid, old.replicas))))
        return record

    def _clear_elr(self, state: MetadataState) -> Message:
        return ClearElrRecord(self.random.choice(["", *[topic.name for topic in state.topics]]))

    def _register_broker(self, state: MetadataState) -> Message:
        record = broker_record(self.random.choice(BROKERS), self._fresh())
        record.cordoned_log_dirs = self.random.choice((None, (), record.log_dirs))
        record.rack = self.random.choice((None, "r1"))
        record.fenced = self.random.random() < 0.5
        return record

    def _change_broker(self, state: MetadataState) -> Message | None:
        if not state.brokers:
            return None
        broker = state.brokers[self.random.choice(sorted(state.brokers))]
        return self.random.choice(
            [
                FenceBrokerRecord(broker.id, broker.epoch),
                UnfenceBrokerRecord(broker.id, broker.epoch),
                BrokerRegistrationChangeRecord(
                    broker.id,
                    broker.epoch,
                    self.random.choice((-1, 0, 1)),
                    self.random.choice((0, 1)),
                    self.random.choice(((), (uuid(7), uuid(6)))),
                    self.random.choice((None, (), (uuid(7),))),
                ),
            ]
        )

    def _unregister_broker(self, state: MetadataState) -> Message | None:
        if not state.brokers:
            return None
        broker = state.brokers[self.random.choice(sorted(state.brokers))]
        return UnregisterBrokerRecord(broker.id, broker.epoch)

    def _controller(self, state: MetadataState) -> Message:
        if state.controllers and self.random.random() < 0.3:
            return UnregisterControllerRecord(self.random.choice(sorted(state.controllers)))
        listeners = [ControllerEndpoint("CONTROLLER", "localhost", 9093, 0)]
        return RegisterControllerRecord(
            self.random.randint(1000, 1002), uuid(self._fresh()), False, listeners, []
        )

    def _config(self, state: MetadataState) -> Message:
        kind, name = self.random.choice([(2, "a.b"), (2, "c"), (4, ""), (4, "1"), (32, "g")])
        value = self.random.choice([None, "1", "2"])
        return ConfigRecord(kind, name, self.random.choice(["x", "y"]), value)

    def _quota(self, state: MetadataState) -> Message:
        parts = [EntityData("user", self.random.choice([None, "u"])), EntityData("client-id", "c")]
        parts = self.random.choice([parts, parts[:1], parts[::-1]])
        return ClientQuotaRecord(parts, self.random.choice(["p", "q"]), 2.5, self.random.random() < 0.4)

    def _producer_ids(self, state: MetadataState) -> Message:
        return ProducerIdsRecord(1, 1, state.producer_ids.next_producer_id + 1000)

    def _acl(self, state: MetadataState) -> Message:
        if state.acls.by_id and self.random.random() < 0.5:
            return RemoveAccessControlEntryRecord(self.random.choice(sorted(state.acls.by_id)))
        return AccessControlEntryRecord(uuid(self._fresh()), 2, "t", 3, "User:u", "*", 3, 3)

    def _scram(self, state: MetadataState) -> Message:
        if state.scram.by_user and self.random.random() < 0.5:
            return RemoveUserScramCredentialRecord(*self.random.choice(sorted(state.scram.by_user)))
        name, mechanism = self.random.choice(["u", "v"]), self.random.choice([1, 2])
        return UserScramCredentialRecord(name, mechanism, b"salt", b"key", b"key2", 4096 + self._fresh())

    def _token(self, state: MetadataState) -> Message:
        if state.tokens.by_id and self.random.random() < 0.5:
            return RemoveDelegationTokenRecord(self.random.choice([*sorted(state.tokens.by_id), "none"]))
        name = self.random.choice(["t1", "t2"])
        return DelegationTokenRecord("User:o", "User:r", ("User:a",), 1, 2, self._fresh(), name)

    def _feature(self, state: MetadataState) -> Message:
        name, level = self.random.choice(
            [
                ("metadata.version", 32),
                ("metadata.version", 33),
                ("group.version", 0),
                ("group.version", 1),
                ("eligible.leader.replicas.version", 1),
                ("kraft.version", 1),
            ]
        )
        return FeatureLevelRecord(name, level)

    def _nothing(self, state: MetadataState) -> Message:
        return self.random.choice([NoOpRecord(), ZkMigrationStateRecord(3)])

    def _transaction(self, state: MetadataState) -> Message:
        if not state.in_transaction:
            return BeginTransactionRecord(None)
        return self.random.choice([EndTransactionRecord(), AbortTransactionRecord("why not")])
