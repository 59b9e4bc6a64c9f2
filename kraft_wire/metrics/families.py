"""Turn values into families of samples, which prometheus_client prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client.metrics_core import Metric

from kraft_wire.metrics.definition import NO_NAMES, Definition, Kind, Names, Spelling
from kraft_wire.metrics.definitions import DEFINITIONS
from kraft_wire.metrics.process import Value
from kraft_wire.metrics.windows import Histogram

TOTAL: Final = "_total"
CAPITAL: Final = re.compile("[A-Z]")


def families(values: Mapping[str, Value]) -> Iterator[Metric]:
    """Yield the families of each metric: that of its own name, then those of its other names."""
    for name, value in values.items():
        definition = DEFINITIONS[name]
        yield _own(definition, value)
        names = definition.names
        for other in names.all:
            labels = names.labels or definition.labels
            yield _family(other, _kind(other, names), definition, value, labels, names)


def _own(definition: Definition, value: Value) -> Metric:
    if definition.kind is Kind.HISTOGRAM:
        return _histograms(definition, value)
    return _family(definition.name, definition.kind, definition, value, definition.labels, NO_NAMES)


def _kind(name: str, names: Names) -> Kind:
    """Return the kind of a dialect's metric. If its name without ``_total`` is another dialect's metric, it
    is no counter: OpenMetrics would take that for the same family."""
    base = name.removesuffix(TOTAL)
    return Kind.COUNTER if base != name and base not in names.all else Kind.GAUGE


def _family(
    name: str, kind: Kind, definition: Definition, value: Value, labels: tuple[str, ...], names: Names
) -> Metric:
    family_name = name.removesuffix(TOTAL) if kind is Kind.COUNTER else name
    unit = definition.unit if name == definition.name else ""
    family = Metric(family_name, definition.help, kind.value, unit)
    if isinstance(value, Mapping):
        (label,) = labels
        for text, each in value.items():
            family.add_sample(name, {label: _spelled(text, names.spelling)}, _number(each) * names.factor)
    else:
        family.add_sample(name, {}, _number(value) * names.factor)
    return family


def _spelled(text: str, spelling: Spelling) -> str:
    return CAPITAL.sub(_hyphen, text) if spelling is Spelling.WITH_HYPHENS else text


def _hyphen(capital: re.Match[str]) -> str:
    return f"-{capital[0].lower()}"


def _number(value: float | Histogram) -> float:
    assert not isinstance(value, Histogram), "no dialect has histograms"
    return value


def _histograms(definition: Definition, value: Value) -> Metric:
    """Return a histogram in seconds, or some by their label."""
    family = Metric(definition.name, definition.help, definition.kind.value, definition.unit)
    if isinstance(value, Mapping):
        (label,) = definition.labels
        for text, each in value.items():
            _add_histogram(family, {label: text}, each)
    else:
        _add_histogram(family, {}, value)
    return family


def _add_histogram(family: Metric, labels: dict[str, str], histogram: float | Histogram) -> None:
    """Add the samples of a histogram. Its classes have no lower bounds, so each contains those before it."""
    assert isinstance(histogram, Histogram), "the definition says so"
    bounds = [*(str(bound / 1000) for bound in histogram.bounds), "+Inf"]
    totals = list(accumulate(histogram.counts))
    for bound, total in zip(bounds, totals, strict=True):
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, total)
    family.add_sample(f"{family.name}_count", labels, totals[-1])
    family.add_sample(f"{family.name}_sum", labels, histogram.sum / 1000)
