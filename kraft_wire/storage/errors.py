"""What can be wrong with a folder, or with the disk under it. Every text names the file and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

from kraft_wire.log.errors import LogError
from kraft_wire.log.recovery import Rest
from kraft_wire.protocol.messages.voters_record import VotersRecord


class StorageError(LogError):
    """A folder that cannot be used. ``path`` is the file or folder that says so."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class NotFormatted(StorageError):
    """A folder without meta.properties."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "is not there: the folder is not formatted; run `kraft-wire storage format`")


class AlreadyFormatted(StorageError):
    """A folder that format must not touch."""


class WrongFolder(StorageError):
    """A folder that belongs to another cluster or node, or is not what it should be."""


class FolderLocked(StorageError):
    """A folder that another process works on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "another process holds this lock; stop it, or use another folder")


class CorruptFile(StorageError):
    """One of the small files says nothing sensible."""


class QuorumStateBehind(CorruptFile):
    """quorum-state names an epoch below those of whole, consecutive batches of the log."""

    def __init__(self, path: Path, quorum_epoch: int, log_epoch: int) -> None:
        super().__init__(
            path, f"says epoch {quorum_epoch}, and the log holds whole batches of epoch {log_epoch}"
        )


class CorruptLog(StorageError):
    """Records that were durable once are damaged or gone. Nothing on the disk was changed.

    ``position`` is the byte in ``path`` from which on it cannot be read, ``offset`` the first record offset
    lost; all that was durable was below ``lost_below_offset``. ``voters`` is the last VotersRecord of the
    log, in front of the damage or still to be read behind it. Where there is a ``rest``, nothing is lost but
    history: the log can begin there.
    """

    rest: Rest | None = None

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
        """What is wrong and where, in a few words."""
        return f"corrupt at byte {self.position}, where offset {self.offset} should be: {self.reason}"

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.summary}; nothing was changed. Restore {self.path.parent} from a copy. "
            f"Without one, `kraft-wire fsck {self.path.parent.parent} --repair` keeps the damaged bytes "
            f"aside and cuts the log at offset {self.offset}: all records from there on would be lost, below "
            f"offset {self.lost_below_offset}, and committed ones are among them"
        )


class CorruptSnapshot(StorageError):
    """A snapshot that is damaged or incomplete."""


class MissingRecords(StorageError):
    """A log that begins above offset 0 without a snapshot of what came before (KAFKA-14240)."""


_NOT_THE_DISK_S_FAULT = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
"""A path that is wrong, or another user's."""
_WHAT_TO_DO = {
    errno.ENOSPC: "the disk is full: make room, and start again",
    errno.EDQUOT: "the user's quota of the disk is used up: make room, and start again",
    errno.EMFILE: "the process has too many files open: raise its limit (ulimit -n), and start again",
    errno.ENFILE: "the system has too many files open",
}
"""What has another reason than a broken disk."""


class DiskFailed(StorageError):
    """A write or a flush failed: what is on the disk is unknown from now on, so the process has to end.

    It is raised again by every later attempt to write, for a flush that is tried again may succeed although
    the data is gone.
    """

    def __init__(self, path: Path, what: str, error: OSError) -> None:
        reason = f"{what} failed: {error.strerror or error}"
        if error.errno not in _NOT_THE_DISK_S_FAULT:
            reason += f"; {_WHAT_TO_DO.get(error.errno or 0, 'the disk is not to be trusted')}"
        super().__init__(path, reason)
        self.errno = error.errno


class OffsetBelowStart(LogError):
    """A read of records that were trimmed; a snapshot holds their outcome."""

    def __init__(self, offset: int, start_offset: int) -> None:
        super().__init__(offset, start_offset)
        self.offset = offset
        self.start_offset = start_offset

    def __str__(self) -> str:
        return f"offset {self.offset} is below the log's start, {self.start_offset}"
