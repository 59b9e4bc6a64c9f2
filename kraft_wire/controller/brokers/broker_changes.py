"""Make the records of a change of a broker's state: the broker's own record, and those of its partitions.

The order of the records is Kafka's (ReplicationControlManager.handleBroker*): partitions are moved off a
broker before it is fenced, and onto it after it is unfenced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.controller.decision.context import ControllerState, VersionedRecord
from kraft_wire.controller.partitions import broker_partitions
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration

FENCE: Final = 1
UNFENCE: Final = -1
IN_CONTROLLED_SHUTDOWN: Final = 1


def fence(state: ControllerState, broker: BrokerRegistration) -> list[VersionedRecord]:
    """Remove the broker from every ISR, elect other leaders and fence it.

    Returns no records if the broker is fenced already.
    """
    if broker.fenced:
        return []
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*broker_partitions.records_for_fenced(state, broker.id), (change, 0)]


def unfence(state: ControllerState, broker: BrokerRegistration) -> list[VersionedRecord]:
    """Unfence the broker, then elect it for partitions that have no leader."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    return [(change, 0), *broker_partitions.records_for_unfenced(state, broker.id)]


def shut_down_gradually(state: ControllerState, broker: BrokerRegistration) -> list[VersionedRecord]:
    """Begin or continue a controlled shutdown: move the broker's leaderships to other brokers."""
    records = list(broker_partitions.records_for_controlled_shutdown(state, broker.id))
    if broker.in_controlled_shutdown:
        return records
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [(change, 1), *records]


def take_directories_offline(
    state: ControllerState, broker: BrokerRegistration, offline: Sequence[Uuid]
) -> list[VersionedRecord]:
    """Remove failed log directories from the registration, and the replicas in them from their ISRs."""
    lost = [directory for directory in offline if directory in broker.directories]
    if not lost:
        return []
    online = tuple(directory for directory in broker.directories if directory not in lost)
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online)
    return [*broker_partitions.records_for_offline_directories(state, broker.id, lost), (change, 2)]


def cordon_directories(broker: BrokerRegistration, cordoned: Sequence[Uuid] | None) -> list[VersionedRecord]:
    """Record the log directories that take no new replicas. None means that the broker did not report any."""
    known = broker.cordoned_directories
    if cordoned is None or (known is not None and set(cordoned) == set(known)):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
    )
    return [(change, 3)]


def unregister(state: ControllerState, broker: BrokerRegistration) -> list[VersionedRecord]:
    """Remove the broker from every ISR and ELR, and its registration. Its replicas stay assigned to it."""
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return [*broker_partitions.records_for_unregistered(state, broker.id), (record, 0)]
