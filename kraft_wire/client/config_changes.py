"""Build the requests that change dynamic configurations. No I/O."""

from __future__ import annotations

from typing import Final

from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET: Final = 0
DELETE: Final = 1


def set_for_all_brokers(key: str, value: str | None) -> IncrementalAlterConfigsRequest:
    """Build an IncrementalAlterConfigs for the default of all brokers; a value of None deletes the key."""
    change = AlterableConfig(key, DELETE if value is None else SET, value)
    resource = AlterConfigsResource(ResourceType.BROKER, "", [change])
    return IncrementalAlterConfigsRequest(resources=[resource])
