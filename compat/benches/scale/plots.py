"""Plot costs against the number of partitions, as SVG: both axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, indent, tostring

from compat.benches.scale.growth import Grown
from compat.harness.kafka.cluster import ControllerKind
from kraft_wire.lake.report.elements import element

WIDTH: Final = 420
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 34, 34
STYLE: Final = """
text { font: 11px system-ui, sans-serif; fill: #57606a; } .title { font-size: 13px; font-weight: 600; }
.grid { stroke: #d0d7de; stroke-width: .5; } .line { fill: none; stroke-width: 2; }
.ours { stroke: #0072b2; } circle.ours, text.ours { fill: #0072b2; stroke: none; }
.java { stroke: #d55e00; } circle.java, text.java { fill: #d55e00; stroke: none; }
"""
NAMES: Final[dict[ControllerKind, str]] = {"ours": "kraft-wire", "java": "Java"}


class Plot(NamedTuple):
    """One plot: its title, its unit, and the figure that it shows."""

    title: str
    unit: str
    figure: Callable[[Grown], float | None]


PLOTS: Final = (
    Plot("Creating the partitions", "s", lambda grown: grown.created_s),
    Plot("A broker shuts down, until it may go", "s", lambda grown: grown.broker_end_s),
    Plot("Restart, until the first write", "s", lambda grown: grown.restart_s),
    Plot("Resident memory", "MiB", lambda grown: grown.resident_mib),
)


class Scale(NamedTuple):
    """A logarithmic scale from ``least`` to ``most``, drawn from ``start`` to ``end``."""

    least: float
    most: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value is drawn."""
        part = (math.log10(value) - math.log10(self.least)) / (math.log10(self.most) - math.log10(self.least))
        return self.start + (self.end - self.start) * part

    def marks(self) -> list[float]:
        """Return the powers of ten in the scale."""
        first, last = math.ceil(math.log10(self.least) - 1e-9), math.floor(math.log10(self.most) + 1e-9)
        return [10.0**power for power in range(first, last + 1)]


def plot_growth(grown: Sequence[Grown]) -> str:
    """Return an SVG with one plot for each of ``PLOTS``, two beside each other."""
    style = Element("style")
    style.text = STYLE
    plots = [
        element("g", *_plot(plot, grown), transform=f"translate({n % 2 * WIDTH} {n // 2 * HEIGHT})")
        for n, plot in enumerate(PLOTS)
    ]
    size = f"0 0 {2 * WIDTH} {HEIGHT * math.ceil(len(PLOTS) / 2)}"
    svg = element("svg", style, *plots, xmlns="http://www.w3.org/2000/svg", viewBox=size)
    indent(svg, " ")
    return tostring(svg, encoding="unicode") + "\n"


def _plot(plot: Plot, grown: Sequence[Grown]) -> list[Element]:
    points = [(each, value) for each in grown if (value := plot.figure(each)) is not None]
    values = [value for _, value in points]
    sizes = [each.partitions for each in grown]
    across = Scale(min(sizes) / 1.3, max(sizes) * 1.3, LEFT, WIDTH - RIGHT)
    upwards = Scale(
        10 ** math.floor(math.log10(min(values))),
        10 ** math.ceil(math.log10(max(values))),
        HEIGHT - BOTTOM,
        TOP,
    )
    drawn = [element("text", plot.title, x=LEFT, y=18, class_="title")]
    for value in upwards.marks():
        y = upwards.place(value)
        drawn.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=_at(y), y2=_at(y), class_="grid"))
        label = f"{value:,g} {plot.unit}"
        drawn.append(element("text", label, x=LEFT - 6, y=_at(y + 4), text_anchor="end"))
    for size in sorted(set(sizes)):
        x = _at(across.place(size))
        drawn.append(element("text", _thousands(size), x=x, y=HEIGHT - BOTTOM + 16, text_anchor="middle"))
    for kind in NAMES:
        drawn += _line(
            kind, [(across.place(g.partitions), upwards.place(v), v) for g, v in points if g.kind == kind]
        )
    return drawn


def _line(kind: ControllerKind, points: Sequence[tuple[float, float, float]]) -> list[Element]:
    if not points:
        return []
    path = " ".join(f"{_at(x)},{_at(y)}" for x, y, _ in points)
    drawn = [element("polyline", points=path, class_=f"line {kind}")]
    for x, y, value in points:
        tooltip = element("title", f"{NAMES[kind]}: {value:,.3g}")
        drawn.append(element("circle", tooltip, cx=_at(x), cy=_at(y), r=3, class_=kind))
    x, y, _ = points[-1]
    drawn.append(element("text", NAMES[kind], x=_at(x), y=_at(y - 8), text_anchor="end", class_=kind))
    return drawn


def _at(place: float) -> str:
    return f"{place:.1f}"


def _thousands(size: int) -> str:
    return f"{size // 1000:,}k"
