"""Define all metrics: own names and meanings, and their names in the dialects of dashboards for Kafka.

There are three dialects: A, the rules with which Strimzi reads Kafka's JMX beans; B, Strimzi's reporter; and
C, the rules of Confluent's jmx-monitoring-stacks. A name that several have is exposed once. In a dialect a
name that ends in ``_total`` is a counter, every other one a gauge.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec


class Kind(Enum):
    """The kind of a metric, as OpenMetrics names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Names(msgspec.Struct, frozen=True):
    """The names of a metric in the dialects A, B and C, empty where a dialect hasn't got it.

    ``labels`` are the dialects' names of the labels. A dialect's value is ours times ``factor``.
    """

    a: str = ""
    b: str = ""
    c: str = ""
    labels: tuple[str, ...] = ()
    factor: float = 1


class Definition(msgspec.Struct, frozen=True):
    """A metric. ``name`` is our own name; it ends with ``unit`` if there is one, and a counter's with _total.

    ``on_leader_only``: nodes that don't lead don't have it.
    """

    name: str
    kind: Kind
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    names: Names = Names()
    on_leader_only: bool = False


PREFIX: Final = "kraft_wire_"
MS: Final = 1000.0
_NONE: Final = Names()


def _raft(name: str, factor: float = 1) -> Names:
    """Return the names of an attribute of Kafka's raft-metrics."""
    other = f"kafka_server_raft_metrics_{name}"
    return Names(f"kafka_server_raftmetrics_{name}", other, other, factor=factor)


def _channel(name: str) -> Names:
    """Return the names of a total of Kafka's raft-channel-metrics. C's rules leave them out."""
    other = f"kafka_server_raft_channel_metrics_{name}_total"
    return Names(f"kafka_server_raftchannelmetrics_{name}_total", other)


def _bean(bean: str, labels: tuple[str, ...] = (), factor: float = 1) -> Names:
    """Return the name of a bean's value. It is the same in all dialects."""
    name = f"kafka_{bean}"
    return Names(name, name, name, labels, factor)


def _controller(name: str, factor: float = 1) -> Names:
    return _bean(f"controller_kafkacontroller_{name}", factor=factor)


def _gauge(
    name: str,
    help: str,
    names: Names = _NONE,
    *,
    unit: str = "",
    labels: tuple[str, ...] = (),
    on_leader_only: bool = False,
) -> Definition:
    return Definition(f"{PREFIX}{name}", Kind.GAUGE, help, unit, labels, names, on_leader_only)


def _counter(name: str, help: str, names: Names = _NONE, labels: tuple[str, ...] = ()) -> Definition:
    return Definition(f"{PREFIX}{name}_total", Kind.COUNTER, help, "", labels, names)


def _seconds(name: str, help: str) -> Definition:
    return Definition(f"{PREFIX}{name}_seconds", Kind.HISTOGRAM, help, "seconds")


