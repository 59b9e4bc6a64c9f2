"""Restore the past of a cluster as a node's folder: write rows of the table ``records`` back as a metadata
log.

The voters of that time may not exist any more, so the node that gets the folder must be alone. With static
voters (kraft.version 0), its configuration makes it so. If the voters are in the log (kraft.version 1), a
VotersRecord is added after the last row, as if the leader had removed all other voters. It names this node,
with a new directory id and without endpoints, which a leader adds itself. It is the only added record:
Kafka's metadata shell waits forever at the end of a file that ends with several control records.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from kraft_wire.lake.restored_log import MissingRows, RestoredLog
from kraft_wire.log.files import (
    META_PROPERTIES,
    PARTITION_FOLDER,
    PARTITION_METADATA,
    ElectionState,
    MetaProperties,
    meta_properties_text,
    partition_metadata_text,
)
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, voter_set
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import AlreadyFormatted
from kraft_wire.storage.quorum_state import write_election_state
from kraft_wire.tabular.record_rows import BadRow, RecordRow


class Identity(msgspec.Struct, frozen=True):
    """The identity of the new folder. ``directory_id`` is a new one."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


class Restored(msgspec.Struct, frozen=True):
    """The contents of the folder: the records from ``start_offset`` up to ``end_offset``, and the snapshot
    that the log begins with, if there is one. ``epoch`` and ``timestamp_ms`` are those of the last row.

    ``superseded_count`` rows were left out, because their records had been truncated. With kraft.version 0
    the node needs controller.quorum.voters.
    """

    start_offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    kraft_version: int
    snapshot_id: SnapshotId | None
    superseded_count: int


def restore_folder(rows: Iterable[RecordRow], into: Path, identity: Identity) -> Restored:
    """Write a cluster's rows, in the order that RestoredLog needs, into an empty or new folder, and flush it.

    A failure leaves nothing. Memory doesn't grow with the rows. Raises AlreadyFormatted, BadRow, MissingRows,
    BatchTooLarge, DiskFailed, OSError.
    """
    if into.exists() and any(into.iterdir()):
        raise AlreadyFormatted(into, "is not empty; give an empty folder, or a new one")
    disk = Disk()
    with _removed_where_it_fails(into):
        partition = into / PARTITION_FOLDER
        disk.make_folder(partition)
        restored = _write_log(_rows_of(identity.cluster_id, rows), partition, identity, disk)
        disk.replace(partition / PARTITION_METADATA, partition_metadata_text().encode())
        properties = MetaProperties(identity.cluster_id, identity.node_id, identity.directory_id)
        disk.replace(into / META_PROPERTIES, meta_properties_text(properties).encode("latin-1"))
    return restored


@contextmanager
def _removed_where_it_fails(into: Path) -> Iterator[None]:
    existed = into.exists()
    try:
        yield
    except BaseException:
        if into.exists():
            shutil.rmtree(into)
        if existed:
            into.mkdir()
        raise


def _rows_of(cluster_id: str, rows: Iterable[RecordRow]) -> Iterator[RecordRow]:
    for row in rows:
        if row.cluster != cluster_id:
            raise BadRow(row, f"is not of cluster {cluster_id}")
        yield row


def _write_log(rows: Iterable[RecordRow], partition: Path, identity: Identity, disk: Disk) -> Restored:
    with closing(RestoredLog(partition, disk)) as log:
        log.add(rows)
        if not log.end_offset:
            raise MissingRows(f"there is no row of cluster {identity.cluster_id}")
        restored = _described(log)
        if log.kraft_version > 0:
            alone = voter_set([Voter(ReplicaKey(identity.node_id, identity.directory_id))])
            log.append_control(alone.to_record())
        write_election_state(
            partition,
            ElectionState(leader_epoch=log.epoch),
            disk,
            kraft_version=log.kraft_version,
            voter_ids=[identity.node_id],
        )
        log.settle()
    return restored


def _described(log: RestoredLog) -> Restored:
    return Restored(
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        epoch=log.epoch,
        timestamp_ms=log.last_timestamp_ms,
        kraft_version=log.kraft_version,
        snapshot_id=log.snapshot_id,
        superseded_count=log.superseded_count,
    )
