"""Follow the committed metadata log, from whichever node applies a batch first. Keep its state and its
history."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.log.batch import record_values, split_batches
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.sim.checkers.checker import Checked, Checker
from kraft_wire.sim.checkers.metadata_rules import MetadataRules
from kraft_wire.sim.checkers.violations import Violation


class CommittedMetadata(Checker):
    """The committed metadata. ``state`` is the state after ``records``. The other attributes are history: a
    response to a client may be true of an earlier state."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self.state = MetadataState()
        self.records: list[tuple[int, Message]] = []
        self.end_offset = 0
        self.fencings = 0
        self.removed_topics: set[Uuid] = set()
        self.partitions: dict[tuple[PartitionRef, int], Partition] = {}
        self.member_epochs: dict[tuple[PartitionRef, int], Mapping[int, int]] = {}
        self.sizes: dict[str, set[int]] = {}
        self.settings: set[tuple[int, str, str, str | None]] = set()
        self.standings: set[tuple[int, int, bool]] = set()
        self._rules = MetadataRules(self.state)

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        if batch.base_offset < self.end_offset:
            return
        if batch.base_offset > self.end_offset:
            self.fail(node, f"applies {batch.base_offset}, nobody has applied {self.end_offset}")
        self.end_offset = batch.last_offset + 1
        whole = split_batches(batch.data)[0][0]
        if whole.header.is_control:
            return
        try:
            self._replay(batch.base_offset, [decode_metadata_record(v)[0] for v in record_values(whole)])
        except ReplayError as error:
            raise Violation("CommittedRecordsApply", str(error)) from None
        except Violation as violation:
            raise Violation(violation.invariant, f"offset {batch.base_offset}: {violation.seen}") from None

    def _replay(self, base_offset: int, records: list[Message]) -> None:
        rules = self._rules
        for offset, record in enumerate(records, base_offset):
            rules.before(record, base_offset)
            self.state.replay(record, offset)
            rules.after(record)
            self.records.append((offset, record))
            self._note(record)
        rules.at_the_end()
        for broker in self.state.brokers.values():
            self.standings.add((broker.id, broker.epoch, broker.fenced))

    def _note(self, record: Message) -> None:
        match record:
            case RemoveTopicRecord():
                self.removed_topics.add(record.topic_id)
            case BrokerRegistrationChangeRecord(fenced=1):
                self.fencings += 1
            case ConfigRecord():
                self.settings.add((record.resource_type, record.resource_name, record.name, record.value))
            case PartitionRecord() | PartitionChangeRecord():
                ref = PartitionRef(record.topic_id, record.partition_id)
                partition = self.state.partitions.get(ref.topic_id, ref.index)
                assert partition is not None
                self.partitions[ref, partition.partition_epoch] = partition
                brokers = self.state.brokers
                self.member_epochs[ref, partition.partition_epoch] = {
                    id: brokers[id].epoch for id in partition.isr if id in brokers
                }
                topic = self.state.topics.by_id(ref.topic_id)
                assert topic is not None
                self.sizes.setdefault(topic.name, set()).add(topic.partition_count)
            case _:
                pass
