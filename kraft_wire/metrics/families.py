"""Turn values into families of samples, which prometheus_client prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client.metrics_core import Metric

from kraft_wire.metrics.definitions import DEFINITIONS, Definition, Kind
from kraft_wire.metrics.readings import Value
from kraft_wire.metrics.windows import Histogram

TOTAL = "_total"


def families(values: Mapping[str, Value]) -> Iterator[Metric]:
    """Yield the families of each metric: that of its own name, then those of its other names."""
    for name, value in values.items():
        definition = DEFINITIONS[name]
        yield _own(definition, value)
        names = definition.names
        for other in dict.fromkeys(filter(None, (names.a, names.b, names.c))):
            assert not isinstance(value, Histogram), "no dialect has histograms"
            labels = names.labels or definition.labels
            yield _family(other, definition, value, labels, names.factor)


def _own(definition: Definition, value: Value) -> Metric:
    if isinstance(value, Histogram):
        return _histogram(definition, value)
    return _family(definition.name, definition, value, definition.labels, 1, definition.unit)


def _family(
    name: str,
    definition: Definition,
    value: float | Mapping[str, float],
    labels: tuple[str, ...],
    factor: float,
    unit: str = "",
) -> Metric:
    kind = Kind.COUNTER if name.endswith(TOTAL) else Kind.GAUGE
    family = Metric(name.removesuffix(TOTAL), definition.help, kind.value, unit)
    if isinstance(value, Mapping):
        (label,) = labels
        for text, each in value.items():
            family.add_sample(name, {label: text}, each * factor)
    else:
        family.add_sample(name, {}, value * factor)
    return family


def _histogram(definition: Definition, histogram: Histogram) -> Metric:
    """Return a histogram in seconds. Its classes have no lower bounds, so each contains those before it."""
    family = Metric(definition.name, definition.help, definition.kind.value, definition.unit)
    bounds = [*(str(bound / 1000) for bound in histogram.bounds), "+Inf"]
    totals = list(accumulate(histogram.counts))
    for bound, total in zip(bounds, totals, strict=True):
        family.add_sample(f"{definition.name}_bucket", {"le": bound}, total)
    family.add_sample(f"{definition.name}_count", {}, totals[-1])
    family.add_sample(f"{definition.name}_sum", {}, histogram.sum / 1000)
    return family
