"""The rows of the screens of ``kraft-wire describe``, for states that the recorded log doesn't have."""

from __future__ import annotations

import json

import pytest

from kraft_wire.cli.describe.brokers import broker_rows
from kraft_wire.cli.describe.configs import config_rows
from kraft_wire.cli.describe.features import feature_rows
from kraft_wire.cli.describe.overview import overview_of
from kraft_wire.cli.describe.quorum import controller_rows, voter_ids
from kraft_wire.cli.describe.reassignments import reassignment_rows
from kraft_wire.cli.describe.screens import json_of, text_of
from kraft_wire.cli.describe.topics import PartitionRow, partition_rows, topic_rows
from kraft_wire.logs.metadata_at import MetadataThen, QuorumThen
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.protocol.messages.register_broker_record import BrokerFeature
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.raft.membership import voters as raft_voters
from tests.support.metadata_records import broker_record, partition_record, topic_record, uuid


def then(*records: Message) -> MetadataThen:
    state = MetadataState()
    for offset, record in enumerate(records):
        state.replay(record, offset)
    return MetadataThen("one", state, QuorumThen(), None, len(records) - 1, 1, 0)


@pytest.mark.parametrize(
    ("fenced", "shuts_down", "state"),
    [
        (-1, 0, "active"),
        (-1, 1, "in controlled shutdown"),
        (0, 0, "fenced"),
        (0, 1, "fenced"),
    ],
)
def test_the_state_of_a_broker(fenced: int, shuts_down: int, state: str) -> None:
    change = BrokerRegistrationChangeRecord(1, 0, fenced, shuts_down, (), None)
    assert broker_rows(then(broker_record(1), change))[0].state == state


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (ConfigRecord(2, "t", "retention.ms", "5"), "5"),
        (ConfigRecord(2, "t", "no.such.key", "5"), None),
        (ConfigRecord(4, "", "log.cleaner.threads", "2"), "2"),
        (ConfigRecord(4, "1", "listener.name.tls.ssl.keystore.password", "secret"), None),
        (ConfigRecord(4, "1", "no.such.key", "secret"), None),
        (ConfigRecord(8, "1", "org.apache.kafka", "DEBUG"), "DEBUG"),
        (ConfigRecord(32, "g", "consumer.session.timeout.ms", "7"), "7"),
        (ConfigRecord(77, "x", "y", "secret"), None),
    ],
)
def test_a_value_that_may_be_a_secret_is_hidden(record: ConfigRecord, shown: str | None) -> None:
    (row,) = config_rows(then(record))
    assert (row.key, row.value, row.hidden) == (record.name, shown, shown is None)


def test_configs_are_sorted_and_those_of_all_brokers_have_no_name() -> None:
    rows = config_rows(
        then(
            ConfigRecord(77, "x", "y", "1"),
            ConfigRecord(4, "1", "log.cleaner.threads", "2"),
            ConfigRecord(4, "", "log.cleaner.threads", "3"),
            ConfigRecord(4, "", "background.threads", "4"),
            ConfigRecord(2, "t", "retention.ms", "5"),
        )
    )
    assert [(row.resource, row.name, row.key) for row in rows] == [
        ("topic", "t", "retention.ms"),
        ("all brokers", None, "background.threads"),
        ("all brokers", None, "log.cleaner.threads"),
        ("broker", "1", "log.cleaner.threads"),
        ("type 77", "x", "y"),
    ]


def test_a_broker_s_row_says_what_it_leads_and_where_it_stores() -> None:
    cordoned = BrokerRegistrationChangeRecord(2, 5, -1, 0, (), (uuid(102),))
    found = then(
        broker_record(1), broker_record(2, 5), cordoned, topic_record(1), partition_record(1, 0, (2, 1))
    )
    first, second = broker_rows(found)
    assert (first.leads, first.directories, first.cordoned) == (0, [str(uuid(101))], None)
    assert (second.leads, second.directories, second.cordoned) == (1, [str(uuid(102))], [str(uuid(102))])
    assert (second.epoch, second.rack, second.endpoints) == (5, None, ["PLAINTEXT://localhost:9094"])


def test_a_partition_s_row_has_all_lists_and_no_leader_is_null() -> None:
    record = partition_record(1, 3, (1, 2, 3))
    record.isr, record.leader, record.leader_epoch, record.partition_epoch = (), -1, 7, 8
    record.eligible_leader_replicas, record.last_known_elr = (2,), (3,)
    record.adding_replicas, record.removing_replicas = (3,), (1,)
    found = then(FeatureLevelRecord("metadata.version", 33), topic_record(1, "t"), record)
    (row,) = partition_rows(found, ["t"])
    assert row == PartitionRow("t", 3, None, 7, 8, [1, 2, 3], [], [2], [3], [3], [1])
    (moving,) = reassignment_rows(found)
    assert (moving.target, moving.adding, moving.caught_up, moving.removing) == ([2, 3], [3], [], [1])
    record.isr = (3,)
    (moving,) = reassignment_rows(then(topic_record(1, "t"), record))
    assert moving.caught_up == [3]


def test_the_overview_counts_brokers_by_state() -> None:
    found = then(
        broker_record(1),
        broker_record(2, 1),
        broker_record(3, 2),
        BrokerRegistrationChangeRecord(2, 1, -1, 1, (), None),
    )
    found.quorum.kraft_version, found.quorum.leader_id = 1, 9
    counts = overview_of(found)
    assert (counts.brokers, counts.fenced, counts.in_controlled_shutdown) == (3, 2, 1)
    assert (counts.kraft_version, counts.leader, counts.metadata_version) == (1, 9, None)


