"""``kraft-wire fsck --repair``: what a node with peers does by itself when it starts, done by an operator who
accepts the loss."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.errors import CorruptLog, CorruptSnapshot, MissingRecords, StorageError
from kraft_wire.storage.folder import open_folder, read_meta_properties
from kraft_wire.storage.log import DEFAULT_LOG_CONFIG, MetadataLog
from kraft_wire.storage.opening import Opening, Recovery
from kraft_wire.storage.remembered import LOST_BELOW_UNLESS_ALONE, Remembered


class NothingLeft(StorageError):
    """A repair that would leave a node without peers nothing at all. Nothing was changed."""

    def __init__(self, problem: StorageError) -> None:
        super().__init__(
            problem.path,
            f"{problem.problem}. Cutting this out would leave nothing, and a controller without peers would "
            "begin anew, without the cluster's topics: restore the folder from a copy. A node that has peers "
            "need not be repaired: it fetches everything from them when it starts",
        )


def mend(metadata_dir: Path) -> Recovery:
    """Lock the folder, set everything damaged aside, and make anew what can be; returns what was found.

    Raises NothingLeft, NotFormatted, CorruptFile, FolderLocked, DiskFailed, OSError.
    """
    properties = read_meta_properties(metadata_dir)
    with ExitStack() as stack:
        folder = open_folder(metadata_dir, node_id=properties.node_id)
        stack.callback(folder.close)
        mending = _Mending(folder, DEFAULT_LOG_CONFIG)
        stack.callback(mending.close)
        mending.run()
        return mending.recovery


class _Mending(Opening):
    def check_may_cut(self, damage: CorruptLog) -> None:
        """Also where there are no peers, as long as something is left."""
        if damage.offset == 0 and self.covered_offset == 0 and self.may_be_alone(damage.voters):
            raise NothingLeft(damage)

    def check_may_begin_anew(self, problem: CorruptSnapshot | MissingRecords, log: MetadataLog) -> None:
        if not self.is_covered(log) and self.may_be_alone(log.voters):
            raise NothingLeft(problem)

    def remember_loss(self, lost_below_offset: int, voters_in_log: VotersRecord | None) -> None:
        """A voter that is alone has nobody to fetch from, and goes on with what is left."""
        if self.last_voters(voters_in_log) is None:
            path = self.path / LOST_BELOW_UNLESS_ALONE
            Remembered(path, self.folder.disk).remember(lost_below_offset)
        elif not self.may_be_alone(voters_in_log):
            super().remember_loss(lost_below_offset, voters_in_log)
