"""Errors of reading a live quorum. Each text names the controller, its answer, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.security import errors


def reason_of(error: Exception) -> str:
    """Return the cause of a failed call in words: without the number that an OSError has, too."""
    words = error.strerror if isinstance(error, OSError) else None
    return words or str(error) or type(error).__name__


def problems_text(problems: Mapping[Any, str]) -> str:
    """Return the problems of controllers, each with its address, in a line."""
    return "; ".join(f"{address}: {problem}" for address, problem in problems.items())


class QuorumError(Exception):
    """A quorum can't be read."""


class QuorumUnreachable(QuorumError):
    """No controller gave the wanted answer in time. ``problems`` has the last problem of each by address."""

    def __init__(self, wanted: str, waited_ms: int, problems: Mapping[str, str], hint: str) -> None:
        super().__init__(wanted, waited_ms, dict(problems), hint)
        self.wanted = wanted
        self.waited_ms = waited_ms
        self.problems = dict(problems)
        self.hint = hint

    def __str__(self) -> str:
        found = problems_text(self.problems) or "no controller was asked"
        return f"{self.wanted}: no answer in {self.waited_ms} ms; {found}. {self.hint}"


class AuthenticationFailed(QuorumError, errors.AuthenticationFailed):
    """A controller rejected this client's identity, or this client rejected the controller's."""


class NotAuthorized(QuorumError):
    """This client's principal has no permission."""


class WrongServer(QuorumError):
    """The server is not a controller that can be read, or belongs to another cluster."""


class LogRangeGone(QuorumError):
    """The leader's log starts after the offset that was asked for: retention deleted it."""

    def __init__(self, offset: int, first_offset: int) -> None:
        super().__init__(offset, first_offset)
        self.offset = offset
        self.first_offset = first_offset

    def __str__(self) -> str:
        return (
            f"offset {self.offset} is no longer in the log: the leader's log starts at offset "
            f"{self.first_offset}; start with the snapshot that covers the records before it"
        )


class SnapshotGone(QuorumError):
    """The leader doesn't have this snapshot, or no longer."""

    def __init__(self, snapshot_id: SnapshotId, address: str) -> None:
        super().__init__(snapshot_id, address)
        self.snapshot_id = snapshot_id
        self.address = address

    def __str__(self) -> str:
        end_offset, epoch = self.snapshot_id
        return f"{self.address} has no snapshot {end_offset}-{epoch}: start with its newest one"


class CorruptAnswer(QuorumError):
    """Served records that are damaged, at byte ``position`` of the answer and ``offset`` of the log.

    Reading may go on at ``resume_offset`` if it is known.
    """

    def __init__(
        self, address: str, position: int, offset: int, reason: str, resume_offset: int | None = None
    ) -> None:
        super().__init__(address, position, offset, reason, resume_offset)
        self.address = address
        self.position = position
        self.offset = offset
        self.reason = reason
        self.resume_offset = resume_offset

    def __str__(self) -> str:
        return f"{self.address} served a damaged batch at offset {self.offset}: {self.reason}"
