"""Lower the epoch of a stopped node, after failed elections or a stranger's requests have raised it far.

Raft never lowers an epoch, because a node must not forget its votes. It is safe if all nodes do it together,
and the new epoch is above that of every record: no node has a record of the epochs that are used again, so
nobody can have committed anything in them, and no vote of theirs counts for anything.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from pathlib import Path

import msgspec

from kraft_wire.log.files import QUORUM_STATE, ElectionState
from kraft_wire.log.recovery import Floor
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import StorageError
from kraft_wire.storage.folder import Folder, open_folder, read_meta_properties
from kraft_wire.storage.inspection import inspect
from kraft_wire.storage.inspection.model import NOT_WHOLE, Inspection
from kraft_wire.storage.log.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.log.durable_floor import floor_text, read_floor
from kraft_wire.storage.quorum_state import read_election_state, read_static_voter_ids, write_election_state
from kraft_wire.storage.recovery.repair import LOWERED_MARK
from kraft_wire.storage.recovery.vote_guards import NO_VOTE_UP_TO, VoteGuard


class CannotLower(StorageError):
    """A folder whose epoch can't be lowered as asked. Nothing was changed."""


class Lowered(msgspec.Struct, frozen=True):
    """What was done: the epoch before, and the copies of the files that were changed."""

    old_epoch: int
    kept: list[Path]


def lower_epoch(metadata_dir: Path, epoch: int) -> Lowered | None:
    """Lower the epoch of a folder, and keep copies of what is changed; returns None if it isn't higher.

    A node's epoch is in quorum-state, durable-floor and no-vote-up-to. quorum-state goes last: if this is
    interrupted, it can be done again.

    Raises CannotLower, NotFormatted, CorruptFile, FolderLocked, DiskFailed, OSError.
    """
    properties = read_meta_properties(metadata_dir)
    with ExitStack() as stack:
        folder = open_folder(metadata_dir, node_id=properties.node_id)
        stack.callback(folder.close)
        found = inspect(metadata_dir)
        _check(folder, found, epoch)
        if found.known_epoch <= epoch:
            return None
        kept = [_keep(path, folder.disk) for path in _files(folder.partition_path)]
        _lower(folder, epoch)
        return Lowered(found.known_epoch, kept)


def _check(folder: Folder, found: Inspection, epoch: int) -> None:
    damaged = [finding.file for finding in found.findings if finding.status in NOT_WHOLE - {"incomplete"}]
    if damaged or found.problems:
        what = ", ".join([*damaged, *found.problems])
        raise CannotLower(folder.path, f"repair the folder first, see `kraft-wire fsck`: {what}")
    if epoch <= found.last_record_epoch:
        raise CannotLower(
            folder.path,
            f"epoch {epoch} isn't above that of the last record, {found.last_record_epoch}: give a higher "
            "one, the same for all nodes",
        )


def _files(partition: Path) -> list[Path]:
    paths = (partition / name for name in (QUORUM_STATE, DURABLE_FLOOR, NO_VOTE_UP_TO))
    return [path for path in paths if path.exists()]


def _keep(path: Path, disk: Disk) -> Path:
    names = (path.with_name(f"{path.name}{LOWERED_MARK}{number}") for number in count(1))
    copy = next(name for name in names if not name.exists())
    disk.replace(copy, path.read_bytes())
    return copy


def _lower(folder: Folder, epoch: int) -> None:
    partition, disk = folder.partition_path, folder.disk
    guard = VoteGuard(partition / NO_VOTE_UP_TO, disk)
    if guard.number is not None and guard.number >= epoch:
        guard.remove()
    state, floor = read_election_state(partition), read_floor(partition)
    if floor is not None and (state is None or floor.quorum_epoch == state.leader_epoch):
        lowered = Floor(floor.offset, epoch, floor.committed_offset)
        disk.replace(partition / DURABLE_FLOOR, floor_text(lowered).encode())
    if state is not None:
        voter_ids = read_static_voter_ids(partition)
        write_election_state(
            partition,
            ElectionState(leader_epoch=epoch),
            disk,
            kraft_version=0 if voter_ids else 1,
            voter_ids=voter_ids,
        )
