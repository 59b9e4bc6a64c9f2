"""Repair a folder for ``kraft-wire fsck --repair``: as a node with peers does when it starts, but for an
operator who accepts the loss."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.errors import CorruptLog, CorruptSnapshot, MissingRecords, StorageError
from kraft_wire.storage.folder import open_folder, read_meta_properties
from kraft_wire.storage.log.metadata_log import DEFAULT_LOG_CONFIG, MetadataLog
from kraft_wire.storage.recovery.startup import Recovery, Startup
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW_UNLESS_ALONE, VoteGuard


class NothingLeft(StorageError):
    """A repair that would leave nothing to a node without peers. Nothing was changed."""

    def __init__(self, problem: StorageError) -> None:
        super().__init__(
            problem.path,
            f"{problem.problem}. Cutting this out would leave nothing, and a controller without peers would "
            "start again without the cluster's topics: restore the folder from a copy. A node that has peers "
            "needs no repair: it fetches everything from them when it starts",
        )


def repair_folder(metadata_dir: Path) -> Recovery:
    """Lock the folder, set damaged files aside, and rebuild derived ones; returns what was done.

    Raises NothingLeft, NotFormatted, CorruptFile, FolderLocked, DiskFailed, OSError.
    """
    properties = read_meta_properties(metadata_dir)
    with ExitStack() as stack:
        folder = open_folder(metadata_dir, node_id=properties.node_id)
        stack.callback(folder.close)
        repair = _OfflineRepair(folder, DEFAULT_LOG_CONFIG)
        stack.callback(repair.close)
        repair.run()
        return repair.recovery


class _OfflineRepair(Startup):
    def check_may_cut(self, damage: CorruptLog) -> None:
        """Allow the cut also without peers, as long as something is left."""
        if damage.offset == 0 and self.covered_offset == 0 and self.may_be_alone(damage.voters):
            raise NothingLeft(damage)

    def check_may_restart(self, problem: CorruptSnapshot | MissingRecords, log: MetadataLog) -> None:
        if not self.is_covered(log) and self.may_be_alone(log.voters):
            raise NothingLeft(problem)

    def record_loss(self, lost_below_offset: int, voters_in_log: VotersRecord | None) -> None:
        """A voter that is alone has nobody to fetch from, and continues with what is left."""
        if self.last_voters(voters_in_log) is None:
            path = self.path / LOST_BELOW_UNLESS_ALONE
            VoteGuard(path, self.folder.disk).raise_to(lost_below_offset)
        elif not self.may_be_alone(voters_in_log):
            super().record_loss(lost_below_offset, voters_in_log)
