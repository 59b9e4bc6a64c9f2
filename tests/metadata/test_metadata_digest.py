"""The digest of the state: equal for equal states, however they were built."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.digest import SLICE_RECORDS, Digester, StateDigest, digest_of
from kraft_wire.metadata.errors import UnwritableMetadata
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    RegisterControllerRecord,
)
from kraft_wire.protocol.uuid import Uuid
from tests.support.metadata_records import RecordScript, partition_record, topic_record

BROKER = 4


def of_records(*values: bytes) -> StateDigest:
    """Return the digest of a state with these configurations."""
    state = MetadataState()
    state.replay(FeatureLevelRecord("metadata.version", 33), 0)
    for offset, value in enumerate(values, 1):
        name, text = value.decode().split("=")
        state.replay(ConfigRecord(BROKER, "1", name, text), offset)
    return digest_of(state)


def played(seed: int, count: int) -> MetadataState:
    state = MetadataState()
    script = RecordScript(Random(seed), transactions=False)
    for offset in range(count):
        state.replay(script.next_for(state), offset)
    return state


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 120))
def test_a_state_from_the_log_and_one_from_a_snapshot_have_the_same_digest(seed: int, count: int) -> None:
    state = played(seed, count)
    records = [record for record, _ in snapshot_records(state)]
    assert digest_of(MetadataState.from_snapshot(records, count - 1)) == digest_of(state)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 120))
def test_one_more_record_changes_the_digest_if_it_changes_the_state(seed: int, count: int) -> None:
    before, after = played(seed, count), played(seed, count + 1)
    is_same = canonical(before) == canonical(after)
    assert (digest_of(before) == digest_of(after)) is is_same


def test_the_order_of_the_records_doesnt_matter() -> None:
    assert of_records(b"a=1", b"b=2") == of_records(b"b=2", b"a=1")


LISTENERS = [BrokerEndpoint("B", "b", 2, 0), BrokerEndpoint("A", "a", 1, 0)]
DIRECTORIES = (Uuid(b"2" * 16), Uuid(b"1" * 16))


def registered(turn: int) -> StateDigest:
    """Return the digest of a state whose lists are in one of two orders."""
    state = MetadataState()
    state.replay(FeatureLevelRecord("metadata.version", 33), 0)
    broker = RegisterBrokerRecord(
        broker_id=1, end_points=LISTENERS[::turn], log_dirs=DIRECTORIES, cordoned_log_dirs=DIRECTORIES[::turn]
    )
    controller = RegisterControllerRecord(
        controller_id=2,
        end_points=[ControllerEndpoint(at.name, at.host, at.port, 0) for at in LISTENERS[::turn]],
    )
    token = DelegationTokenRecord(owner="User:a", renewers=("User:c", "User:b")[::turn], token_id="t")
    for offset, record in enumerate((broker, controller, token), 1):
        state.replay(record, offset)
    return digest_of(state)


def test_the_order_within_lists_doesnt_matter_as_java_s_snapshots_have_another() -> None:
    assert registered(1) == registered(-1)


def test_every_value_matters() -> None:
    assert of_records(b"a=1", b"b=2").digest != of_records(b"a=1", b"b=3").digest


def test_it_has_32_bytes_and_counts_the_records() -> None:
    made = of_records(b"a=1", b"b=2")
    assert len(made.digest) == 32
    assert made.record_count == 3


def test_a_large_state_is_taken_in_slices() -> None:
    state = MetadataState()
    state.replay(FeatureLevelRecord("metadata.version", 33), 0)
    state.replay(topic_record(1), 1)
    for index in range(2 * SLICE_RECORDS):
        state.replay(partition_record(1, index), index + 2)
    digester = Digester()
    assert len(list(digester.slices(state))) == 2
    assert digester.result() == digest_of(state)


def test_an_open_transaction_has_no_digest() -> None:
    state = played(1, 10)
    state.replay(BeginTransactionRecord(), 10)
    with pytest.raises(UnwritableMetadata, match="transaction"):
        digest_of(state)
