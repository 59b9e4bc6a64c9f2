"""What can go wrong between us and a quorum. Every text names who was asked, what was said, what to do."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.log.snapshot import SnapshotId


class QuorumError(Exception):
    """A quorum couldn't be read."""


class BadSetting(QuorumError):
    """A setting of the connection that can't be used. Never holds what is secret."""


class QuorumUnreachable(QuorumError):
    """Nobody answered as was needed, for as long as it was asked. ``said`` is the last word of each."""

    def __init__(self, wanted: str, waited_ms: int, said: Mapping[str, str], hint: str) -> None:
        super().__init__(wanted, waited_ms, dict(said), hint)
        self.wanted = wanted
        self.waited_ms = waited_ms
        self.said = dict(said)
        self.hint = hint

    def __str__(self) -> str:
        said = "; ".join(f"{address}: {what}" for address, what in self.said.items())
        return f"{self.wanted}: no success in {self.waited_ms} ms; {said or 'nobody was asked'}. {self.hint}"


class AuthenticationFailed(QuorumError):
    """A controller doesn't accept who we say that we are, or we don't accept it."""


class NotAuthorized(QuorumError):
    """A controller knows who we are, and doesn't let us."""


class WrongServer(QuorumError):
    """What listens there is no controller that can be read, or of another cluster."""


class LogRangeGone(QuorumError):
    """The leader's log doesn't begin as early as what was asked for: retention has taken that away."""

    def __init__(self, offset: int, first_offset: int) -> None:
        super().__init__(offset, first_offset)
        self.offset = offset
        self.first_offset = first_offset

    def __str__(self) -> str:
        return (
            f"offset {self.offset} is gone: the leader serves the log from offset {self.first_offset} on, "
            "and what was before as a snapshot; begin with that one"
        )


class SnapshotGone(QuorumError):
    """The leader hasn't got this snapshot, any more or at all."""

    def __init__(self, snapshot_id: SnapshotId, address: str) -> None:
        super().__init__(snapshot_id, address)
        self.snapshot_id = snapshot_id
        self.address = address

    def __str__(self) -> str:
        end_offset, epoch = self.snapshot_id
        return f"{self.address} has no snapshot {end_offset}-{epoch} any more: begin with its newest"


class CorruptAnswer(QuorumError):
    """Records that were served and can't be right: by whom, at which byte of the answer, where in the log,
    and why. It may go on at ``resume_offset``, if that is known."""

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
        return f"{self.address} served a batch at offset {self.offset} that can't be read: {self.reason}"
