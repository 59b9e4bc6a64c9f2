"""Make min.insync.replicas a setting of the cluster, as eligible leader replicas need it (KIP-966)."""

from __future__ import annotations

from kraft_wire.configs.schema import ALL_BROKERS, MIN_INSYNC_REPLICAS, static_min_insync_replicas
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.messages.config_record import ConfigRecord


def cluster_min_isr(state: ControllerState) -> VersionedRecord:
    """Return the record that sets it for all brokers, to this node's own value."""
    record = ConfigRecord(
        resource_type=ResourceType.BROKER.value,
        resource_name=ALL_BROKERS,
        name=MIN_INSYNC_REPLICAS,
        value=str(static_min_insync_replicas(state.settings.static_configs)),
    )
    return record, 0
