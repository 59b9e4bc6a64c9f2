"""The log and the snapshots of a real controller, Apache Kafka 4.4.0, in the folder java-4.4.0.

One controller and three brokers with two log directories each did this: topics were created, grown, deleted
and created again; configurations, quotas, ACLs and credentials were set and removed; partitions were
reassigned; producer ids were allocated; one broker was killed and unregistered, another shut down and started
again. The controller took a snapshot every 20 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name, verify_snapshot
from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from tests.support.partition_queries import partitions_where

FOLDER = Path(__file__).parent / "java-4.4.0"
SNAPSHOTS = sorted(FOLDER.glob("*.checkpoint"))


def log_records() -> Iterator[tuple[int, Message]]:
    batches, _ = split_batches((FOLDER / "00000000000000000000.log").read_bytes())
    for batch in batches:
        if not batch.header.is_control:
            for record in iter_records(batch):
                assert record.value is not None
                yield record.offset, decode_metadata_record(record.value)[0]


def replayed(end_offset: int) -> MetadataState:
    state = MetadataState()
    for offset, record in log_records():
        if offset < end_offset:
            state.replay(record, offset)
    return state


def snapshot(path: Path) -> tuple[SnapshotId, list[tuple[Message, int]]]:
    snapshot_id = parse_snapshot_file_name(path.name)
    assert snapshot_id is not None
    batches = [batch for batch in verify_snapshot(path.read_bytes()) if not batch.header.is_control]
    values = [record.value for batch in batches for record in iter_records(batch)]
    return snapshot_id, [decode_metadata_record(value) for value in values if value is not None]


def comparable(record: Message, version: int) -> tuple[str, int, bytes]:
    """Sort the lists that Java writes from hash maps, in no particular order."""
    if isinstance(record, (RegisterBrokerRecord, RegisterControllerRecord)):
        record.features.sort(key=lambda feature: feature.name)
        record.end_points.sort(key=lambda point: point.name)
    return record.NAME, version, record.encode(version)


def test_the_log_holds_the_events_that_were_made() -> None:
    names = Counter(record.NAME for _, record in log_records())
    assert {
        "BeginTransactionRecord",
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ClientQuotaRecord",
        "PartitionChangeRecord",
        "ProducerIdsRecord",
        "RemoveAccessControlEntryRecord",
        "RemoveTopicRecord",
        "RemoveUserScramCredentialRecord",
        "UnregisterBrokerRecord",
    } <= set(names)
    assert len(SNAPSHOTS) == 6


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_replaying_the_log_gives_the_state_of_javas_snapshot(path: Path) -> None:
    snapshot_id, records = snapshot(path)
    loaded = MetadataState.from_snapshot([record for record, _ in records], snapshot_id.end_offset - 1)
    assert canonical(loaded) == canonical(replayed(snapshot_id.end_offset))


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_our_snapshot_holds_the_same_records_as_javas(path: Path) -> None:
    snapshot_id, records = snapshot(path)
    ours = [comparable(*one) for one in snapshot_records(replayed(snapshot_id.end_offset))]
    assert Counter(ours) == Counter(comparable(*one) for one in records)


def test_the_whole_log_can_be_undone_to_any_snapshot() -> None:
    state = MetadataState()
    state.journal.recording = True
    for offset, record in log_records():
        state.replay(record, offset)
    for path in reversed(SNAPSHOTS):
        end_offset = snapshot(path)[0].end_offset
        state.undo_to(end_offset)
        assert (
            canonical(state, offsets=True)["topics"]
            == canonical(replayed(end_offset), offsets=True)["topics"]
        )
        assert canonical(state) == canonical(replayed(end_offset))
    state.undo_to(0)
    assert canonical(state) == canonical(MetadataState())


def test_some_partitions_had_eligible_leader_replicas_for_a_while() -> None:
    state, seen = MetadataState(), 0
    for offset, record in log_records():
        state.replay(record, offset)
        seen = max(seen, len(partitions_where(state, lambda one: one.elr != () or one.last_known_elr != ())))
    assert seen > 0


def test_the_final_state() -> None:
    state = replayed(10**9)
    assert sorted(state.brokers) == [11, 13] and sorted(state.controllers) == [1]
    assert all(len(broker.directories) == 2 and broker.fenced for broker in state.brokers.values())
    topics = {topic.name: topic.partition_count for topic in state.topics if not topic.name.startswith("__")}
    assert topics == {"one": 3, "two.dots": 5, "two-x": 4, "gone": 2, "compacted": 2, "late": 1}
    assert (
        partitions_where(state, lambda one: 12 in one.replicas) and state.partitions.with_isr_member(12) == []
    )
    assert state.features.metadata_version == 33 and not state.in_transaction
