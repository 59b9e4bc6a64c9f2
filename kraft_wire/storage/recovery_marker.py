"""Read and write the file ``recovery-plan``, in which a folder remembers the plan that was applied to it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kraft_wire.log.files import PARTITION_FOLDER, RECOVERY_PLAN
from kraft_wire.raft.recovery.applying import Marker
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile


def read_marker(metadata_dir: Path) -> Marker | None:
    """Return the folder's marker; None if no plan was applied. Raises CorruptFile, OSError."""
    path = metadata_dir / PARTITION_FOLDER / RECOVERY_PLAN
    try:
        return msgspec.json.decode(path.read_bytes(), type=Marker)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CorruptFile(path, f"is damaged: {error}. If it can't be restored, move it away") from None


def write_marker(partition: Path, marker: Marker, disk: Disk) -> None:
    """Write the marker into the partition's folder, and flush it. Raises DiskFailed."""
    disk.replace(partition / RECOVERY_PLAN, msgspec.json.encode(marker))
