"""What dashboards and alarms read is there, in the scrapes of a real quorum of three."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from tests.support.controller_process import ControllerProcess
from tests.support.dashboards import THIRD_PARTY, expressions
from tests.support.http_client import HTTP, http_get, scraped, wait_until_ready
from tests.support.live_quorum import Controllers
from tests.support.promql import Selector, parse
from tests.support.scrapes import OPEN_METRICS, PARSERS
from tests.support.waiting import wait_until

Scrape = dict[str, Metric]

ONLY_AFTER = {
    "kraft_wire_broker_silent_seconds": "a broker",
    "kraft_wire_log_warnings_total": "a warning",
    "kraft_wire_raft_requests_failed_total": "a failure",
    "kraft_wire_requests_refused_total": "a refused request",
}
"""Metrics with a label that has values only after something happened. The metric itself is always there."""


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, ControllerProcess]]:
    controllers = Controllers(tmp_path_factory.mktemp("quorum"))
    exporter = "kraft.wire.exporter.audit"
    folder = tmp_path_factory.mktemp("audit")
    controllers.configure(
        HTTP | {"kraft.wire.exporters": "audit", f"{exporter}.type": "jsonl", f"{exporter}.path": str(folder)}
    )
    try:
        controllers.start()
        leader = controllers.processes[controllers.leader()]
        with leader.client() as client:
            client.set_config("log.retention.ms", "1234567")
        for process in controllers.processes.values():
            wait_until_ready(process)
        yield controllers.processes
    finally:
        controllers.close()


def samples_of(scrape: Scrape) -> list[Sample]:
    return [sample for family in scrape.values() for sample in family.samples]


@pytest.mark.parametrize("content_type", PARSERS)
@pytest.mark.parametrize("dashboard", THIRD_PARTY)
def test_every_controller_has_what_others_dashboards_read(
    quorum: dict[int, ControllerProcess], dashboard: str, content_type: str
) -> None:
    for process in quorum.values():
        found = {sample.name: set(sample.labels) for sample in samples_of(scraped(process, content_type))}
        for name, labels in THIRD_PARTY[dashboard].items():
            assert name in found
            assert set(labels) <= found[name]


def test_our_dashboard_and_our_alarms_find_what_they_read(quorum: dict[int, ControllerProcess]) -> None:
    scrapes = [scraped(process, OPEN_METRICS) for process in quorum.values()]
    samples = [sample for scrape in scrapes for sample in samples_of(scrape)]
    families = {name for scrape in scrapes for name in scrape}
    for owner, text in expressions():
        selectors = parse(text).selectors
        for selector in selectors[:1] if owner == "job" else selectors:
            if selector.name in ONLY_AFTER:
                assert selector.name.removesuffix("_total") in families
            else:
                assert any(is_selected(selector, sample) for sample in samples), (owner, selector)


def is_selected(selector: Selector, sample: Sample) -> bool:
    return selector.name == sample.name and all(
        sample.labels.get(label) == value for label, (_, value) in selector.matchers.items() if label != "job"
    )


def test_a_quorum_without_faults_sets_off_no_alarm(quorum: dict[int, ControllerProcess]) -> None:
    nodes = [values_of(process) for process in quorum.values()]
    assert sum(node["kraft_wire_active"] for node in nodes) == 1
    (leader,) = (node for node in nodes if node["kraft_wire_active"])
    assert (leader["kraft_wire_failures_left"], leader["kraft_wire_voters_silent"]) == (1, 0)
    for node in nodes:
        assert node["kraft_wire_ready"] == 1
        assert node["kraft_wire_no_leader_seconds_count"] >= 1
        assert node["kraft_wire_flush_duration_seconds_count"] > 0
        assert node["kraft_wire_log_bytes"] > 0
        assert 0 < node["kraft_wire_disk_free_bytes"] <= node["kraft_wire_disk_bytes"]
        assert 0 <= node["kraft_wire_event_loop_idle_ratio"] <= 1
        assert node["kraft_wire_voters_without_address"] == 0
    wait_until(
        lambda: all(
            values_of(each)["kraft_wire_event_loop_delay_seconds_count"] > 1 for each in quorum.values()
        ),
        "probes of the event loop",
    )


def values_of(process: ControllerProcess) -> dict[str, float]:
    """Return the values without labels."""
    return {
        sample.name: sample.value
        for sample in samples_of(scraped(process, OPEN_METRICS))
        if not sample.labels
    }


def test_voters_that_are_gone_are_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    controllers = Controllers(tmp_path_factory.mktemp("silent"))
    controllers.configure(HTTP)
    try:
        controllers.start()
        leader_id = controllers.leader()
        leader = controllers.processes[leader_id]
        wait_until_ready(leader)
        other = next(id for id in controllers.processes if id != leader_id)
        controllers.kill(other)
        wait_until(lambda: values_of(leader)["kraft_wire_voters_silent"] == 1, "a silent voter")
        assert values_of(leader)["kraft_wire_failures_left"] == 0
        lags = scraped(leader, OPEN_METRICS)["kraft_wire_voter_lag_records"].samples
        assert {sample.labels["voter"] for sample in lags} == {"1", "2", "3"} - {str(leader_id)}
        controllers.write(range(3))
        assert _lag(leader, other) >= 3
        assert http_get(leader, "/readyz").status == 200
        controllers.kill(next(id for id in controllers.processes if id not in (leader_id, other)))
        wait_until(lambda: values_of(leader)["kraft_wire_ready"] == 0, "an unready controller")
        assert values_of(leader)["kraft_wire_leader_id"] == -1
        assert values_of(leader)["kraft_wire_active"] == 0
        wait_until(lambda: "no leader" in _warnings(leader), "a warning")
    finally:
        controllers.close()


def _warnings(process: ControllerProcess) -> set[str]:
    samples = scraped(process, OPEN_METRICS)["kraft_wire_log_warnings"].samples
    return {sample.labels["event"] for sample in samples}


def _lag(leader: ControllerProcess, voter_id: int) -> float:
    lags = scraped(leader, OPEN_METRICS)["kraft_wire_voter_lag_records"].samples
    return next(sample.value for sample in lags if sample.labels["voter"] == str(voter_id))
