"""Draw plots as SVG: lanes of time, columns over time, bars next to names. Tooltips hold the numbers.

Colours and anchors are attributes for viewers without style sheets; the page's style takes precedence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from kraft_wire.lake.report.elements import element, shorter
from kraft_wire.lake.report.scales import Span, number_marks, number_text, time_marks, time_text

WIDTH: Final = 900
LEFT: Final = 130
RIGHT: Final = 20
AXIS_HEIGHT: Final = 24
LANE_HEIGHT: Final = 16
COLUMNS_HEIGHT: Final = 140
BAR_WIDTH: Final = 260
LABEL_LENGTH: Final = 20


_COLOURS: Final = {"column": "#0072b2", "active": "#0072b2", "shutdown": "#e69f00", "fenced": "#d55e00"}
_LINES: Final = {"axis": "#6b7280", "grid": "#d8dce2"}


class Piece(NamedTuple):
    """A part of a lane. ``kind`` is its CSS class."""

    span: Span
    kind: str
    title: str


class Lane(NamedTuple):
    """The timeline of one thing."""

    name: str
    pieces: Sequence[Piece]


class Column(NamedTuple):
    """The value of a step of time."""

    span: Span
    value: float


def lanes(rows: Sequence[Lane], span: Span) -> Element:
    """Return a plot of lanes, one below the other."""
    height = len(rows) * LANE_HEIGHT
    drawn = [element("g", *_lane(row, span, number * LANE_HEIGHT)) for number, row in enumerate(rows)]
    return _plot(height, *_time_axis(span, height), *drawn)


def _lane(row: Lane, span: Span, top: int) -> list[Element]:
    middle = top + LANE_HEIGHT / 2
    label = _label(shorter(row.name, LABEL_LENGTH), middle + 4)
    return [label, *(_piece(piece, span, top) for piece in row.pieces)]


def _piece(piece: Piece, span: Span, top: int) -> Element:
    start, end = _x(piece.span.start_ms, span), _x(piece.span.end_ms, span)
    return element(
        "rect",
        element("title", piece.title),
        x=_number(start),
        y=top + 2,
        width=_number(max(end - start, 0.5)),
        height=LANE_HEIGHT - 4,
        class_=piece.kind,
        fill=_COLOURS[piece.kind],
    )


def column_plot(values: Sequence[Column], span: Span, unit: str) -> Element:
    """Return a plot with a column for each step of time."""
    marks = number_marks(max((column.value for column in values), default=0))
    scale = (COLUMNS_HEIGHT - 10) / (marks[-1] or 1)
    drawn = [_column(column, span, scale, unit) for column in values if column.value]
    return _plot(COLUMNS_HEIGHT, *_time_axis(span, COLUMNS_HEIGHT), *_number_axis(marks, scale, unit), *drawn)


def _column(column: Column, span: Span, scale: float, unit: str) -> Element:
    start, end = _x(column.span.start_ms, span), _x(column.span.end_ms, span)
    height = max(column.value * scale, 1)
    when = f"{time_text(column.span.start_ms)} to {time_text(column.span.end_ms)} UTC"
    return element(
        "rect",
        element("title", f"{when}: {number_text(column.value)} {unit}"),
        x=_number(start),
        y=_number(COLUMNS_HEIGHT - height),
        width=_number(max(end - start - 0.5, 1)),
        height=_number(height),
        class_="column",
        fill=_COLOURS["column"],
    )


def bar(share: float) -> Element:
    """Return a bar for a table's cell; ``share`` is its length relative to the longest bar."""
    length = _number(max(0.0, min(share, 1.0)) * BAR_WIDTH)
    inner = element("rect", x=0, y=2, width=length, height=10, class_="column", fill=_COLOURS["column"])
    return element(
        "svg", inner, viewBox=f"0 0 {BAR_WIDTH} 14", width=BAR_WIDTH, height=14, aria_hidden="true"
    )


def _plot(height: int, *children: Element) -> Element:
    return element("svg", *children, viewBox=f"0 0 {WIDTH} {height + AXIS_HEIGHT}", class_="plot", role="img")


def _time_axis(span: Span, height: int) -> list[Element]:
    drawn = [_line(LEFT, height, WIDTH - RIGHT, height, "axis")]
    for time_ms, text in time_marks(span):
        x = _x(time_ms, span)
        drawn.append(_line(x, 0, x, height, "grid"))
        drawn.append(_text(text, x, height + 16, "middle"))
    return drawn


def _number_axis(marks: Sequence[float], scale: float, unit: str) -> list[Element]:
    drawn = []
    for mark in marks:
        y = COLUMNS_HEIGHT - mark * scale
        drawn.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid"))
        text = number_text(mark) if mark is not marks[-1] else f"{number_text(mark)} {unit}"
        drawn.append(_label(text, y + 4))
    return drawn


def _label(text: str, y: float) -> Element:
    return _text(text, LEFT - 6, y, "end")


def _text(text: str, x: float, y: float, anchor: str) -> Element:
    return element("text", text, x=_number(x), y=_number(y), text_anchor=anchor, font_size=11, fill="#6b7280")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    ends = {"x1": _number(x1), "y1": _number(y1), "x2": _number(x2), "y2": _number(y2)}
    return element("line", class_=kind, stroke=_LINES[kind], **ends)


def _x(time_ms: int, span: Span) -> float:
    within = min(max(time_ms, span.start_ms), span.end_ms)
    return LEFT + (within - span.start_ms) / max(span.length_ms, 1) * (WIDTH - LEFT - RIGHT)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
