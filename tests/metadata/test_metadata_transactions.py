"""Metadata transactions (KIP-868): ended ones stay, aborted ones leave no trace, both may be speculative."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from tests.support.metadata_records import partition_record, topic_record, uuid

BEGIN, END, ABORT = BeginTransactionRecord("t"), EndTransactionRecord(), AbortTransactionRecord("r")
CHANGES: tuple[Message, ...] = (
    topic_record(2),
    partition_record(2, 0),
    RemoveTopicRecord(uuid(1)),
    ConfigRecord(4, "", "x", "2"),
)


def before(*, recording: bool = False) -> MetadataState:
    state = MetadataState()
    for record in (topic_record(1), partition_record(1, 0), ConfigRecord(4, "", "x", "1")):
        state.replay(record, state.last_applied_offset + 1)
    state.journal.recording = recording
    return state


def replay(state: MetadataState, *records: Message) -> MetadataState:
    for record in records:
        state.replay(record, state.last_applied_offset + 1)
    return state


def test_an_open_transaction_holds_the_stable_offset_back() -> None:
    state = replay(before(), NoOpRecord(), BEGIN, *CHANGES)
    assert state.transaction_start == 4
    assert (state.last_applied_offset, state.last_stable_offset) == (8, 3)
    replay(state, END)
    assert state.in_transaction is False
    assert (state.last_applied_offset, state.last_stable_offset) == (9, 9)


@pytest.mark.parametrize("recording", [False, True])
def test_an_ended_transaction_is_as_if_its_records_stood_alone(recording: bool) -> None:
    state = replay(before(recording=recording), BEGIN, *CHANGES, END)
    assert fingerprint(state) == fingerprint(replay(before(), *CHANGES))


@pytest.mark.parametrize("recording", [False, True])
def test_an_aborted_transaction_leaves_no_trace(recording: bool) -> None:
    state = replay(before(recording=recording), BEGIN, *CHANGES, ABORT)
    assert fingerprint(state) == fingerprint(before())
    assert not state.in_transaction and state.last_stable_offset == 8
    if not recording:
        assert len(state.journal) == 0


def test_an_abort_that_is_never_committed_gives_the_transaction_back() -> None:
    state = before(recording=True)
    replay(state, BEGIN, *CHANGES)
    inside = fingerprint(state, offsets=True)
    replay(state, ABORT, topic_record(3))
    state.undo_to(8)
    assert fingerprint(state, offsets=True) == inside and state.transaction_start == 3
    replay(state, ABORT)
    assert fingerprint(state) == fingerprint(before())
    state.undo_to(3)
    assert fingerprint(state, offsets=True) == fingerprint(before(), offsets=True)


def test_a_new_controller_can_abort_the_transaction_of_the_previous_one() -> None:
    state = replay(before(), BEGIN, *CHANGES)
    inside = fingerprint(state, offsets=True)
    state.journal.recording = True
    state.forget_below(8)
    replay(state, ABORT)
    assert fingerprint(state) == fingerprint(before())
    state.undo_to(8)
    assert fingerprint(state, offsets=True) == inside


def test_inverses_are_kept_until_the_end_of_the_transaction_is_committed() -> None:
    state = replay(before(recording=True), BEGIN, *CHANGES, END)
    state.forget_below(8)
    state.undo_to(8)
    assert state.in_transaction
    replay(state, ABORT)
    assert fingerprint(state) == fingerprint(before())


def test_inverses_are_forgotten_once_the_end_of_the_transaction_is_committed() -> None:
    state = replay(before(recording=True), BEGIN, *CHANGES, END, NoOpRecord())
    state.forget_below(9)
    assert len(state.journal) == 0


def test_the_metadata_version_before_the_transaction_is_the_stable_one() -> None:
    state = replay(MetadataState(), BEGIN, FeatureLevelRecord("metadata.version", 33))
    assert (state.features.metadata_version, state.stable_metadata_version) == (33, 0)
    replay(state, END)
    assert state.stable_metadata_version == 33


@pytest.mark.parametrize(
    ("records", "what"),
    [
        ([BEGIN, BEGIN], "began at offset 3 is still open"),
        ([END], "no transaction is open"),
        ([ABORT], "no transaction is open"),
        ([BEGIN, END, ABORT], "no transaction is open"),
    ],
)
def test_transactions_neither_nest_nor_end_twice(records: list[Message], what: str) -> None:
    *first, last = records
    state = replay(before(), *first)
    with pytest.raises(ReplayError, match=what):
        replay(state, last)
