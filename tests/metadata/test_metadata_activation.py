"""What a new active controller writes first."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.activation import VersionedRecord, activation_records
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features import bootstrap_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord

ABORT: VersionedRecord = (AbortTransactionRecord("Controller failover"), 0)
BEGIN: VersionedRecord = (BeginTransactionRecord("Bootstrap records"), 0)
END: VersionedRecord = (EndTransactionRecord(), 0)


def bootstrap(release: int) -> list[VersionedRecord]:
    return list(bootstrap_records(release))


def after(*records: Message) -> MetadataState:
    state = MetadataState()
    for offset, record in enumerate(records):
        state.replay(record, offset)
    return state


def test_an_empty_log_gets_the_bootstrap_records_in_a_transaction() -> None:
    first = bootstrap(33)
    minimum: VersionedRecord = (ConfigRecord(4, "", "min.insync.replicas", "2"), 0)
    assert activation_records(MetadataState(), first, 2) == [BEGIN, *first, minimum, END]


def test_without_elr_nothing_is_said_about_min_insync_replicas() -> None:
    assert activation_records(MetadataState(), bootstrap(25), 2) == [BEGIN, *bootstrap(25), END]


def test_before_transactions_the_records_stand_alone() -> None:
    assert activation_records(MetadataState(), bootstrap(12), 1) == bootstrap(12)


def test_a_log_that_is_not_empty_needs_nothing() -> None:
    assert activation_records(after(FeatureLevelRecord("metadata.version", 33)), bootstrap(33), 1) == []


def test_an_open_transaction_is_aborted() -> None:
    state = after(FeatureLevelRecord("metadata.version", 33), BeginTransactionRecord(None))
    assert activation_records(state, bootstrap(33), 1) == [ABORT]


@pytest.mark.parametrize("written", [0, 1, 2])
def test_an_unfinished_bootstrap_is_aborted_and_begins_again(written: int) -> None:
    first = bootstrap(25)
    state = after(BeginTransactionRecord(None), *[record for record, _ in first[:written]])
    records = activation_records(state, first, 1)
    assert records == [ABORT, BEGIN, *first, END]
    for offset, (record, _) in enumerate(records, state.last_applied_offset + 1):
        state.replay(record, offset)
    assert state.features.metadata_version == state.stable_metadata_version == 25


def test_bootstrap_records_without_a_metadata_version_are_refused() -> None:
    with pytest.raises(FeatureError, match=r"no known metadata\.version, got 0"):
        activation_records(MetadataState(), [(FeatureLevelRecord("group.version", 1), 0)], 1)


def test_a_transaction_at_a_level_that_has_none_is_refused() -> None:
    state = after(FeatureLevelRecord("metadata.version", 12), BeginTransactionRecord(None))
    with pytest.raises(FeatureError, match=r"open since offset 1, but metadata\.version 3\.6-IV0 has none"):
        activation_records(state, bootstrap(12), 1)
