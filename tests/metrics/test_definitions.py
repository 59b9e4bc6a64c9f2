"""The table of metrics: its names are well-formed, unambiguous, and those that dashboards read."""

from __future__ import annotations

from collections import Counter

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


def test_the_reporters_names_are_those_of_the_rules_with_an_underscore() -> None:
    raft = [
        each.names for each in DEFINITIONS.values() if each.names.a.startswith("kafka_server_raftmetrics_")
    ]
    assert len(raft) > 10
    for names in raft:
        attribute = names.a.removeprefix("kafka_server_raftmetrics_")
        assert names.b.removesuffix("_info") == f"kafka_server_raft_metrics_{attribute}"
