"""Commands of administrators that several tests send."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

VERSION = 1
SET = 0


def set_broker_configs(broker: str, values: Mapping[str, str]) -> IncrementalAlterConfigsRequest:
    """Return a request that sets values of a broker; an empty name stands for the defaults of all."""
    configs = [
        AlterableConfig(name=name, config_operation=SET, value=value) for name, value in values.items()
    ]
    resource = AlterConfigsResource(
        resource_type=ResourceType.BROKER.value, resource_name=broker, configs=configs
    )
    return IncrementalAlterConfigsRequest(resources=[resource])
