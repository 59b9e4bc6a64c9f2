"""Errors of a folder, or of the disk under it. Each text names the file and says what to do."""

from __future__ import annotations

import errno
from pathlib import Path

from kraft_wire.log.errors import LogError
from kraft_wire.log.recovery import ReadableTail
from kraft_wire.protocol.messages.voters_record import VotersRecord


class StorageError(LogError):
    """A folder that can't be used. ``path`` is the file or folder with the problem."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class NotFormatted(StorageError):
    """A folder without meta.properties."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "is missing: the folder is not formatted; run `kraft-wire storage format`")


class AlreadyFormatted(StorageError):
    """A folder that must not be formatted."""


class WrongFolder(StorageError):
    """A folder of another cluster or another node."""


class FolderLocked(StorageError):
    """A folder that another process works on."""

    def __init__(self, path: Path, pid: int | None = None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(path, f"{holder} holds this lock; stop it, or use another folder")


class CorruptFile(StorageError):
    """A small file that is damaged."""


class QuorumStateBehind(CorruptFile):
    """A quorum-state whose epoch is below that of whole, consecutive batches of the log."""

    def __init__(self, path: Path, quorum_epoch: int, log_epoch: int) -> None:
        super().__init__(
            path, f"has epoch {quorum_epoch}, but the log holds whole batches of epoch {log_epoch}"
        )


class CorruptLog(StorageError):
    """Records that were durable once are damaged or missing. Nothing on the disk was changed.

    ``path`` can't be read from byte ``position`` on; ``offset`` is the first record offset that is lost. All
    durable records were below ``lost_below_offset``. ``voters`` is the log's last VotersRecord, before or
    after the damage. With a ``readable_tail`` only history is lost: the log can begin there.
    """

    readable_tail: ReadableTail | None = None

    def __init__(
        self,
        path: Path,
        position: int,
        offset: int,
        reason: str,
        lost_below_offset: int,
        voters: VotersRecord | None,
    ) -> None:
        super().__init__(path, reason)
        self.position = position
        self.offset = offset
        self.reason = reason
        self.lost_below_offset = lost_below_offset
        self.voters = voters

    @property
    def summary(self) -> str:
        """The damage and its place, in a few words."""
        return f"corrupt at byte {self.position}, where offset {self.offset} should be: {self.reason}"

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.summary}; nothing was changed. Restore {self.path.parent} from a copy. "
            f"Without one, `kraft-wire fsck {self.path.parent.parent} --repair` keeps the damaged bytes "
            f"aside and cuts the log at offset {self.offset}: this loses all records from there on, below "
            f"offset {self.lost_below_offset}, also committed ones"
        )


class CorruptSnapshot(StorageError):
    """A snapshot that is damaged or incomplete."""


class NewerSnapshot(CorruptSnapshot):
    """A snapshot with a control record that this release doesn't know. It is no damage."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        self.what = f"offset {offset}: {reason}"
        super().__init__(path, f"{self.what}; use a newer release of kraft-wire")


class SegmentChanged(StorageError):
    """A file that was deleted or cut after it was listed, because a controller works on the log."""

    def __init__(self, path: Path, how: str) -> None:
        super().__init__(
            path,
            f"{how} while the log was read, because a controller works on it; read again what there is now",
        )


class MissingRecords(StorageError):
    """A log that begins above offset 0, without a snapshot of the records before (KAFKA-14240)."""


_NOT_THE_DISK_S_FAULT = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
"""Errors of a path that is wrong or belongs to another user."""
_WHAT_TO_DO = {
    errno.ENOSPC: "the disk is full: make room, and start again",
    errno.EDQUOT: "the user's quota of the disk is used up: make room, and start again",
    errno.EMFILE: "the process has too many files open: raise its limit (ulimit -n), and start again",
    errno.ENFILE: "the system has too many files open",
}
"""Advice for errors that don't mean a broken disk."""


class DiskFailed(StorageError):
    """A failed write or flush. The contents of the disk are unknown from now on, so the process must end.

    Every later attempt to write raises it again: a repeated flush may succeed although data is lost.
    """

    def __init__(self, path: Path, what: str, error: OSError) -> None:
        reason = f"{what} failed: {error.strerror or error}"
        if error.errno not in _NOT_THE_DISK_S_FAULT:
            reason += "; " + _WHAT_TO_DO.get(error.errno or 0, "the disk is not to be trusted")
        super().__init__(path, reason)
        self.errno = error.errno


class FileGone(DiskFailed):
    """A file that was deleted, moved or replaced while the node worked with it. What is written to it is lost
    with the process, so the process must end before it acknowledges more."""

    def __init__(self, path: Path, advice: str) -> None:
        StorageError.__init__(
            self,
            path,
            "was deleted, moved or replaced while the controller worked with it, so nothing more is "
            f"acknowledged. If it was moved, move it back; {advice}; then start the controller again",
        )
        self.errno = errno.ENOENT


class OffsetBelowStart(LogError):
    """A read of records that were deleted. A snapshot holds their outcome."""

    def __init__(self, offset: int, start_offset: int) -> None:
        super().__init__(offset, start_offset)
        self.offset = offset
        self.start_offset = start_offset

    def __str__(self) -> str:
        return f"offset {self.offset} is below the log's start, {self.start_offset}"
