"""AlterClientQuotas: the scenarios of ClientQuotaControlManagerTest, and where this controller differs."""

from __future__ import annotations

import math

import pytest

from kraft_wire.controller.clients import alter_client_quotas
from kraft_wire.controller.clients.alter_client_quotas import ENTITIES_PER_PIECE
from kraft_wire.metadata.quotas import QuotaEntity
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import alter_client_quotas_response as answered
from kraft_wire.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord
from tests.controller.controller_harness import Harness

USER: QuotaEntity = (("user", "ann"),)
USER_AND_CLIENT: QuotaEntity = (("client-id", "app"), ("user", "ann"))
IP: QuotaEntity = (("ip", "10.0.0.1"),)
PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
PERCENTAGE, MUTATIONS = "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"
INVALID = ErrorCode.INVALID_REQUEST


@pytest.fixture
def harness() -> Harness:
    return Harness()


def entry(entity: QuotaEntity, *ops: OpData, **values: float | None) -> EntryData:
    """Return an entry that sets these values; None removes one."""
    given = [OpData(key, 0.0 if value is None else value, value is None) for key, value in values.items()]
    return EntryData([EntityData(kind, name) for kind, name in entity], [*ops, *given])


def alter(
    harness: Harness, *entries: EntryData, validate_only: bool = False
) -> dict[QuotaEntity, tuple[int, str | None]]:
    """Replay the records. Returns (code, message) by entity."""
    request = AlterClientQuotasRequest(list(entries), validate_only)
    response = harness.run(alter_client_quotas, request, 1, AlterClientQuotasResponse)
    answers = {entity_of(each): (each.error_code, each.error_message) for each in response.entries}
    assert len(answers) == len(response.entries), "each entity is answered once"
    return answers


def entity_of(each: answered.EntryData) -> QuotaEntity:
    return tuple((part.entity_type, part.entity_name) for part in each.entity)


def change(harness: Harness, entity: QuotaEntity, *ops: OpData, **values: float | None) -> int:
    ((code, message),) = alter(harness, entry(entity, *ops, **values)).values()
    assert (message is None) == (code == 0)
    return code


def test_alter_and_remove(harness: Harness) -> None:
    assert change(harness, USER, producer_byte_rate=10_000.5 - 0.5, request_percentage=12.5) == 0
    assert change(harness, USER, consumer_byte_rate=7) == 0
    quotas = harness.metadata.quotas.by_entity
    assert quotas == {USER: {PRODUCE: 10_000.0, PERCENTAGE: 12.5, CONSUME: 7.0}}
    assert change(harness, USER, producer_byte_rate=None, request_percentage=13) == 0
    assert quotas == {USER: {PERCENTAGE: 13.0, CONSUME: 7.0}}
    assert change(harness, USER, request_percentage=None, consumer_byte_rate=None) == 0
    assert quotas == {}


def test_only_changes_are_written(harness: Harness) -> None:
    assert change(harness, USER, producer_byte_rate=5) == 0
    before = harness.state.next_offset
    assert change(harness, USER, producer_byte_rate=5) == 0
    assert change(harness, USER, consumer_byte_rate=None, no_such_key=None) == 0
    assert harness.state.next_offset == before


def test_a_record_names_the_parts_of_an_entity_in_javas_order(harness: Harness) -> None:
    given = entry((("user", "ann"), ("client-id", "app")), producer_byte_rate=5)
    result = harness.decide(alter_client_quotas, AlterClientQuotasRequest([given]), 1)
    ((record, version),) = result.records
    assert isinstance(record, ClientQuotaRecord) and version == 0
    assert [(part.entity_type, part.entity_name) for part in record.entity] == [
        ("client-id", "app"),
        ("user", "ann"),
    ]


@pytest.mark.parametrize(
    "entity",
    [
        USER,
        USER_AND_CLIENT,
        (("client-id", "app"),),
        (("user", None),),
        (("client-id", None), ("user", None)),
        (("client-id", None), ("user", "ann")),
    ],
)
def test_entity_types(harness: Harness, entity: QuotaEntity) -> None:
    values = {PRODUCE: 1.0, CONSUME: 2.0, PERCENTAGE: 0.5, MUTATIONS: 0.25}
    assert change(harness, entity, **values) == 0
    assert harness.metadata.quotas.by_entity == {entity: values}
    assert change(harness, entity, connection_creation_rate=3) == INVALID


@pytest.mark.parametrize("name", ["10.0.0.1", "::1", "[2001:db8::1]", None])
def test_an_ip_has_a_quota_of_its_own(harness: Harness, name: str | None) -> None:
    entity: QuotaEntity = (("ip", name),)
    assert change(harness, entity, connection_creation_rate=9) == 0
    assert harness.metadata.quotas.by_entity == {entity: {CONNECTIONS: 9.0}}
    assert change(harness, entity, producer_byte_rate=9) == INVALID


