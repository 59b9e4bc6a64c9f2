"""Build the plots and tables of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from kraft_wire.lake.report.elements import Child, element, shorter
from kraft_wire.lake.report.figures import Bins
from kraft_wire.lake.report.plots import Column, bar, column_plot
from kraft_wire.lake.report.scales import Span, number_text

MOST_ROWS: Final = 10
_NAME_LENGTH: Final = 60


def figure(title: str, note: str, *children: Child) -> Element:
    """Return a plot and its numbers under a title; the note gives the units."""
    caption = element("figcaption", title, " ", element("small", note))
    return element("figure", caption, *children)


def name(text: str) -> Element:
    """Return a name from the data, isolated: its text direction doesn't affect the text around it."""
    return element("bdi", shorter(text, _NAME_LENGTH), title=text if len(text) > _NAME_LENGTH else None)


def head(text: str, unit: str = "") -> Element:
    """Return the head of a table's column."""
    return element("th", text, element("small", unit) if unit else None)


def table(heads: Sequence[Element], rows: Iterable[Sequence[Child]]) -> Element | None:
    """Return a table; None without rows."""
    body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    if not body:
        return None
    return element("div", element("table", element("tr", *heads), *body), class_="scroll")


def left_out(shown: int, total: int, what: str) -> Element | None:
    """Say how many aren't shown; None if all are."""
    if shown >= total:
        return None
    return element("p", f"{number_text(total - shown)} of {number_text(total)} {what}.", class_="note")


def columns(bins: Bins, span: Span, unit: str, divisor: float = 1) -> Element:
    """Return a plot with a column for each bin."""
    edges = bins.edges_ms.tolist()
    steps = map(Span, edges, edges[1:])
    return column_plot(
        [Column(step, value / divisor) for step, value in zip(steps, bins.values.tolist(), strict=True)],
        span,
        unit,
    )


def topics(amounts: Counter[str], unit: str, text: Callable[[int], str]) -> list[Element | None]:
    """Return a table of the topics with the largest amounts, and the sum of the others."""
    most = amounts.most_common(MOST_ROWS)
    rows = [(name(topic), text(amount), bar(amount / most[0][1])) for topic, amount in most if amount]
    rest = amounts.total() - sum(amount for _, amount in most)
    return [
        table((head("topics with most"), head(unit), head("")), rows),
        left_out(len(most), len(amounts), f"topics left out, with {text(rest)} {unit} in total"),
    ]
