"""The table of all metrics. ``definition`` says what a row means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraft_wire.metrics.definition import (
    MS,
    PREFIX,
    Definition,
    Names,
    Spelling,
    bean,
    channel,
    controller,
    counter,
    gauge,
    raft,
    seconds,
)


def _node(name: str) -> Names:
    """Return the name of an attribute of Kafka's node-metrics. Only B's reporter finds those."""
    return Names(
        b=f"kafka_server_node_metrics_{name}", labels=("feature_name",), spelling=Spelling.WITH_HYPHENS
    )


QUORUM: Final = (
    gauge(
        "role",
        "1 for the role that this node has",
        Names(
            "kafka_server_raftmetrics_current_state",
            "kafka_server_raft_metrics_current_state_info",
            labels=("current_state",),
        ),
        labels=("role",),
    ),
    gauge(
        "leader_id",
        "The id of the leader, -1 while none is known",
        raft("current_leader", more=("kafka_server_metadataloader_currentcontrollerid",)),
    ),
    gauge("voted_for_id", "The id of the node that got this node's vote, -1 if none", raft("current_vote")),
    gauge(
        "voted_for_directory",
        "1 for the directory id of the node that got this node's vote, zeros if none",
        Names(
            b="kafka_server_raft_metrics_current_vote_directory_id_info",
            labels=("current_vote_directory_id",),
        ),
        labels=("directory_id",),
    ),
    gauge("epoch", "The epoch of the quorum", raft("current_epoch")),
    gauge("high_watermark", "The offset below which all is committed, -1 if unknown", raft("high_watermark")),
    gauge("log_end_offset", "The offset of the next record", raft("log_end_offset")),
    gauge("log_end_epoch", "The epoch of the last record, 0 without one", raft("log_end_epoch")),
    gauge("log_start_offset", "The first offset in the log"),
    gauge("flushed_offset", "The offset below which all is on this node's stable storage"),
    gauge("log_bytes", "The size of the log's segments", unit="bytes"),
    gauge("disk_bytes", "The size of the file system that has the log", unit="bytes"),
    gauge("disk_free_bytes", "What a process without privileges can still write there", unit="bytes"),
    gauge(
        "uncommitted_seconds",
        "Time since records wait and the high watermark hasn't moved, 0 if none wait",
        unit="seconds",
    ),
    gauge(
        "unflushed_seconds", "Time since bytes wait and no flush has ended, 0 if none wait", unit="seconds"
    ),
    gauge("voters", "The number of voters", raft("number_of_voters")),
    gauge(
        "voters_without_address",
        "Other voters whose address this node doesn't know",
        raft("number_unknown_voter_connections"),
    ),
    gauge(
        "voters_silent",
        "Voters that this leader hasn't heard from for the fetch timeout",
        on_leader_only=True,
    ),
    gauge(
        "failures_left",
        "Voters that may still fail before the quorum has no majority",
        on_leader_only=True,
    ),
    gauge(
        "voter_lag_records",
        "Records that another voter lacked at its last fetch, all if it has never fetched from this leader",
        labels=("voter",),
        on_leader_only=True,
    ),
    gauge(
        "static_voters_ignored",
        "1 if controller.quorum.voters is configured, but the voters are in the log",
        controller("ignoredstaticvoters"),
    ),
    gauge(
        "observers",
        "The number of observers that fetch from this leader",
        raft("number_of_observers"),
        on_leader_only=True,
    ),
    gauge(
        "voter_change_in_progress",
        "1 while this leader changes the voters",
        raft("uncommitted_voter_change"),
        on_leader_only=True,
    ),
    gauge(
        "records_appended_per_second",
        "Records that this node appended as the leader, over the last 30 seconds",
        raft("append_records_rate"),
    ),
    gauge(
        "records_fetched_per_second",
        "Records that this node fetched and appended, over the last 30 seconds",
        raft("fetch_records_rate"),
    ),
    gauge(
        "commit_latency_average_seconds",
        "Mean time from append to commit of the last minute's batches on the leader, 0 without any",
        raft("commit_latency_avg", MS),
        unit="seconds",
    ),
    gauge(
        "commit_latency_max_seconds",
        "Longest time from append to commit of the last minute's batches on the leader, 0 without any",
        raft("commit_latency_max", MS),
        unit="seconds",
    ),
    gauge(
        "election_latency_average_seconds",
        "Mean time of the last minute's elections in which this node stood, 0 without any",
        raft("election_latency_avg", MS),
        unit="seconds",
    ),
    gauge(
        "election_latency_max_seconds",
        "Longest time of the last minute's elections in which this node stood, 0 without any",
        raft("election_latency_max", MS),
        unit="seconds",
    ),
    counter("records_appended", "Records that this node appended as the leader"),
    counter("records_fetched", "Records that this node fetched and appended"),
    counter("raft_requests", "Requests that this node sent to other controllers", channel("request")),
    counter("raft_responses", "Responses that this node got from other controllers", channel("response")),
    counter("raft_incoming_bytes", "Bytes of responses from other controllers", channel("incoming_byte")),
    counter("raft_outgoing_bytes", "Bytes of requests to other controllers", channel("outgoing_byte")),
    counter("raft_requests_failed", "Requests to other controllers without a response", labels=("reason",)),
    counter("log_truncated", "Times that uncommitted records were cut off", event="log truncated"),
    seconds("flush_duration", "Time of a flush of the log, as the event loop sees it"),
    seconds("commit_latency", "Time from append to commit of a batch on the leader"),
    seconds("election_latency", "Time of the elections in which this node stood"),
    seconds("no_leader", "Time without a known leader, until there was one", event="no leader"),
    seconds(
        "active_controller", "Time from the election to the active controller", event="active controller"
    ),
    seconds(
        "first_write_committed",
        "Time from the election to the commit of the first records of the active controller",
        event="first write committed",
    ),
)
CONTROLLER: Final = (
    gauge("active", "1 on the active controller, 0 on others", controller("activecontrollercount")),
    counter(
        "leader_changes",
        "Leaders that this node has seen",
        controller("newactivecontrollerscount"),
    ),
    gauge("brokers_active", "Brokers that are not fenced", controller("activebrokercount")),
    gauge("brokers_fenced", "Brokers that are fenced", controller("fencedbrokercount")),
    gauge(
        "brokers_in_controlled_shutdown",
        "Brokers that are shutting down",
        controller("controlledshutdownbrokercount"),
    ),
    gauge(
        "broker_state",
        "30 for an active broker, 20 in controlled shutdown, 10 fenced",
        bean("controller_kafkacontroller_brokerregistrationstate", ("broker",)),
        labels=("broker",),
    ),
    gauge(
        "broker_silent_seconds",
        "Time since the last heartbeat of a broker that has a session",
        controller("timesincelastheartbeatreceivedms", ("broker",), MS),
        unit="seconds",
        labels=("broker",),
        on_leader_only=True,
    ),
    gauge("topics", "Topics", controller("globaltopiccount")),
    gauge("partitions", "Partitions", controller("globalpartitioncount")),
    gauge("partitions_offline", "Partitions without a leader", controller("offlinepartitionscount")),
    gauge(
        "partitions_led_by_others",
        "Partitions whose leader isn't the preferred one",
        controller("preferredreplicaimbalancecount"),
    ),
    counter(
        "unclean_elections",
        "Leaders that this controller elected outside the ISR: records may be lost",
        Names(
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            "kafka_controller_controllerstats_uncleanleaderelectionspersec_total",
            "kafka_controller_controllerstats_uncleanleaderelectionspersec",
        ),
    ),
    gauge(
        "last_committed_offset",
        "The offset of the last committed record, -1 if unknown",
        controller("lastcommittedrecordoffset"),
    ),
    gauge(
        "last_applied_offset",
        "The offset of the last committed record that is applied",
        controller("lastappliedrecordoffset"),
    ),
    gauge(
        "last_applied_timestamp_seconds",
        "The time of the last record that was applied since this process started, 0 before the first",
        controller("lastappliedrecordtimestamp", factor=MS),
        unit="seconds",
    ),
    gauge("unapplied_records", "Committed records that aren't applied yet"),
    gauge(
        "unapplied_seconds", "Time since committed records wait to be applied, 0 if none wait", unit="seconds"
    ),
    gauge(
        "applied_lag_seconds",
        "The age of the last record that a standby has applied since it started; 0 on the active controller",
        controller("lastappliedrecordlagms", factor=MS),
        unit="seconds",
    ),
    gauge("replay_stopped", "1 while a record of a newer release stops replay", event="replay stopped"),
    gauge("ready", "1 if this controller is ready, as /readyz says"),
    gauge("check", "1 for each check of /readyz that holds, 0 for one that doesn't", labels=("check",)),
    counter(
        "internal_errors",
        "Requests and works that failed with an internal error, and records that stopped replay",
        controller("metadataerrorcount"),
    ),
    gauge(
        "finalized_level",
        "The finalized level of a feature",
        bean("server_metadataloader_finalizedlevel", ("featureName",)),
        labels=("feature",),
    ),
    gauge(
        "metadata_version",
        "The finalized level of metadata.version, 0 before the first",
        bean("server_metadataloader_currentmetadataversion"),
    ),
    gauge(
        "highest_supported_level",
        "The highest level of a feature that this release supports",
        _node("maximum_supported_level"),
        labels=("feature",),
    ),
    gauge(
        "lowest_supported_level",
        "The lowest level of a feature that this release supports",
        _node("minimum_supported_level"),
        labels=("feature",),
    ),
    counter("requests", "Requests of clients, brokers and controllers", labels=("api",)),
    counter(
        "requests_refused", "Requests that failed as a whole", labels=("error",), event="request refused"
    ),
    seconds("request_duration", "Time from a request to its response, waits included", labels=("api",)),
    counter(
        "log_warnings",
        "Warnings and errors in this controller's log, by their event",
        labels=("event",),
    ),
    counter(
        "steps",
        "Steps of the event loop: requests, responses, flushes, timers",
        controller(
            "eventqueueoperationsstartedcount",
            more=("kafka_controller_controllereventmanager_eventqueueprocessingtimems_count",),
        ),
    ),
    seconds(
        "step_duration",
        "Time of a step of the event loop: everybody else waits meanwhile",
        event="step duration",
    ),
    gauge(
        "step_duration_quantile_seconds",
        "Upper bound of so many of the last minute's steps",
        bean("controller_controllereventmanager_eventqueueprocessingtimems", ("quantile",), MS),
        unit="seconds",
        labels=("quantile",),
    ),
    seconds(
        "event_loop_delay", "Time for which what is due waits for the event loop, probed ten times a second"
    ),
    gauge(
        "event_loop_delay_quantile_seconds",
        "Upper bound of so many of the last minute's delays",
        bean("controller_controllereventmanager_eventqueuetimems", ("quantile",), MS),
        unit="seconds",
        labels=("quantile",),
    ),
    gauge(
        "event_loop_idle_ratio",
        "The share of the last minute in which the event loop used no CPU",
        raft("poll_idle_ratio_avg", more=("kafka_controller_controllereventmanager_avgidleratio",)),
    ),
)
SNAPSHOTS: Final = (
    counter("snapshots_written", "Snapshots that this node has made", event="snapshot written"),
    counter("snapshots_failed", "Snapshots that this node could not make", event="snapshot failed"),
    counter(
        "snapshots_installed", "Snapshots that this node fetched from a leader", event="snapshot installed"
    ),
    counter(
        "snapshots_loaded",
        "Snapshots from which this node has taken its state, that of the start included",
        bean("server_metadataloader_handleloadsnapshotcount"),
        event="snapshot loaded",
    ),
    gauge("snapshot_end_offset", "The end offset of the newest snapshot, 0 without one"),
    gauge(
        "snapshot_bytes",
        "The size of the last snapshot that this process made, 0 before the first",
        bean("server_snapshotemitter_latestsnapshotgeneratedbytes"),
        unit="bytes",
    ),
    gauge(
        "snapshot_age_seconds",
        "Time since this process made its last snapshot, or since it started",
        bean("server_snapshotemitter_latestsnapshotgeneratedagems", factor=MS),
        unit="seconds",
    ),
)
EXPORTERS: Final = (
    gauge(
        "exporter_position",
        "The offset up to which an exporter has exported, as far as this node knows",
        labels=("exporter",),
    ),
    gauge(
        "exporter_lag_records",
        "Committed records that an exporter hasn't exported; none on controllers that aren't active",
        labels=("exporter",),
    ),
    gauge(
        "exporter_lag_seconds",
        "Time since an exporter that lags and isn't paused last exported something; none on controllers that"
        " aren't active",
        unit="seconds",
        labels=("exporter",),
    ),
    gauge(
        "exporters_failing",
        "1 while an exporter fails or hangs",
        labels=("exporter",),
        event="exporter failing",
    ),
    gauge(
        "exporters_paused",
        "1 if an operator has paused an exporter; 0 on controllers that aren't active",
        labels=("exporter",),
    ),
    counter("exporter_failures", "Attempts to export that failed", labels=("exporter",)),
    counter(
        "exporters_restarted",
        "Times that an exporter had to begin again with a snapshot",
        labels=("exporter",),
        event="exporter restarted",
    ),
)

DEFINITIONS: Final[Mapping[str, Definition]] = {
    each.name.removeprefix(PREFIX).removesuffix("_total"): each
    for each in (*QUORUM, *CONTROLLER, *SNAPSHOTS, *EXPORTERS)
}
"""All metrics by own name, without PREFIX and ``_total``."""
