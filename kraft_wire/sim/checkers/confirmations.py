"""Compare the responses of controllers with the committed metadata: a response contains only committed state,
so that nothing it confirms can be lost (ConsistentRead, AcknowledgedStays)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.configs.types import ConfigSource
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.alter_partition_request import AlterPartitionRequest
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kraft_wire.protocol.messages.create_partitions_request import CreatePartitionsRequest
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kraft_wire.protocol.messages.describe_configs_request import DescribeConfigsRequest
from kraft_wire.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kraft_wire.sim.checkers.committed import CommittedMetadata
from kraft_wire.sim.checkers.replication import AcknowledgedStays
from kraft_wire.sim.checkers.violations import Violation

NO_ERROR: Final = 0
DELETE: Final = 1


class Confirmations:
    """A checker of responses. ``check`` is called with each response when it leaves its node."""

    def __init__(self, committed: CommittedMetadata, acknowledgements: AcknowledgedStays) -> None:
        self._committed = committed
        self._acknowledgements = acknowledgements
        self._producer_ids: set[int] = set()

    def check(self, node_id: int, request: Message, response: Message) -> None:
        """Check one response. Raises Violation."""
        look = _LOOKS.get(type(request))
        top: int = getattr(response, "error_code", NO_ERROR)
        if look is None or top != NO_ERROR:
            return
        unknown = look(self, request, response)
        if unknown is not None:
            raise Violation("ConsistentRead", f"node {node_id} answers {unknown}, which isn't committed")

    def _confirmed(self) -> None:
        self._acknowledgements.count += 1

    # Each returns the part of the response that was never committed, or None.

    def _registration(self, request: Any, response: Any) -> object:
        self._confirmed()
        epochs = {(id, epoch) for id, epoch, _ in self._committed.standings}
        return None if (request.broker_id, response.broker_epoch) in epochs else response

    def _heartbeat(self, request: Any, response: Any) -> object:
        standing = request.broker_id, request.broker_epoch, response.is_fenced
        if standing in self._committed.standings:
            return None
        return f"that broker {request.broker_id} of epoch {request.broker_epoch} is {response}"

    def _created_topics(self, request: Any, response: Any) -> object:
        if request.validate_only:
            return None
        for topic in response.topics:
            if topic.error_code == NO_ERROR:
                self._confirmed()
                if not self._was_topic(topic.topic_id):
                    return topic
        return None

    def _was_topic(self, topic_id: Any) -> bool:
        committed = self._committed
        return committed.state.topics.by_id(topic_id) is not None or topic_id in committed.removed_topics

    def _deleted_topics(self, request: Any, response: Any) -> object:
        for topic in response.responses:
            if topic.error_code == NO_ERROR:
                self._confirmed()
                if topic.topic_id not in self._committed.removed_topics:
                    return topic
        return None

    def _created_partitions(self, request: Any, response: Any) -> object:
        wanted = {topic.name: topic.count for topic in request.topics}
        for topic in response.results:
            if topic.error_code == NO_ERROR:
                self._confirmed()
                if wanted[topic.name] not in self._committed.sizes.get(topic.name, ()):
                    return topic
        return None

    def _altered_partitions(self, request: Any, response: Any) -> object:
        asked = {(t.topic_id, p.partition_index): p for t in request.topics for p in t.partitions}
        for topic in response.topics:
            for told in topic.partitions:
                if told.error_code == NO_ERROR:
                    self._confirmed()
                    ref = PartitionRef(topic.topic_id, told.partition_index)
                    if not self._was_so(ref, told) or not self._was_right(
                        ref, asked[ref.topic_id, ref.index], told
                    ):
                        return f"{asked[ref.topic_id, ref.index]} with {told}"
        return None

    def _was_so(self, ref: PartitionRef, told: Any) -> bool:
        known = self._committed.partitions.get((ref, told.partition_epoch))
        said = told.leader_id, told.leader_epoch, told.isr, told.leader_recovery_state
        return known is not None and said == (
            known.leader,
            known.leader_epoch,
            known.isr,
            known.leader_recovery_state,
        )

    def _was_right(self, ref: PartitionRef, asked: Any, told: Any) -> bool:
        """Whether an accepted proposal was based on the partition's epoch and on current epochs of its
        members (KAFKA-14617)."""
        if told.partition_epoch not in (asked.partition_epoch, asked.partition_epoch + 1):
            return False
        members = self._committed.member_epochs[ref, told.partition_epoch]
        is_changed = told.partition_epoch > asked.partition_epoch
        return not is_changed or all(
            members.get(member.broker_id, member.broker_epoch) == member.broker_epoch
            for member in asked.new_isr_with_epochs
            if member.broker_epoch >= 0
        )

    def _altered_configs(self, request: Any, response: Any) -> object:
        asked = {(r.resource_type, r.resource_name): r for r in request.resources}
        for told in response.responses:
            if told.error_code != NO_ERROR:
                continue
            self._confirmed()
            for config in asked[told.resource_type, told.resource_name].configs:
                value = None if config.config_operation == DELETE else config.value
                setting = told.resource_type, told.resource_name, config.name, value
                if value is not None and setting not in self._committed.settings:
                    return setting
        return None

    def _described_configs(self, request: Any, response: Any) -> object:
        for result in response.results:
            for config in result.configs:
                if config.config_source == ConfigSource.TOPIC and result.error_code == NO_ERROR:
                    setting = ResourceType.TOPIC, result.resource_name, config.name, config.value
                    if setting not in self._committed.settings:
                        return setting
        return None

    def _producer_block(self, request: Any, response: Any) -> object:
        self._confirmed()
        if response.producer_id_start in self._producer_ids:
            return response
        self._producer_ids.add(response.producer_id_start)
        return None


_LOOKS: Final[dict[type[Message], Callable[[Confirmations, Any, Any], object]]] = {
    BrokerRegistrationRequest: Confirmations._registration,
    BrokerHeartbeatRequest: Confirmations._heartbeat,
    CreateTopicsRequest: Confirmations._created_topics,
    DeleteTopicsRequest: Confirmations._deleted_topics,
    CreatePartitionsRequest: Confirmations._created_partitions,
    AlterPartitionRequest: Confirmations._altered_partitions,
    IncrementalAlterConfigsRequest: Confirmations._altered_configs,
    DescribeConfigsRequest: Confirmations._described_configs,
    AllocateProducerIdsRequest: Confirmations._producer_block,
}
