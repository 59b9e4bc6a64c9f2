"""Read metrics as a scraper does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0"
PLAIN: Final = "text/plain; version=0.0.4"
PARSERS: Final[dict[str, Callable[[str], Iterable[Metric]]]] = {
    PLAIN: text_string_to_metric_families,
    OPEN_METRICS: openmetrics.text_string_to_metric_families,
}


def parsed(text: str, content_type: str) -> dict[str, Metric]:
    """Return the families of a scrape by name, that of a counter without _total."""
    return {family.name: family for family in PARSERS[content_type](text)}
