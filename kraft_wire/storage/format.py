"""Format folders, as ``kraft-wire storage format`` does (Kafka 4.4's Formatter, KIP-1170).

Every folder gets meta.properties. A controller's metadata folder first gets the 0-0 checkpoint with
everything that the first leader needs: kraft.version, the voters if they are known, and the bootstrap
records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kraft_wire.log.files import (
    META_PROPERTIES,
    OBSERVER,
    PARTITION_FOLDER,
    MetaProperties,
    meta_properties_text,
)
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot, snapshot_file_name
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import AlreadyFormatted, NotFormatted
from kraft_wire.storage.folder import check_identity, read_meta_properties
from kraft_wire.storage.snapshots.snapshot_store import write_snapshot


class Checkpoint(msgspec.Struct, frozen=True):
    """The contents of the 0-0 checkpoint.

    ``control`` follows the header: nothing for a static quorum, KRaftVersionRecord for a dynamic one, and
    VotersRecord if the first voters are known. ``values`` are the encoded bootstrap records.
    """

    control: Sequence[Message]
    values: Sequence[bytes]
    now_ms: int


class FormatPlan(msgspec.Struct, frozen=True):
    """The folders of one node and how to format them.

    ``metadata_dir`` is one of ``directories``. ``directory_id`` is that of the metadata folder, if the voters
    name it; every other folder gets its id from ``new_directory_id``. ``checkpoint`` is None for a node that
    isn't a controller. ``is_observer``: the node only observes (``folder.check_role``).
    """

    cluster_id: str
    node_id: int
    directories: Sequence[Path]
    metadata_dir: Path
    new_directory_id: Callable[[], Uuid]
    directory_id: Uuid | None = None
    checkpoint: Checkpoint | None = None
    is_observer: bool = False
    ignore_formatted: bool = False


def format_folders(plan: FormatPlan) -> list[Path]:
    """Format the folders that aren't formatted; returns them, sorted.

    A folder that is formatted already must belong to this cluster and node; ``ignore_formatted`` leaves it
    alone. Raises AlreadyFormatted, WrongFolder, CorruptFile, OSError, DiskFailed; all but the last two before
    anything is written.
    """
    if plan.metadata_dir not in plan.directories:
        raise ValueError(f"{plan.metadata_dir} is not among the folders to format")
    empty = [path for path in sorted(set(plan.directories)) if not _is_formatted(path, plan)]
    for path in empty:
        _check_no_records(path)
    disk = Disk()
    for path in empty:
        _format(path, plan, disk)
    return empty


def _is_formatted(path: Path, plan: FormatPlan) -> bool:
    try:
        properties = read_meta_properties(path)
    except NotFormatted:
        return False
    check_identity(path, properties, plan.cluster_id, plan.node_id)
    if not plan.ignore_formatted:
        raise AlreadyFormatted(
            path, "is formatted already; --ignore-formatted leaves such folders alone and formats the others"
        )
    return True


def _check_no_records(path: Path) -> None:
    """Raise AlreadyFormatted for a folder that lost its meta.properties: formatted again, the node would
    forget its votes and records."""
    partition = path / PARTITION_FOLDER
    harmless = snapshot_file_name(BOOTSTRAP_SNAPSHOT_ID), OBSERVER
    if not partition.exists():
        return
    for file in sorted(partition.iterdir()):
        if not file.name.startswith(harmless):
            raise AlreadyFormatted(
                file,
                f"there is a metadata log, but no {META_PROPERTIES}; restore that file, or move {path} away",
            )


def _format(path: Path, plan: FormatPlan, disk: Disk) -> None:
    """Write meta.properties last: until then the folder counts as not formatted, also after a crash."""
    disk.make_folder(path)
    is_metadata = path == plan.metadata_dir
    if is_metadata and plan.checkpoint is not None:
        _write_checkpoint(path / PARTITION_FOLDER, plan.checkpoint, disk)
    if is_metadata and plan.is_observer:
        disk.make_folder(path / PARTITION_FOLDER)
        disk.replace(path / PARTITION_FOLDER / OBSERVER, b"")
    directory_id = plan.directory_id if is_metadata else None
    properties = MetaProperties(
        cluster_id=plan.cluster_id,
        node_id=plan.node_id,
        directory_id=plan.new_directory_id() if directory_id is None else directory_id,
    )
    disk.replace(path / META_PROPERTIES, meta_properties_text(properties).encode("latin-1"))


def _write_checkpoint(partition: Path, checkpoint: Checkpoint, disk: Disk) -> None:
    disk.make_folder(partition)
    chunks = encode_snapshot(
        BOOTSTRAP_SNAPSHOT_ID,
        checkpoint.control,
        checkpoint.values,
        last_contained_log_timestamp_ms=checkpoint.now_ms,
        now_ms=checkpoint.now_ms,
    )
    write_snapshot(partition, BOOTSTRAP_SNAPSHOT_ID, chunks, disk)
