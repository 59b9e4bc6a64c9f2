"""Serve AlterClientQuotas (49), versions 0-1: set and remove quotas of users, client ids and IP addresses.
KIP-546.

Each entity succeeds or fails as a whole and by itself. Kafka requires ALTER_CONFIGS on the cluster. Rules:
ClientQuotaControlManager, QuotaConfig. Other than Java's controller, this one looks up no host names, and
changes nothing of an entity that is named twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import CHARS_PER_PIECE, LimitedWork, pieces_of
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.metadata.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
    quota_entity,
)
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages import alter_client_quotas_response as answered
from kraft_wire.protocol.messages import client_quota_record as recorded
from kraft_wire.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntryData,
    OpData,
)
from kraft_wire.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord

ENTITIES_PER_PIECE: Final = 500
"""The entities whose quotas are changed in one step."""
CHARS_OF_A_RECORD: Final = 100
"""A record takes as long to write as so many characters of its names."""
MOST_FRACTION: Final = 1e-6
"""A quota that should be a whole number may be off by so much."""

Largest = float | None
"""The largest value of a key whose values are whole numbers; None if they may have fractions."""

KEYS_OF_CLIENTS: Final[Mapping[str, Largest]] = {
    "producer_byte_rate": float((1 << 63) - 1),
    "consumer_byte_rate": float((1 << 63) - 1),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
KEYS_OF_ADDRESSES: Final[Mapping[str, Largest]] = {CONNECTION_CREATION_RATE: float((1 << 31) - 1)}


def handle(
    state: ControllerState, request: AlterClientQuotasRequest, version: int, context: Context
) -> Result:
    """Change the quotas that can be changed. The response has the errors of the other entities."""
    entries: dict[QuotaEntity, EntryData] = {}
    mentions: Counter[QuotaEntity] = Counter()
    for entry in request.entries:
        entity = _entity(entry)
        entries.setdefault(entity, entry)
        mentions[entity] += 1

    def alter(
        state: ControllerState, entities: Sequence[QuotaEntity]
    ) -> tuple[list[answered.EntryData], list[VersionedRecord]]:
        results: list[answered.EntryData] = []
        records: list[VersionedRecord] = []
        for entity in entities:
            try:
                if mentions[entity] > 1:
                    raise _invalid("the request names this entity more than once")
                records += _alter(state, entity, entries[entity].ops)
                results.append(_result(entity, ErrorCode.NONE, None))
            except ApiError as error:
                results.append(_result(entity, error.code, error.message))
        return results, records

    def respond(results: list[answered.EntryData]) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(entries=results)

    def chars(entity: QuotaEntity) -> int:
        names = sum(len(name or "") for _, name in entity)
        return (names + CHARS_OF_A_RECORD) * len(entries[entity].ops)

    pieces = pieces_of(entries, ENTITIES_PER_PIECE, chars, CHARS_PER_PIECE)
    work = LimitedWork(WorkKind.ALTER_QUOTAS, pieces, alter, respond, validate_only=request.validate_only)
    return work.begin(state, context)


def _entity(entry: EntryData) -> QuotaEntity:
    return quota_entity({part.entity_type: part.entity_name for part in entry.entity})


def _result(entity: QuotaEntity, code: ErrorCode, message: str | None) -> answered.EntryData:
    parts = [answered.EntityData(kind, name) for kind, name in entity]
    return answered.EntryData(error_code=int(code), error_message=message, entity=parts)


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)


def _alter(state: ControllerState, entity: QuotaEntity, ops: Sequence[OpData]) -> list[VersionedRecord]:
    """Return the records that change the quotas of one entity. Values that don't change need none."""
    keys = _keys_of(entity)
    if len({op.key for op in ops}) < len(ops):
        raise _invalid("a key is changed more than once")
    present = state.metadata.quotas.by_entity.get(entity, {})
    records: list[VersionedRecord] = []
    for op in ops:
        if op.remove:
            if op.key in present:
                records.append((_record(entity, op), 0))
        else:
            _check_value(keys, op.key, op.value)
            if present.get(op.key) != op.value:
                records.append((_record(entity, op), 0))
    return records


def _record(entity: QuotaEntity, op: OpData) -> ClientQuotaRecord:
    parts = [recorded.EntityData(kind, name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=op.key, value=0.0 if op.remove else op.value, remove=op.remove)


def _keys_of(entity: QuotaEntity) -> Mapping[str, Largest]:
    """Return the keys that an entity can have. Raises ApiError if there can't be such an entity."""
    if not entity:
        raise _invalid("the entity is empty: name a user, a client-id, both, or an ip")
    names = dict(entity)
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"there is no entity type {kind!r}, only user, client-id and ip")
        if name == "":
            raise _invalid(f"the name of the {kind} is empty; null stands for the default")
    if IP not in names:
        return KEYS_OF_CLIENTS
    if len(names) > 1:
        raise _invalid("an ip can't be combined with a user or a client-id")
    _check_address(names[IP])
    return KEYS_OF_ADDRESSES


def _check_address(name: str | None) -> None:
    if name is not None and not _is_address(name):
        raise _invalid(f"{name[:100]!r} is not an IP address, and this controller looks up no host names")


def _is_address(name: str) -> bool:
    """Whether all brokers read a text as an address: Java has no IPv4 in brackets, and a scope is of one
    machine."""
    is_in_brackets = name.startswith("[") and name.endswith("]")
    try:
        address = ip_address(name[1:-1] if is_in_brackets else name)
    except ValueError:
        return False
    return not is_in_brackets if isinstance(address, IPv4Address) else address.scope_id is None


def _check_value(keys: Mapping[str, Largest], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"there is no quota {key[:100]!r} for this entity, only {', '.join(keys)}")
    if math.isnan(value) or value <= 0:
        raise _invalid(f"{key} must be greater than 0, not {value}")
    largest = keys[key]
    if largest is None:
        return
    if value > largest:
        raise _invalid(f"{key} must be {largest:.0f} at most, not {value}")
    if value % 1 > MOST_FRACTION:
        raise _invalid(f"{key} must be a whole number, not {value}")