QUORUM: Final = (
    _gauge(
        "role",
        "1 for the role that this node has",
        Names(
            "kafka_server_raftmetrics_current_state",
            "kafka_server_raft_metrics_current_state_info",
            labels=("current_state",),
        ),
        labels=("role",),
    ),
    _gauge("leader_id", "The id of the leader, -1 while none is known", _raft("current_leader")),
    _gauge("voted_for_id", "The id of the node that got this node's vote, -1 if none", _raft("current_vote")),
    _gauge("epoch", "The epoch of the quorum", _raft("current_epoch")),
    _gauge(
        "high_watermark", "The offset below which all is committed, -1 if unknown", _raft("high_watermark")
    ),
    _gauge("log_end_offset", "The offset of the next record", _raft("log_end_offset")),
    _gauge("log_end_epoch", "The epoch of the last record, 0 without one", _raft("log_end_epoch")),
    _gauge("log_start_offset", "The first offset in the log"),
    _gauge("flushed_offset", "The offset below which all is on this node's stable storage"),
    _gauge("voters", "The number of voters", _raft("number_of_voters")),
    _gauge(
        "observers",
        "The number of observers that fetch from this leader",
        _raft("number_of_observers"),
        on_leader_only=True,
    ),
    _gauge(
        "voter_change_in_progress",
        "1 while this leader changes the voters",
        _raft("uncommitted_voter_change"),
        on_leader_only=True,
    ),
    _gauge(
        "records_appended_per_second",
        "Records that this node appended as the leader, over the last 30 seconds",
        _raft("append_records_rate"),
    ),
    _gauge(
        "records_fetched_per_second",
        "Records that this node fetched and appended, over the last 30 seconds",
        _raft("fetch_records_rate"),
    ),
    _gauge(
        "commit_latency_average_seconds",
        "Mean time from append to commit of the last minute's batches on the leader, 0 without any",
        _raft("commit_latency_avg", MS),
        unit="seconds",
    ),
    _gauge(
        "commit_latency_max_seconds",
        "Longest time from append to commit of the last minute's batches on the leader, 0 without any",
        _raft("commit_latency_max", MS),
        unit="seconds",
    ),
    _gauge(
        "election_latency_average_seconds",
        "Mean time of the last minute's elections in which this node stood, 0 without any",
        _raft("election_latency_avg", MS),
        unit="seconds",
    ),
    _gauge(
        "election_latency_max_seconds",
        "Longest time of the last minute's elections in which this node stood, 0 without any",
        _raft("election_latency_max", MS),
        unit="seconds",
    ),
    _counter("records_appended", "Records that this node appended as the leader"),
    _counter("records_fetched", "Records that this node fetched and appended"),
    _counter("raft_requests", "Requests that this node sent to other controllers", _channel("request")),
    _counter("raft_responses", "Responses that this node got from other controllers", _channel("response")),
    _counter("raft_incoming_bytes", "Bytes of responses from other controllers", _channel("incoming_byte")),
    _counter("raft_outgoing_bytes", "Bytes of requests to other controllers", _channel("outgoing_byte")),
    _counter("raft_requests_failed", "Requests to other controllers without a response", labels=("reason",)),
    _seconds("commit_latency", "Time from append to commit of a batch on the leader"),
    _seconds("election_latency", "Time of the elections in which this node stood"),
)
CONTROLLER: Final = (
    _gauge("active", "1 on the active controller, 0 on others", _controller("activecontrollercount")),
    _counter(
        "leader_changes",
        "Leaders that this node has seen",
        _controller("newactivecontrollerscount"),
    ),
    _gauge("brokers_active", "Brokers that are not fenced", _controller("activebrokercount")),
    _gauge("brokers_fenced", "Brokers that are fenced", _controller("fencedbrokercount")),
    _gauge(
        "brokers_in_controlled_shutdown",
        "Brokers that are shutting down",
        _controller("controlledshutdownbrokercount"),
    ),
    _gauge(
        "broker_state",
        "30 for an active broker, 20 in controlled shutdown, 10 fenced",
        _bean("controller_kafkacontroller_brokerregistrationstate", ("broker",)),
        labels=("broker",),
    ),
    _gauge("topics", "Topics", _controller("globaltopiccount")),
    _gauge("partitions", "Partitions", _controller("globalpartitioncount")),
    _gauge("partitions_offline", "Partitions without a leader", _controller("offlinepartitionscount")),
    _gauge(
        "partitions_led_by_others",
        "Partitions whose leader isn't the preferred one",
        _controller("preferredreplicaimbalancecount"),
    ),
    _counter(
        "unclean_elections",
        "Leaders that this controller elected outside the ISR: records may be lost",
        Names(
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            "kafka_controller_controllerstats_uncleanleaderelectionspersec",
        ),
    ),
    _gauge(
        "last_committed_offset",
        "The offset of the last committed record, -1 if unknown",
        _controller("lastcommittedrecordoffset"),
    ),
    _gauge(
        "last_applied_offset",
        "The offset of the last committed record that is applied",
        _controller("lastappliedrecordoffset"),
    ),
    _gauge("unapplied_records", "Committed records that aren't applied yet"),
    _gauge(
        "applied_lag_seconds",
        "The age of the last record that a standby has applied since it started; 0 on the active controller",
        _controller("lastappliedrecordlagms", MS),
        unit="seconds",
    ),
    _gauge("replay_stopped", "1 while a record of a newer release stops replay"),
    _counter(
        "internal_errors",
        "Requests and works that failed with an internal error, and records that stopped replay",
        _controller("metadataerrorcount"),
    ),
    _gauge(
        "finalized_level",
        "The finalized level of a feature",
        _bean("server_metadataloader_finalizedlevel", ("featureName",)),
        labels=("feature",),
    ),
    _gauge(
        "highest_supported_level",
        "The highest level of a feature that this release supports",
        labels=("feature",),
    ),
    _counter("requests", "Requests of clients, brokers and controllers", labels=("api",)),
    _counter("requests_refused", "Requests that failed as a whole", labels=("error",)),
    _seconds("step_duration", "Time of a step of the event loop: everybody else waits meanwhile"),
)
SNAPSHOTS: Final = (
    _counter("snapshots_written", "Snapshots that this node has made"),
    _counter("snapshots_failed", "Snapshots that this node could not make"),
    _counter("snapshots_installed", "Snapshots that this node fetched from a leader"),
    _gauge("snapshot_end_offset", "The end offset of the newest snapshot, 0 without one"),
    _gauge(
        "snapshot_bytes",
        "The size of the last snapshot that this process made, 0 before the first",
        _bean("server_snapshotemitter_latestsnapshotgeneratedbytes"),
        unit="bytes",
    ),
    _gauge(
        "snapshot_age_seconds",
        "Time since this process made its last snapshot, or since it started",
        _bean("server_snapshotemitter_latestsnapshotgeneratedagems", factor=MS),
        unit="seconds",
    ),
)

DEFINITIONS: Final[Mapping[str, Definition]] = {
    each.name.removeprefix(PREFIX).removesuffix("_total"): each for each in (*QUORUM, *CONTROLLER, *SNAPSHOTS)
}
"""All metrics by own name, without PREFIX and ``_total``."""
