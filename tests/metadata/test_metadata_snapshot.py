"""Replaying a snapshot builds the same state; its order is Java's, its versions follow the finalized
metadata.version."""

from __future__ import annotations

from itertools import groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.errors import ReplayError, UnwritableMetadata
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from tests.support.metadata_records import RecordScript, broker_record, partition_record, topic_record, uuid

ORDER = [
    "FeatureLevelRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "TopicRecord",
    "PartitionRecord",
    "ConfigRecord",
    "ClientQuotaRecord",
    "ProducerIdsRecord",
    "AccessControlEntryRecord",
    "UserScramCredentialRecord",
    "DelegationTokenRecord",
]


def at_level(level: int, *records: Message) -> MetadataState:
    state = MetadataState()
    for offset, record in enumerate((FeatureLevelRecord("metadata.version", level), *records)):
        state.replay(record, offset)
    return state


def through_bytes(state: MetadataState) -> list[Message]:
    encoded = [encode_metadata_record(record, version) for record, version in snapshot_records(state)]
    return [decode_metadata_record(data)[0] for data in encoded]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 150))
def test_a_snapshot_builds_the_same_state(seed: int, count: int) -> None:
    state = at_level(33, FeatureLevelRecord("eligible.leader.replicas.version", 1))
    script = RecordScript(Random(seed), transactions=False)
    for offset in range(2, count + 2):
        state.replay(script.next_for(state), offset)
    records = through_bytes(state)
    loaded = MetadataState.from_snapshot(records, state.last_applied_offset)
    assert canonical(loaded) == canonical(state)
    assert loaded.last_applied_offset == loaded.features.epoch == state.last_applied_offset
    assert through_bytes(loaded) == records
    kinds = [ORDER.index(record.NAME) for record in records if record.NAME != "PartitionRecord"]
    assert kinds == sorted(kinds)
    assert isinstance(records[0], FeatureLevelRecord) and records[0].name == "metadata.version"


def test_a_topics_partitions_follow_it() -> None:
    state = at_level(
        33,
        topic_record(2),
        partition_record(2, 1),
        partition_record(2, 0),
        topic_record(1),
        partition_record(1, 0),
    )
    names = [name for name, _ in groupby(record.NAME for record, _ in snapshot_records(state))]
    assert names == ["FeatureLevelRecord", "TopicRecord", "PartitionRecord", "TopicRecord", "PartitionRecord"]
    partitions = [r for r, _ in snapshot_records(state) if isinstance(r, PartitionRecord)]
    assert [(r.topic_id, r.partition_id) for r in partitions] == [(uuid(1), 0), (uuid(2), 0), (uuid(2), 1)]


@pytest.mark.parametrize(
    ("level", "broker", "partition"), [(7, 1, 0), (8, 2, 0), (17, 3, 1), (23, 3, 2), (30, 4, 2)]
)
def test_versions_follow_the_finalized_metadata_version(level: int, broker: int, partition: int) -> None:
    first, registration = partition_record(1, 0), broker_record(1)
    if level < 17:
        first.directories, registration.log_dirs = (), ()
    state = at_level(level, registration, topic_record(1), first)
    versions = {record.NAME: version for record, version in snapshot_records(state)}
    assert versions == {
        "FeatureLevelRecord": 0,
        "RegisterBrokerRecord": broker,
        "TopicRecord": 0,
        "PartitionRecord": partition,
    }
    assert canonical(MetadataState.from_snapshot(through_bytes(state), 9)) == canonical(state)


def test_without_the_feature_the_elr_is_left_out() -> None:
    change = PartitionChangeRecord(0, uuid(1), eligible_leader_replicas=(1,), last_known_elr=(2,))
    state = at_level(33, topic_record(1), partition_record(1, 0), change)
    record = through_bytes(state)[-1]
    assert isinstance(record, PartitionRecord)
    assert (record.eligible_leader_replicas, record.last_known_elr) == (None, None)
    state.replay(FeatureLevelRecord("eligible.leader.replicas.version", 1), 9)
    record = through_bytes(state)[-1]
    assert isinstance(record, PartitionRecord)
    assert (record.eligible_leader_replicas, record.last_known_elr) == ((1,), (2,))


def test_producer_ids_are_left_out_until_some_were_given_out() -> None:
    assert len(list(snapshot_records(at_level(33)))) == 1
    state = at_level(33, ProducerIdsRecord(1, 2, 1000))
    assert list(snapshot_records(state))[-1] == (ProducerIdsRecord(-1, -1, 1000), 0)


def registered(**fields: object) -> RegisterBrokerRecord:
    record = broker_record(1)
    record.log_dirs = ()
    for name, value in fields.items():
        setattr(record, name, value)
    return record


@pytest.mark.parametrize(
    ("level", "record", "lost"),
    [
        (7, registered(is_migrating_zk_broker=True), "migrating from ZooKeeper"),
        (16, registered(log_dirs=(uuid(1),)), "the log directories of a broker"),
        (29, registered(cordoned_log_dirs=()), "the cordoned log directories"),
        (14, RegisterControllerRecord(1), "the registration of a controller"),
        (10, UserScramCredentialRecord("u", 1, b"", b"", b"", 4096), "SCRAM credentials"),
        (13, DelegationTokenRecord(token_id="t"), "delegation tokens"),
    ],
)
def test_state_that_the_metadata_version_cannot_express_is_refused(
    level: int, record: Message, lost: str
) -> None:
    with pytest.raises(UnwritableMetadata, match=lost):
        list(snapshot_records(at_level(level, record)))


def test_directories_of_partitions_cannot_be_expressed_below_3_7_iv2() -> None:
    with pytest.raises(UnwritableMetadata, match=r"metadata.version 3\.7-IV1 would lose the directories"):
        list(snapshot_records(at_level(16, topic_record(1), partition_record(1, 0))))


def test_there_is_no_snapshot_of_an_empty_state_nor_inside_a_transaction() -> None:
    with pytest.raises(UnwritableMetadata, match=r"no metadata\.version is finalized"):
        list(snapshot_records(MetadataState()))
    with pytest.raises(UnwritableMetadata, match="open metadata transaction"):
        list(snapshot_records(at_level(33, BeginTransactionRecord(None))))


def test_a_snapshot_that_opens_a_transaction_is_refused() -> None:
    records = [FeatureLevelRecord("metadata.version", 33), BeginTransactionRecord(None)]
    with pytest.raises(
        ReplayError, match=r"BeginTransactionRecord at offset 7 .*a snapshot must not hold transactions"
    ):
        MetadataState.from_snapshot(records, 7)


def test_a_broker_loaded_from_a_snapshot_counts_as_registered_at_its_end() -> None:
    state = at_level(33, broker_record(1))
    assert state.brokers[1].registration_offset == 1
    assert MetadataState.from_snapshot(through_bytes(state), 50).brokers[1].registration_offset == 50
