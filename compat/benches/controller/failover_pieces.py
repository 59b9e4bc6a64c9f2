"""Say where the time of a failover goes, from what our controllers log.

The log's times are whole milliseconds, so a single failover is known to about a millisecond; medians of many
say more. A piece ends with an event of the successor's log, except the first one of a leader that is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import msgspec

PIECES = (
    "the end is seen",
    "stand-off",
    "pre-vote",
    "vote",
    "active, the log is applied",
    "first write committed",
    "first write answered",
)

FIRST_WRITE = "first write committed"


class LogEvent(NamedTuple):
    """An event of a controller's log; ``at_s`` is seconds since the epoch."""

    at_s: float
    name: str
    fields: dict[str, Any]


class Logs(msgspec.Struct, frozen=True):
    """The logs of one failover: the events since the leader's end."""

    leader: list[LogEvent]
    successor: list[LogEvent]
    third: list[LogEvent]


def events_since(log_text: str, began_s: float) -> list[LogEvent]:
    """Return the events of a log in JSON lines since a time, which is cut to whole milliseconds."""
    since_s = int(began_s * 1000) / 1000
    events = []
    for line in log_text.splitlines():
        if line.startswith('{"time"'):
            fields = json.loads(line)
            event = LogEvent(datetime.fromisoformat(fields["time"]).timestamp(), fields["event"], fields)
            if event.at_s >= since_s:
                events.append(event)
    return events


def pieces_ms(began_s: float, answered_s: float, logs: Logs) -> list[float]:
    """Return the milliseconds of each of ``PIECES``. Raises ValueError if an event is missing."""
    epoch = _last(logs.successor, "became leader").fields["epoch"]
    candidate = _role(logs.successor, "Candidate", epoch)
    prospective = [event for event in _roles(logs.successor, "Prospective") if event.at_s <= candidate.at_s]
    marks = [
        began_s,
        _end_seen(logs).at_s,
        prospective[-1].at_s if prospective else candidate.at_s,  # no pre-vote: the leader named it
        candidate.at_s,
        _last(logs.successor, "became leader").at_s,
        _last(logs.successor, "active controller").at_s,
        _last(logs.successor, FIRST_WRITE).at_s,
        answered_s,
    ]
    return [(later - earlier) * 1000 for earlier, later in pairwise(marks)]


def has_written(successor: Sequence[LogEvent]) -> bool:
    """Whether the successor has logged its first write."""
    return any(event.name == FIRST_WRITE for event in successor)


def is_contested(logs: Logs) -> bool:
    """Whether more than one node stood, or one stood more than once."""
    stood = [event for log in (logs.successor, logs.third) for event in _roles(log, "Candidate")]
    asked = [event for log in (logs.successor, logs.third) for event in _roles(log, "Prospective")]
    return len(stood) > 1 or len(asked) > 1


def pieces_table(pieces: Sequence[Sequence[float]]) -> str:
    """Return the median and the longest of each piece as a table."""
    lines = [
        f"  {name:36}{median(values):8.1f} ms{max(values):8.1f} ms"
        for name, values in zip(PIECES, zip(*pieces, strict=True), strict=True)
    ]
    return "\n".join([f"  {'piece':36}{'median':>11}{'longest':>11}", *lines])


def _end_seen(logs: Logs) -> LogEvent:
    resigned = _roles(logs.leader, "Resigned")
    return resigned[0] if resigned else _first(logs.successor, "peer connection lost")


def _first(events: Sequence[LogEvent], name: str) -> LogEvent:
    for event in events:
        if event.name == name:
            return event
    raise ValueError(f"the log has no event {name!r}")


def _last(events: Sequence[LogEvent], name: str) -> LogEvent:
    """Return the last event of a name: a successor may have led before, and have lost it again."""
    return _first(events[::-1], name)


def _roles(events: Sequence[LogEvent], role: str) -> list[LogEvent]:
    return [event for event in events if event.name == "role changed" and event.fields["role"] == role]


def _role(events: Sequence[LogEvent], role: str, epoch: int) -> LogEvent:
    for event in _roles(events, role):
        if event.fields["epoch"] == epoch:
            return event
    raise ValueError(f"the log doesn't say that the role became {role} in epoch {epoch}")
