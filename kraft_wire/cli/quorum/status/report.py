"""The report of ``quorum status``, and what its makers share. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from kraft_wire.raft.recovery.evidence import KnownVoter, VoterChange, changed_voters

UNKNOWN: Final = "unknown"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"


class ReplicaRow(msgspec.Struct):
    """A replica. None where it isn't known.

    ``lag_ms`` is the time since it was last caught up, by the leader's clock. ``is_silent``: it hasn't
    fetched for a while. A folder has ``pid``, the process that works on it, and ``last_seen``, what
    quorum-state says of the last election.
    """

    id: int
    directory_id: str | None = None
    endpoints: list[str] = []
    role: str = UNKNOWN
    epoch: int | None = None
    log_end_offset: int | None = None
    lag: int | None = None
    lag_ms: int | None = None
    last_caught_up_ms: int | None = None
    registered: bool | None = None
    auto_join: bool | None = None
    is_silent: bool | None = None
    source: str | None = None
    pid: int | None = None
    last_seen: str | None = None


class VotersRow(msgspec.Struct):
    """A VotersRecord. Offset -1 is the checkpoint of format; ``change`` compares with the one before.

    In a snapshot, offset and time are those of the snapshot: the voters were set before.
    """

    offset: int
    epoch: int
    time: str
    voters: list[int]
    change: str
    is_in_snapshot: bool = False


class LeaderRow(msgspec.Struct):
    """A controller that leads by its own account, and the voters by its log."""

    id: int
    epoch: int
    address: str
    voters: list[int] = []


class StateRow(msgspec.Struct):
    """The state of a node below ``end_offset``: the digest of its records, and their number. ``problem`` says
    why there is none. ``id`` is None if the node at the address didn't say it, and no controller has it."""

    id: int | None
    address: str
    end_offset: int | None = None
    formula: int | None = None
    record_count: int | None = None
    digest: str | None = None
    problem: str = ""


class StatusReport(msgspec.Struct):
    """The output of --json. ``may_fail`` is how many more voters may fail, None if it can't be known.

    ``leader_id`` is the node that leads by its own account; ``last_known_leader_id`` may be gone. ``leaders``
    are all that lead, the one of the latest epoch first. ``split`` says why the cluster is split; it is empty
    if it isn't. ``states`` are what --digest asks for, and ``states_differ`` says which of them differ.
    """

    cluster_id: str | None = None
    leader_id: int | None = None
    last_known_leader_id: int | None = None
    leader_epoch: int | None = None
    leaders: list[LeaderRow] = []
    split: str = ""
    high_watermark: int | None = None
    kraft_version: int | None = None
    may_fail: int | None = None
    replicas: list[ReplicaRow] = []
    notes: list[str] = []
    history: list[VotersRow] = []
    states: list[StateRow] = []
    states_differ: str = ""


def latest_leader(remembered: Iterable[tuple[int, int]]) -> int | None:
    """Return the leader of the latest epoch that has one, of pairs of an epoch and its leader's id."""
    _, leader_id = max((each for each in remembered if each[1] >= 0), default=(-1, -1))
    return known(leader_id)


def known(number: int) -> int | None:
    """Return an id, epoch or offset of Kafka's; None for a negative one, which means unknown."""
    return None if number < 0 else number


def history_rows(changes: Sequence[VoterChange]) -> list[VotersRow]:
    """Return a row for every VotersRecord."""
    rows: list[VotersRow] = []
    before: Sequence[KnownVoter] = ()
    for change in changes:
        ids = [voter.id for voter in change.voters]
        text = changed_voters(before, change.voters) if rows else ""
        when = time_text(change.timestamp_ms)
        rows.append(VotersRow(change.offset, change.epoch, when, ids, text, change.is_in_snapshot))
        before = change.voters
    return rows


def time_text(time_ms: int) -> str:
    """Return a time in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
