"""Check whether the voters may change now: the rules that all changes have in common (KIP-853; Kafka's
AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler).

One change at a time is what keeps any two majorities overlapping. So a change needs an earlier one to be
committed, and a leader that has committed a record of its own epoch: only then is nothing that an earlier
leader has begun still open.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.errors import RaftError
from kraft_wire.raft.membership.voter_history import VoterSetHistory
from kraft_wire.raft.membership.voters import Endpoints, VersionRange, Voter, VoterSet
from kraft_wire.wire.address import LONGEST_NAME, MAX_PORT

MOST_ENDPOINTS: Final = 16
MOST_VOTERS: Final = 64
"""Their record then takes a quarter of the largest batch, at most."""


class ChangeRefused(RaftError):
    """The voters can't change as requested. ``error`` and ``text`` are for the one who asked."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(f"{error.name}: {text}")
        self.error = error
        self.text = text


class EntryRefusal(Enum):
    """The reason why a leader refuses to change a voter's entry."""

    NOT_THERE = "it does not answer at the wanted address"
    OTHER_ENTRY = "it says at its present address that it wants another entry"
    STILL_THERE = "it still answers at its present address"


def check_endpoints(endpoints: Endpoints) -> None:
    """Raise ChangeRefused for endpoints that no controller has: Java's nodes end if the log has a blank name,
    terminals obey control characters, and the voters must fit into one batch of the log, whatever anybody
    asks for."""
    if not all(f"{each.listener}{each.host}".isprintable() for each in endpoints):
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, "the name of a listener or a host has a character that isn't printable"
        )
    for each in endpoints:
        if not each.listener.strip() or not each.host.strip() or not 0 < each.port <= MAX_PORT:
            raise ChangeRefused(
                ErrorCode.INVALID_REQUEST, "an endpoint needs the name of a listener, a host and a port"
            )
    if len(endpoints) > MOST_ENDPOINTS:
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"a voter has {MOST_ENDPOINTS} listeners at most, not {len(endpoints)}"
        )
    if any(max(len(each.listener), len(each.host)) > LONGEST_NAME for each in endpoints):
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"names of listeners and hosts have {LONGEST_NAME} characters at most"
        )


def check_range(voter: Voter) -> None:
    """Raise ChangeRefused for levels of kraft.version that are no range: Java's nodes end if the log has
    one."""
    versions = voter.kraft_versions
    if not 0 <= versions.min_version <= versions.max_version:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{versions} is not a range of levels")


def check_fenced(high_watermark: int | None) -> int:
    """Return the high watermark. Raises ChangeRefused(REQUEST_TIMED_OUT) if it isn't known yet."""
    if high_watermark is None:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed a record of its epoch yet: try again"
        )
    return high_watermark


def committed_voters(history: VoterSetHistory, high_watermark: int | None) -> VoterSet:
    """Return the voters, whose last change is committed.

    Raises ChangeRefused: UNSUPPORTED_VERSION if kraft.version is 0, REQUEST_TIMED_OUT if the last change
    isn't committed.
    """
    committed = check_fenced(high_watermark)
    if history.kraft_version < 1:
        raise ChangeRefused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"kraft.version is {history.kraft_version}, and voters can change only from level 1 on: upgrade"
            " kraft.version first",
        )
    offset = history.voters_offset
    if offset is None or offset >= committed:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the last change of the voters, at offset {offset}, is not committed yet (high watermark"
            f" {committed}): try again",
        )
    return history.voters


def supports(versions: VersionRange | None, kraft_version: int) -> bool:
    """Whether a node that supports these levels of kraft.version may vote at this level."""
    return versions is not None and versions.min_version <= kraft_version <= versions.max_version
