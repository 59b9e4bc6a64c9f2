"""What plots and tables of the report are put together from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from kraft_wire.spark.report.elements import Child, element, shorter
from kraft_wire.spark.report.figures import Bins
from kraft_wire.spark.report.plots import Column, bar, column_plot
from kraft_wire.spark.report.scales import Span, number_text

MOST_ROWS: Final = 10
_NAME_LENGTH: Final = 60


def figure(title: str, note: str, *children: Child) -> Element:
    """A plot and its numbers under a title, the note says the units."""
    caption = element("figcaption", title, " ", element("small", note))
    return element("figure", caption, *children)


def name(text: str) -> Element:
    """A name out of the data, which runs in whatever direction it likes without turning what is around it."""
    return element("bdi", shorter(text, _NAME_LENGTH), title=text if len(text) > _NAME_LENGTH else None)


def head(text: str, unit: str = "") -> Element:
    return element("th", text, element("small", unit) if unit else None)


def table(heads: Sequence[Element], rows: Iterable[Sequence[Child]]) -> Element | None:
    """None where there are no rows."""
    body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    if not body:
        return None
    return element("div", element("table", element("tr", *heads), *body), class_="scroll")


def left_out(shown: int, total: int, what: str) -> Element | None:
    """Says how many aren't shown; None where all are."""
    if shown >= total:
        return None
    return element("p", f"{number_text(total - shown)} of {number_text(total)} {what}.", class_="note")


def columns(bins: Bins, span: Span, unit: str, divisor: float = 1) -> Element:
    """A column for each of the bins."""
    edges = bins.edges_ms.tolist()
    steps = map(Span, edges, edges[1:])
    return column_plot(
        [Column(step, value / divisor) for step, value in zip(steps, bins.values.tolist(), strict=True)],
        span,
        unit,
    )


def topics(amounts: Counter[str], unit: str, text: Callable[[int], str]) -> list[Element | None]:
    """The topics with the most of something, and how much the others have together."""
    most = amounts.most_common(MOST_ROWS)
    rows = [(name(topic), text(amount), bar(amount / most[0][1])) for topic, amount in most if amount]
    rest = amounts.total() - sum(amount for _, amount in most)
    return [
        table((head("topics with most"), head(unit), head("")), rows),
        left_out(len(most), len(amounts), f"topics left out, with {text(rest)} {unit} together"),
    ]
