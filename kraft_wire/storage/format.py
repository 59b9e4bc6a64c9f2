"""What ``kraft-wire storage format`` does on disk (Kafka 4.4's Formatter, KIP-1170).

Every folder gets meta.properties; a controller's metadata folder gets, before that, the 0-0 checkpoint with
what the first leader needs: kraft.version, the voters where they are known, the bootstrap records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kraft_wire.log.files import META_PROPERTIES, PARTITION_FOLDER, MetaProperties, meta_properties_text
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot, snapshot_file_name
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import AlreadyFormatted, NotFormatted
from kraft_wire.storage.folder import check_identity, read_meta_properties
from kraft_wire.storage.snapshots import write_snapshot


class Checkpoint(msgspec.Struct, frozen=True):
    """What goes into the 0-0 checkpoint.

    ``control`` follows the header: nothing for a static quorum, KRaftVersionRecord for one that is dynamic,
    and VotersRecord where the first voters are known. ``values`` are the encoded bootstrap records.
    """

    control: Sequence[Message]
    values: Sequence[bytes]
    now_ms: int


class FormatPlan(msgspec.Struct, frozen=True):
    """The folders of one node and what becomes of them.

    ``metadata_dir`` is one of ``directories``. ``directory_id`` is the metadata folder's, where the voters
    name it; the others, and it without one, get theirs from ``new_directory_id``. A node that is no
    controller has no ``checkpoint``.
    """

    cluster_id: str
    node_id: int
    directories: Sequence[Path]
    metadata_dir: Path
    new_directory_id: Callable[[], Uuid]
    directory_id: Uuid | None = None
    checkpoint: Checkpoint | None = None
    ignore_formatted: bool = False


def format_folders(plan: FormatPlan) -> list[Path]:
    """Format the folders that aren't; returns them, sorted.

    Folders that are formatted already must be this cluster's and this node's, and are left alone if
    ``ignore_formatted`` says so. Raises AlreadyFormatted, WrongFolder, CorruptFile, OSError, DiskFailed: all
    but the last two before anything is written.
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
    """A folder whose meta.properties is lost must not become a new node that has forgotten its votes and
    records.
    """
    partition = path / PARTITION_FOLDER
    harmless = snapshot_file_name(BOOTSTRAP_SNAPSHOT_ID)
    if not partition.exists():
        return
    for file in sorted(partition.iterdir()):
        if not file.name.startswith(harmless):
            raise AlreadyFormatted(
                file,
                f"there is a metadata log, but no {META_PROPERTIES}; restore that file, or move {path} away",
            )


def _format(path: Path, plan: FormatPlan, disk: Disk) -> None:
    """meta.properties comes last: without it the folder is not formatted, whatever a crash leaves."""
    disk.make_folder(path)
    is_metadata = path == plan.metadata_dir
    if is_metadata and plan.checkpoint is not None:
        _write_checkpoint(path / PARTITION_FOLDER, plan.checkpoint, disk)
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
