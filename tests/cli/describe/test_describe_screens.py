"""The rows of the screens of ``kraft-wire describe``, for states that the recorded log doesn't have."""

from __future__ import annotations

import pytest

from kraft_wire.cli.describe.brokers import broker_rows
from kraft_wire.cli.describe.configs import HIDDEN, config_rows
from kraft_wire.cli.describe.features import feature_rows
from kraft_wire.cli.describe.quorum import controller_rows, voter_ids
from kraft_wire.cli.describe.screens import text_of
from kraft_wire.cli.describe.topics import topic_rows
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
    RegisterControllerRecord,
)
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
        (ConfigRecord(2, "t", "no.such.key", "5"), HIDDEN),
        (ConfigRecord(4, "", "log.cleaner.threads", "2"), "2"),
        (ConfigRecord(4, "1", "listener.name.tls.ssl.keystore.password", "secret"), HIDDEN),
        (ConfigRecord(4, "1", "no.such.key", "secret"), HIDDEN),
        (ConfigRecord(8, "1", "org.apache.kafka", "DEBUG"), "DEBUG"),
        (ConfigRecord(32, "g", "consumer.session.timeout.ms", "7"), "7"),
        (ConfigRecord(77, "x", "y", "secret"), HIDDEN),
    ],
)
def test_a_value_that_may_be_a_secret_is_hidden(record: ConfigRecord, shown: str) -> None:
    (row,) = config_rows(then(record))
    assert (row.key, row.value) == (record.name, shown)


def test_levels_are_those_that_all_nodes_support() -> None:
    old, new = broker_record(1), broker_record(2, 1)
    old.features = [BrokerFeature("metadata.version", 7, 25)]
    new.features = [BrokerFeature("metadata.version", 21, 33), BrokerFeature("group.version", 0, 1)]
    rows = {
        row.feature: row for row in feature_rows(then(FeatureLevelRecord("metadata.version", 22), old, new))
    }
    assert (rows["metadata.version"].lowest, rows["metadata.version"].highest) == (21, 25)
    assert (rows["group.version"].lowest, rows["group.version"].highest) == (0, 0)


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