@pytest.mark.parametrize(
    ("entity", "problem"),
    [
        ((), "the entity is empty"),
        ((("group", "g"),), "no entity type 'group'"),
        ((("user", ""),), "the name of the user is empty"),
        ((("client-id", ""), ("user", "ann")), "the name of the client-id is empty"),
        ((("ip", "10.0.0.1"), ("user", "ann")), "can't be combined"),
        ((("client-id", "app"), ("ip", None)), "can't be combined"),
        ((("ip", "no.such.host.invalid"),), "is not an IP address"),
        ((("ip", "10.0.0.1/8"),), "is not an IP address"),
        ((("ip", "[10.0.0"),), "is not an IP address"),
        ((("ip", "[10.0.0.1]"),), "is not an IP address"),
        ((("ip", "fe80::1%eth0"),), "is not an IP address"),
        ((("ip", "[fe80::1%no such]"),), "is not an IP address"),
    ],
)
def test_invalid_entity_types(harness: Harness, entity: QuotaEntity, problem: str) -> None:
    ((code, message),) = alter(harness, entry(entity, producer_byte_rate=1)).values()
    assert code == INVALID and message is not None and problem in message
    assert harness.metadata.quotas.by_entity == {}


@pytest.mark.parametrize(
    ("entity", "key", "value", "is_valid"),
    [
        (USER, "no_such_key", 1.0, False),
        (USER, PRODUCE, 0.0, False),
        (USER, PRODUCE, -1.0, False),
        (USER, PRODUCE, 0.5, False),
        (USER, PRODUCE, 1_000_000.0000005, True),
        (USER, PRODUCE, 2.0**63, True),
        (USER, CONSUME, 2.0**63 * 1.001, False),
        (USER, CONSUME, math.inf, False),
        (USER, CONSUME, 1.5, False),
        (USER, PERCENTAGE, 1.5, True),
        (USER, PERCENTAGE, -0.1, False),
        (USER, MUTATIONS, 0.001, True),
        (USER, MUTATIONS, math.nan, False),
        (USER, PRODUCE, math.nan, False),
        (IP, CONNECTIONS, 2.0**31 - 1, True),
        (IP, CONNECTIONS, 2.0**31, False),
        (IP, CONNECTIONS, 0.0, False),
    ],
)
def test_validate_quota_key_value(
    harness: Harness, entity: QuotaEntity, key: str, value: float, is_valid: bool
) -> None:
    assert change(harness, entity, OpData(key, value)) == (0 if is_valid else INVALID)
    assert bool(harness.metadata.quotas.by_entity) == is_valid


def test_a_key_can_be_changed_only_once(harness: Harness) -> None:
    assert change(harness, USER, OpData(PRODUCE, 1.0), OpData(PRODUCE, 0.0, True)) == INVALID
    assert harness.metadata.quotas.by_entity == {}


def test_an_entity_that_is_named_twice_keeps_its_quotas(harness: Harness) -> None:
    twice = entry((("user", "ann"), ("client-id", "app")), producer_byte_rate=2)
    answers = alter(
        harness, entry(USER_AND_CLIENT, producer_byte_rate=1), twice, entry(USER, producer_byte_rate=3)
    )
    assert answers[USER_AND_CLIENT][0] == INVALID and answers[USER] == (0, None)
    assert harness.metadata.quotas.by_entity == {USER: {PRODUCE: 3.0}}


def test_an_entity_fails_as_a_whole_and_alone(harness: Harness) -> None:
    answers = alter(
        harness,
        entry(USER, producer_byte_rate=1, consumer_byte_rate=-1),
        entry(IP, connection_creation_rate=4),
    )
    assert [code for code, _ in answers.values()] == [INVALID, 0]
    assert harness.metadata.quotas.by_entity == {IP: {CONNECTIONS: 4.0}}


def test_validate_only_writes_nothing(harness: Harness) -> None:
    before = harness.state.next_offset
    answers = alter(
        harness,
        entry(USER, producer_byte_rate=1),
        entry(IP, connection_creation_rate=0),
        validate_only=True,
    )
    assert [code for code, _ in answers.values()] == [0, INVALID]
    assert harness.state.next_offset == before


def test_very_many_entities_are_changed_in_pieces(harness: Harness) -> None:
    entries = [
        entry((("user", f"u{number}"),), producer_byte_rate=1) for number in range(ENTITIES_PER_PIECE + 1)
    ]
    first = harness.decide(alter_client_quotas, AlterClientQuotasRequest(entries), 1)
    assert first.response is None and len(first.works) == 1
