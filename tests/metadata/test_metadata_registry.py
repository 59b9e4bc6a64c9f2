"""Every metadata record type has exactly one handler; other records are refused."""

from __future__ import annotations

import gc
import weakref

import pytest

from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.registry import METADATA_RECORD_KEYS, metadata_record_class
from kraft_wire.protocol.uuid import Uuid


def test_every_metadata_record_type_has_exactly_one_handler() -> None:
    handled = [record_type for record_type, _ in MetadataState().registry()]
    generated = [metadata_record_class(key) for key in METADATA_RECORD_KEYS]
    assert sorted(one.NAME for one in handled) == sorted(one.NAME for one in generated)
    assert len(set(handled)) == len(handled) == 27


def test_a_control_record_is_no_metadata_record() -> None:
    with pytest.raises(ReplayError, match="LeaderChangeMessage at offset 3 cannot be applied"):
        MetadataState().replay(LeaderChangeMessage(), 3)


def test_offsets_do_not_go_back() -> None:
    state = MetadataState()
    state.replay(NoOpRecord(), 4)
    state.replay(NoOpRecord(), 9)
    assert state.last_applied_offset == 9
    with pytest.raises(ReplayError, match="offset 9 is already applied"):
        state.replay(NoOpRecord(), 8)


def test_a_refused_record_names_itself_and_its_offset() -> None:
    state = MetadataState()
    state.replay(TopicRecord("a", Uuid.parse("AAAAAAAAAAAAAAAAAAAABQ")), 1)
    with pytest.raises(ReplayError) as caught:
        state.replay(TopicRecord("a", Uuid.parse("AAAAAAAAAAAAAAAAAAAABw")), 2)
    assert (caught.value.record_type, caught.value.offset) == ("TopicRecord", 2)
    assert "AAAAAAAAAAAAAAAAAAAABQ" in caught.value.what
    assert state.last_applied_offset == 1


def test_a_state_is_freed_with_its_last_user() -> None:
    """It may take hundreds of megabytes, and garbage collections leave out what existed at the start."""
    state = MetadataState()
    state.replay(TopicRecord(name="a", topic_id=Uuid(bytes(range(16)))), 0)
    state.forget_below(1)
    reference = weakref.ref(state.partitions)
    gc.disable()
    try:
        del state
        assert reference() is None
    finally:
        gc.enable()
