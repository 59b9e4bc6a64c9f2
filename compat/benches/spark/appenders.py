"""Append records one at a time, each with a value of its own, to a log folder or to a live controller's
log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.config_writes import BROKER_RESOURCE, NAME
from compat.harness.kafka.nodes import OurController
from compat.harness.processes import Workspace
from compat.harness.wire import WireClient
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import META_PROPERTIES, PARTITION_FOLDER, MetaProperties, meta_properties_text
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.log.metadata_log import LogConfig, MetadataLog

_EPOCH: Final = 1


class Append(Protocol):
    def __call__(self, value: str) -> None:
        """Append a record with this value, and return when it is on disk."""
        ...


class WritableLog(NamedTuple):
    """The data source's options for a log, and the function that appends to it."""

    options: Mapping[str, str]
    append: Append


@contextmanager
def folder(path: Path) -> Iterator[WritableLog]:
    """Open a log folder that is written with the controller's own storage."""
    partition = path / PARTITION_FOLDER
    partition.mkdir(parents=True)
    (path / META_PROPERTIES).write_text(meta_properties_text(MetaProperties(random_cluster_id(), 1)))
    log = MetadataLog.open(partition, Disk(), config=LogConfig(), quorum_epoch=None)

    def append(value: str) -> None:
        record = ConfigRecord(resource_type=BROKER_RESOURCE, name=NAME, value=value)
        offset = log.end_offset
        log.append([encode_batch(offset, _EPOCH, offset, [encode_metadata_record(record, 0)])])
        log.flush()

    try:
        append("0")
        yield WritableLog({"path": str(path)}, append)
    finally:
        log.close()


@contextmanager
def controller(path: Path) -> Iterator[WritableLog]:
    """Start a controller of ours, alone in its quorum. Raises MissingComponent, ProcessFailed."""
    with Workspace(path) as workspace:
        node = OurController(workspace, CONTROLLER_ID)
        node.format(random_cluster_id(), "--standalone")
        node.start()
        node.wait_until_ready()
        with WireClient(node.port) as client:
            yield WritableLog({"bootstrap.controllers": node.address}, lambda value: _set(client, value))


def _set(client: WireClient, value: str) -> None:
    config = AlterableConfig(name=NAME, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = client.call(request, 1, IncrementalAlterConfigsResponse).responses
    assert result.error_code == ErrorCode.NONE, ErrorCode.of(result.error_code).name


WRITABLE_LOGS: Final = {"a log folder": folder, "a live controller": controller}
