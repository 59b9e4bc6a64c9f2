"""Draw brokers' sessions as lanes of a plot with a limited number of points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.lake.report.figures import Session
from kraft_wire.lake.report.plots import Lane, Piece
from kraft_wire.lake.report.scales import Span, duration_text, time_text

POINTS: Final = 750
KINDS: Final = {"active": "active", "controlled_shutdown": "shutdown", "fenced": "fenced"}
"""The states of sessions, the best first, and the CSS classes that draw them."""

_BADNESS: Final = {state: number for number, state in enumerate(KINDS)}


def inactive_ms(sessions: Iterable[Session], span: Span) -> dict[int, int]:
    """Return the time that each broker was registered but not active."""
    found: dict[int, int] = defaultdict(int)
    for session in sessions:
        found[session.broker_id] += _length_ms(session, span) if session.state != "active" else 0
    return dict(found)


def worst_brokers(sessions: Sequence[Session], span: Span, most: int) -> list[int]:
    """Return the brokers that were inactive for longest, ordered by id."""
    inactive = inactive_ms(sessions, span)
    return sorted(sorted(inactive, key=lambda broker: (-inactive[broker], broker))[:most])


def life_lines(sessions: Sequence[Session], span: Span, brokers: Sequence[int]) -> list[Lane]:
    """Return a lane for each of these brokers."""
    of_broker: dict[int, list[Session]] = {broker: [] for broker in brokers}
    for session in sessions:
        if session.broker_id in of_broker:
            of_broker[session.broker_id].append(session)
    return [Lane(f"broker {broker}", _pieces(of_broker[broker], span)) for broker in brokers]


def _pieces(sessions: list[Session], span: Span) -> list[Piece]:
    """Join sessions that begin and end at one point: otherwise a broker that restarts all the time would take
    any number of pieces."""
    groups: list[list[Session]] = []
    point = None
    for session in sorted(sessions, key=lambda session: session.start_ms):
        start, end = (_point(time_ms, span) for time_ms in _bounds(session, span))
        if start == end == point:
            groups[-1].append(session)
        else:
            groups.append([session])
        point = start if start == end else None
    return [_piece(group, span) for group in groups]


def _piece(group: list[Session], span: Span) -> Piece:
    worst = max(group, key=lambda session: _BADNESS.get(session.state, len(_BADNESS)))
    whole = Span(group[0].start_ms, max(_bounds(session, span).end_ms for session in group))
    when = (
        f"from {time_text(whole.start_ms)} to {time_text(whole.end_ms)} UTC, {duration_text(whole.length_ms)}"
    )
    what = worst.state if len(group) == 1 else f"{len(group)} sessions, the worst of them {worst.state}"
    return Piece(whole, KINDS.get(worst.state, "fenced"), f"broker {worst.broker_id}: {what}, {when}")


def _point(time_ms: int, span: Span) -> int:
    return (time_ms - span.start_ms) * POINTS // max(span.length_ms, 1)


def _bounds(session: Session, span: Span) -> Span:
    """Return the session's span. By the clock of another leader it can end before it begins."""
    end_ms = span.end_ms if session.end_ms is None else session.end_ms
    return Span(session.start_ms, max(session.start_ms, end_ms))


def _length_ms(session: Session, span: Span) -> int:
    return _bounds(session, span).length_ms
