"""The quotas of an address are found however it is spelt, after any replay and undo."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.metadata.quotas import IP, ClientQuotas, quota_entity, usual_spelling
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord

RATE = "connection_creation_rate"
ADDRESSES = {
    "10.0.0.1": ["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:a00:1", "[::ffff:10.0.0.1]"],
    "::1": ["::1", "[::1]", "0:0:0:0:0:0:0:1", "0::1"],
    "2001:db8::a": ["2001:db8::a", "2001:DB8::A", "2001:0db8:0::000a"],
    "": [""],
    "a host": ["a host"],
}
SPELLINGS = [spelling for spellings in ADDRESSES.values() for spelling in spellings]


def quota(name: str | None, value: float | None = 1.0, *, key: str = RATE, kind: str = IP) -> Message:
    return ClientQuotaRecord([EntityData(kind, name)], key, value or 0.0, remove=value is None)


def random_record(random: Random, state: MetadataState) -> Message:
    if random.random() < 0.1:
        if not state.in_transaction:
            return BeginTransactionRecord(None)
        return random.choice([EndTransactionRecord(), AbortTransactionRecord(None)])
    if random.random() < 0.1:
        parts = [EntityData(IP, random.choice(SPELLINGS)), EntityData("user", "u")]
        return random.choice([ClientQuotaRecord(parts, RATE, 1.0, False), ClientQuotaRecord()])
    name = random.choice([None, *SPELLINGS])
    value = random.choice([None, None, 1.0, 2.0, 3.0])
    return quota(name, value, key=random.choice([RATE, "another"]), kind=random.choice([IP, IP, IP, "user"]))


def check(quotas: ClientQuotas) -> None:
    """The index is the one that all quotas have, and so is what it finds."""
    expected: dict[str, list[str]] = {}
    for entity in quotas.by_entity:
        if len(entity) == 1 and entity[0][0] == IP and entity[0][1] is not None:
            expected.setdefault(usual_spelling(entity[0][1]), []).append(entity[0][1])
    assert quotas._spellings == {address: sorted(names) for address, names in expected.items()}
    for address, spellings in ADDRESSES.items():
        names = expected.get(address)
        values = quotas.by_entity[quota_entity({IP: min(names)})] if names else {}
        assert all(quotas.of_address(spelling) == values for spelling in spellings)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_has_one_usual_spelling(address: str) -> None:
    assert {usual_spelling(spelling) for spelling in ADDRESSES[address]} == {address}


def test_of_several_spellings_the_first_in_alphabetical_order_counts() -> None:
    state = MetadataState()
    for offset, (name, value) in enumerate([("::1", 1.0), ("0::1", 2.0), ("[::1]", 3.0)]):
        state.replay(quota(name, value), offset)
    assert state.quotas.of_address("::1") == {RATE: 2.0}
    state.replay(quota("0::1", None), 3)
    assert state.quotas.of_address("::1") == {RATE: 1.0}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_the_index_is_that_of_all_quotas(seed: int, committed: int) -> None:
    random = Random(seed)
    state = MetadataState()
    state.replay(FeatureLevelRecord("metadata.version", 33), 0)
    for offset in range(1, committed + 1):
        state.replay(random_record(random, state), offset)
    check(state.quotas)
    state.journal.recording = True
    for _ in range(4):
        for _ in range(random.randint(1, 20)):
            state.replay(random_record(random, state), state.last_applied_offset + 1)
            check(state.quotas)
        state.undo_to(random.randint(committed + 1, state.last_applied_offset + 1))
        check(state.quotas)
    if not state.in_transaction:
        loaded = MetadataState.from_snapshot((record for record, _ in snapshot_records(state)), 99)
        assert loaded.quotas.by_entity == state.quotas.by_entity
        check(loaded.quotas)
        assert loaded.quotas._spellings == state.quotas._spellings