def test_json_says_whether_all_is_committed_and_when_it_was() -> None:
    found = then(topic_record(1))
    found.time_ms = 1_000
    shown = json.loads(json_of(found, None, ()))
    assert (shown["offset"], shown["epoch"], shown["time_ms"], shown["committed"]) == (0, 1, 1_000, False)
    found.committed_end_offset = 1
    assert json.loads(json_of(found, None, ()))["committed"] is True
    assert "which may not be committed" not in list(text_of(found, None, ()))[1]


def test_an_empty_log_and_an_impossible_time_are_shown() -> None:
    empty = MetadataThen("one", MetadataState(), QuorumThen(), None)
    lines = list(text_of(empty, None, ()))
    assert lines[1] == "As of             the beginning: the log is empty"
    assert "Leader            none yet" in lines
    assert list(text_of(empty, "quorum", ()))[-1] == "No controllers."
    found = then(topic_record(1))
    found.time_ms = 1 << 62
    assert f"{1 << 62} ms after 1970" in list(text_of(found, None, ()))[1]


def test_a_name_that_is_not_printable_does_not_move_the_columns() -> None:
    lines = list(text_of(then(topic_record(1, "a\x1b[0m"), topic_record(2, "b")), "topics", ()))
    assert lines[-2].startswith(r"a\x1b[0m  ") and lines[-1].startswith("b         ")


def test_without_voters_in_the_log_nobody_is_called_an_observer() -> None:
    found = then(RegisterControllerRecord(4, uuid(1), False, [], []))
    assert [row.role for row in controller_rows(found)] == ["unknown"]


def test_levels_are_those_that_all_nodes_support() -> None:
    old, new = broker_record(1), broker_record(2, 1)
    old.features = [BrokerFeature("metadata.version", 7, 25)]
    new.features = [BrokerFeature("metadata.version", 21, 33), BrokerFeature("group.version", 0, 1)]
    rows = {
        row.feature: row for row in feature_rows(then(FeatureLevelRecord("metadata.version", 22), old, new))
    }
    assert (rows["metadata.version"].lowest, rows["metadata.version"].highest) == (21, 25)
    assert (rows["group.version"].lowest, rows["group.version"].highest) == (0, 0)


def test_levels_are_those_that_controllers_support_too() -> None:
    controller = RegisterControllerRecord(
        4, uuid(1), False, [], [ControllerFeature("metadata.version", 22, 30)]
    )
    rows = {row.feature: row for row in feature_rows(then(broker_record(1), controller))}
    assert (rows["metadata.version"].lowest, rows["metadata.version"].highest) == (22, 30)


def test_without_nodes_no_level_is_supported() -> None:
    (row, _) = feature_rows(then(FeatureLevelRecord("group.version", 1)))
    assert (row.feature, row.finalized, row.lowest, row.highest) == ("group.version", 1, None, None)


def test_levels_that_suit_no_node_are_null() -> None:
    old, new = broker_record(1), broker_record(2, 1)
    old.features, new.features = [BrokerFeature("x", 1, 2)], [BrokerFeature("x", 3, 4)]
    (row,) = (row for row in feature_rows(then(old, new)) if row.feature == "x")
    assert (row.finalized, row.lowest, row.highest) == (0, None, None)


def test_a_static_quorum_has_the_voters_of_its_election() -> None:
    found = then(
        RegisterControllerRecord(4, uuid(1), False, [ControllerEndpoint("CONTROLLER", "h", 9093, 0)], [])
    )
    found.quorum.take(LeaderChangeMessage(leader_id=2, voters=[Voter(1), Voter(2)]))
    assert voter_ids(found) == [1, 2]
    assert [(row.controller, row.role, row.registered, row.endpoints) for row in controller_rows(found)] == [
        (1, "voter", False, []),
        (2, "leader", False, []),
        (4, "observer", True, ["CONTROLLER://h:9093"]),
    ]


def test_a_removed_voter_that_is_not_registered_has_no_row() -> None:
    """The election was before its removal."""
    found = then()
    found.quorum.voters = tuple(raft_voters.Voter(raft_voters.ReplicaKey(id, uuid(id))) for id in (1, 2))
    found.quorum.take(LeaderChangeMessage(leader_id=1, voters=[Voter(1), Voter(2), Voter(3)]))
    assert [(row.controller, row.role) for row in controller_rows(found)] == [(1, "leader"), (2, "voter")]


def test_the_partitions_of_a_topic_are_counted() -> None:
    without_leader = partition_record(1, 1)
    without_leader.leader, without_leader.isr = -1, (2,)
    moving = partition_record(1, 2, (0, 1, 2, 3))
    moving.adding_replicas = (3,)
    (row,) = topic_rows(then(topic_record(1), partition_record(1, 0), without_leader, moving))
    assert (row.partitions, row.replicas) == (3, 4)
    assert (row.without_leader, row.under_replicated, row.reassigning) == (1, 1, 1)


def test_an_open_transaction_is_named() -> None:
    found = then(FeatureLevelRecord("metadata.version", 33), BeginTransactionRecord(None), topic_record(1))
    assert "Open transaction  since offset 1: its changes may be undone" in list(text_of(found, "topics", ()))
