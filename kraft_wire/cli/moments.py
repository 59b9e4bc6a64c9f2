"""The options --as-of-offset and --as-of-time, which several commands have."""

from __future__ import annotations

from datetime import UTC, datetime

from kraft_wire.cli.errors import UsageError


def check_moment(as_of_offset: int | None, as_of_time: str | None) -> datetime | None:
    """Return the time that is asked for; None if there is none. Raises UsageError if both are given, and for
    an impossible value."""
    if as_of_offset is not None and as_of_time is not None:
        raise UsageError("--as-of-offset and --as-of-time exclude each other; give one of them")
    if as_of_offset is not None and as_of_offset < 0:
        raise UsageError(f"--as-of-offset {as_of_offset}: an offset must be at least 0")
    return None if as_of_time is None else _parse_time(as_of_time)


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--as-of-time {text!r} is not a time, such as 2026-11-22T01:30:00") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
