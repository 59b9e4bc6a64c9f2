"""The expressions of our dashboard and alarms, and the metrics that others' dashboards read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[2] / "examples" / "monitoring"
RUNBOOK: Final = Path(__file__).parents[2] / "docs" / "runbook.md"
OF_A_SCRAPE: Final = frozenset({"job", "instance"})
"""Labels that Prometheus adds."""
OF_THE_PROCESS: Final = frozenset(
    {
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
    }
)
"""Metrics of prometheus_client that our files read."""

_RAFT: Final = (
    "append_records_rate",
    "commit_latency_avg",
    "current_epoch",
    "current_leader",
    "fetch_records_rate",
    "high_watermark",
)
_CHANNEL: Final = ("incoming_byte", "outgoing_byte", "request", "response")
THIRD_PARTY: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Strimzi's KRaft dashboard for the JMX exporter": {
        **{f"kafka_server_raftmetrics_{name}": () for name in (*_RAFT, "current_vote", "log_end_offset")},
        "kafka_server_raftmetrics_current_state": ("current_state",),
        **{f"kafka_server_raftchannelmetrics_{name}_total": () for name in _CHANNEL},
        "process_open_fds": (),
    },
    "Strimzi's KRaft dashboard for its reporter": {
        **{f"kafka_server_raft_metrics_{name}": () for name in (*_RAFT, "current_vote", "log_end_offset")},
        "kafka_server_raft_metrics_current_state_info": ("current_state",),
        **{f"kafka_server_raft_channel_metrics_{name}": () for name in _CHANNEL},
        "process_open_fds": (),
    },
    "Strimzi's Kafka dashboards, as far as controllers go": {
        "kafka_controller_kafkacontroller_activecontrollercount": (),
        "kafka_controller_kafkacontroller_offlinepartitionscount": (),
        "kafka_controller_controllerstats_uncleanleaderelections_total": (),
        "kafka_controller_controllerstats_uncleanleaderelectionspersec_total": (),
    },
    "Confluent's KRaft dashboards": {
        **{
            f"kafka_server_raft_metrics_{name}": ()
            for name in (*_RAFT, "election_latency_max", "commit_latency_max")
        },
        "kafka_controller_kafkacontroller_activebrokercount": (),
        "kafka_controller_kafkacontroller_activecontrollercount": (),
        "kafka_controller_kafkacontroller_fencedbrokercount": (),
        "kafka_controller_kafkacontroller_lastappliedrecordlagms": (),
        "kafka_controller_kafkacontroller_metadataerrorcount": (),
        "kafka_controller_kafkacontroller_offlinepartitionscount": (),
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": (),
        "kafka_controller_controllerstats_uncleanleaderelectionspersec": (),
        "kafka_controller_controllereventmanager_eventqueuetimems": (),
        "kafka_controller_controllereventmanager_eventqueueprocessingtimems": (),
        "process_cpu_seconds_total": (),
    },
}
"""The metrics that a controller has for a dashboard, with the labels that it reads. Those of the JVM and of
containers come from elsewhere, and so do the labels by which a dashboard selects a cluster or an instance."""


def alarms() -> list[dict[str, Any]]:
    """Return the alarm rules."""
    groups = yaml.safe_load((FOLDER / "alarms.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """Return Grafana's dashboard."""
    board: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
    return board


def panels() -> list[dict[str, Any]]:
    """Return the panels with data."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield the name of each panel and alarm with an expression of it."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]
    for alarm in alarms():
        yield alarm["alert"], alarm["expr"]
