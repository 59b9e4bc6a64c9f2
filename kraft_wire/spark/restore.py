"""The past of a cluster as a node's folder: rows of the table ``records`` written back as a metadata log.

Whoever voted in those days must not be waited for, nor asked: the node that gets the folder is to be alone.
With static voters (kraft.version 0) its configuration says so. Where voters are in the log (kraft.version 1),
one more VotersRecord follows the last row, as if its leader had removed everybody else: it names this node,
with a new directory id and without endpoints, which a leader adds itself. It is one record, for Kafka's
metadata shell waits forever at the end of a file whose last control records are more.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

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
from kraft_wire.raft.voters import ReplicaKey, Voter, voter_set
from kraft_wire.spark.record_rows import BadRow, RecordRow
from kraft_wire.spark.restored_log import MissingRows, RestoredLog
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import AlreadyFormatted
from kraft_wire.storage.quorum_state import write_election_state


class Identity(msgspec.Struct, frozen=True):
    """Whose folder it becomes. ``directory_id`` is a new one."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


class Restored(msgspec.Struct, frozen=True):
    """What is in the folder: the records of rows from ``start_offset`` up to ``end_offset``, and of the
    snapshot that the log begins with, if it does. ``epoch`` and ``timestamp_ms`` are the last row's.

    ``superseded_count`` rows were left out: their records had been cut off from the log. With kraft.version
    0 the node needs controller.quorum.voters.
    """

    start_offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    kraft_version: int
    snapshot_id: SnapshotId | None
    superseded_count: int


def restore_folder(rows: Iterable[RecordRow], into: Path, identity: Identity) -> Restored:
    """Write a cluster's rows, in the order that RestoredLog says, into a folder that is empty or not there.

    All is on stable storage then; nothing is left of what fails. Memory doesn't grow with the rows. Raises
    AlreadyFormatted, BadRow, MissingRows, BatchTooLarge, DiskFailed, OSError.
    """
    if into.exists() and any(into.iterdir()):
        raise AlreadyFormatted(into, "is not empty; give a folder that is, or a new one")
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
