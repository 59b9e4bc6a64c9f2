"""Write records to a quorum without any broker: set dynamic configs at the active controller."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from compat.harness.kafka.nodes import JvmController, OurController
from compat.harness.kafka.quorum import ControllerQuorum, connect
from compat.harness.waiting import wait_until
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

BROKER_RESOURCE = 4
NAME = "log.retention.ms"
FIRST_VALUE = 1_000_000


def write(controller: JvmController | OurController, values: Iterable[int]) -> None:
    """Write one ConfigRecord for each value; the controller must be the active one."""
    for value in values:
        code = _set(controller, value)
        assert code == ErrorCode.NONE, ErrorCode.of(code).name


def write_to_quorum(quorum: ControllerQuorum, values: Iterable[int]) -> None:
    """Write one ConfigRecord for each value, through whichever controller is active at the time."""
    for value in values:
        wait_until(partial(_is_written, quorum, value), f"a controller to write value {value}")


def _is_written(quorum: ControllerQuorum, value: int) -> bool:
    for controller in quorum.running:
        with suppress(OSError):
            if _set(controller, value) == ErrorCode.NONE:
                return True
    return False


def _set(controller: JvmController | OurController, value: int) -> int:
    config = AlterableConfig(name=NAME, config_operation=0, value=str(FIRST_VALUE + value))
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[config])
    with connect(controller) as client:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (result,) = client.call(request, 1, IncrementalAlterConfigsResponse).responses
    return result.error_code
