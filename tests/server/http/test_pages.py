"""What is answered to a request for metrics or health."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from kraft_wire.metrics.health import Check
from kraft_wire.server.http.pages import SAMPLES_AT_ONCE, Pages
from tests.support.scrapes import PARSERS, parsed

OPEN_METRICS = "application/openmetrics-text"
PLAIN = "text/plain"


def pages(checks: Sequence[Check] = ()) -> Pages:
    def metrics() -> list[Metric]:
        return [GaugeMetricFamily("a_gauge", "Its help", value=7)]

    return Pages(metrics, lambda: checks)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", f"{PLAIN}; version=0.0.4"),
        ("*/*", f"{PLAIN}; version=0.0.4"),
        ("text/plain;version=0.0.4", f"{PLAIN}; version=0.0.4"),
        (
            f"{OPEN_METRICS};version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.3",
            f"{OPEN_METRICS}; version=1.0.0",
        ),
    ],
)
def test_metrics_in_the_format_that_the_client_accepts(accept: str, content_type: str) -> None:
    answer = pages().answer("GET", "/metrics", accept)
    assert answer.status == 200
    assert answer.content_type.startswith(content_type)
    body = b"".join(answer.body)
    assert b"a_gauge 7.0\n" in body
    assert body.endswith(b"# EOF\n") == content_type.startswith(OPEN_METRICS)


@pytest.mark.parametrize("content_type", PARSERS)
def test_many_metrics_come_in_pieces_that_are_one_text(content_type: str) -> None:
    families = []
    for number in range(30):
        family = GaugeMetricFamily(f"gauge_{number}", "Its help", labels=["x"])
        for value in range(SAMPLES_AT_ONCE // 10):
            family.add_metric([str(value)], value)
        families.append(family)
    pieces = list(Pages(lambda: families, list).answer("GET", "/metrics", content_type).body)
    assert len(pieces) == 4
    found = parsed(b"".join(pieces).decode(), content_type)
    assert sum(len(family.samples) for family in found.values()) == 30 * (SAMPLES_AT_ONCE // 10)


def test_a_ready_node() -> None:
    answer = pages([Check("leader", None), Check("disk", None)]).answer("GET", "/readyz", "")
    assert (answer.status, b"".join(answer.body)) == (200, b"leader: ok\ndisk: ok\n")


def test_an_unready_node_says_why() -> None:
    answer = pages([Check("leader", "none is known"), Check("disk", None)]).answer("GET", "/readyz", "")
    assert (answer.status, b"".join(answer.body)) == (503, b"leader: none is known\ndisk: ok\n")


def test_a_node_that_is_not_ready_is_alive() -> None:
    assert pages([Check("leader", "none is known")]).answer("GET", "/livez?verbose", "").status == 200


@pytest.mark.parametrize("target", ["/", "/metrics/", "/metricsx", "*", "http://host/metrics"])
def test_another_page_is_not_found(target: str) -> None:
    assert pages().answer("GET", target, "").status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_another_method_is_not_allowed(method: str) -> None:
    answer = pages().answer(method, "/readyz", "")
    assert (answer.status, answer.allow) == (405, "GET, HEAD")
