"""The table of metrics: its names are well-formed, unambiguous, and those that dashboards read."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from kraft_wire.metrics.definition import PREFIX, Definition, Kind
from kraft_wire.metrics.definitions import DEFINITIONS

STRIMZI = [
    f"kafka_server_raftmetrics_{name}"
    for name in (
        "current_state",
        "current_leader",
        "current_vote",
        "current_epoch",
        "high_watermark",
        "log_end_offset",
        "append_records_rate",
        "fetch_records_rate",
        "commit_latency_avg",
    )
] + [
    "kafka_server_raftchannelmetrics_incoming_byte_total",
    "kafka_server_raftchannelmetrics_outgoing_byte_total",
    "kafka_server_raftchannelmetrics_request_total",
    "kafka_server_raftchannelmetrics_response_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
]
"""The names that Strimzi's KRaft dashboard reads, except process_open_fds."""

KAFKA_BEANS = {
    "controller_kafkacontroller": (
        "ActiveBrokerCount ActiveControllerCount ControlledShutdownBrokerCount"
        " EventQueueOperationsStartedCount EventQueueOperationsTimedOutCount FencedBrokerCount"
        " GlobalTopicCount GlobalPartitionCount IgnoredStaticVoters LastAppliedRecordOffset"
        " LastAppliedRecordTimestamp LastAppliedRecordLagMs LastCommittedRecordOffset"
        " MetadataErrorCount NewActiveControllersCount OfflinePartitionsCount"
        " PreferredReplicaImbalanceCount TimedOutBrokerHeartbeatCount BrokerRegistrationState"
        " TimeSinceLastHeartbeatReceivedMs"
    ),
    "controller_controllereventmanager": "AvgIdleRatio EventQueueTimeMs EventQueueProcessingTimeMs",
    "controller_controllerstats": "UncleanLeaderElectionsPerSec ElectionFromEligibleLeaderReplicasPerSec",
    "server_metadataloader": (
        "CurrentControllerId CurrentMetadataVersion HandleLoadSnapshotCount FinalizedLevel"
    ),
    "server_snapshotemitter": "LatestSnapshotGeneratedBytes LatestSnapshotGeneratedAgeMs",
    "server_raft_metrics": (
        "current-state_info current-leader current-vote current-vote-directory-id_info current-epoch"
        " high-watermark log-end-offset log-end-epoch number-of-voters number-of-observers"
        " number-unknown-voter-connections uncommitted-voter-change commit-latency-avg commit-latency-max"
        " election-latency-avg election-latency-max append-records-rate fetch-records-rate"
        " poll-idle-ratio-avg"
    ),
    "server_node_metrics": "maximum-supported-level minimum-supported-level",
}
"""The metrics of a live controller of Kafka 4.4.0, without those of its JVM, as dialect B or C has them."""

EACH = pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)


def names_of(definition: Definition) -> set[str]:
    return {definition.name, *definition.names.all}


@EACH
def test_a_name_has_its_unit_and_its_kind(definition: Definition) -> None:
    assert definition.name.startswith(PREFIX)
    assert definition.name.endswith(definition.unit)
    assert definition.name.endswith("_total") == (definition.kind is Kind.COUNTER)
    assert definition.help


def test_no_two_metrics_have_a_name_in_common() -> None:
    names = Counter(name for definition in DEFINITIONS.values() for name in names_of(definition))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_strimzi_dashboard_finds_what_it_reads() -> None:
    assert [name for name in STRIMZI if name not in {each.names.a for each in DEFINITIONS.values()}] == []


def test_every_metric_of_kafkas_controller_is_served_or_said_to_be_missing() -> None:
    served = {name for each in DEFINITIONS.values() for name in each.names.all}
    wanted = {
        f"kafka_{bean}_{name.lower().replace('-', '_')}"
        for bean, names in KAFKA_BEANS.items()
        for name in names.split()
    }
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    table = page.split("Three of Kafka's metrics are missing")[1].split("Differences")[0]
    missing = {name.lower() for name in re.findall(r"^\| `(kafka_\w+)", table, re.MULTILINE)}
    assert wanted - served == missing
    assert len(missing) == 3


def test_the_reporters_names_are_those_of_the_rules_with_an_underscore() -> None:
    raft = [
        each.names for each in DEFINITIONS.values() if each.names.a.startswith("kafka_server_raftmetrics_")
    ]
    assert len(raft) > 10
    for names in raft:
        attribute = names.a.removeprefix("kafka_server_raftmetrics_")
        assert names.b.removesuffix("_info") == f"kafka_server_raft_metrics_{attribute}"
