"""Replay client quotas, by entity; those of IP addresses are also found by the address."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final

from kraft_wire.metadata.journal import Inverse, Journal
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type (USER, CLIENT_ID, IP) and name, sorted by type. The name None is the type's
default."""


def quota_entity(names: Mapping[str, str | None]) -> QuotaEntity:
    """Return the entity whose parts have these names, by type."""
    return tuple([(kind, names[kind]) for kind in sorted(names)])


def usual_spelling(address: str) -> str:
    """Return an IP address in its usual spelling; any other name as it is."""
    try:
        found = ip_address(address.removeprefix("[").removesuffix("]"))
    except ValueError:
        return address
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


class ClientQuotas:
    """The quotas that are set on entities. Invariants: values are replaced as a whole and never empty; the
    spellings are those of the addresses that have quotas, and in alphabetical order."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[QuotaEntity, dict[str, float]] = {}
        self._spellings: dict[str, list[str]] = {}
        """The spellings of an address in quotas. The key is the usual spelling."""

    @property
    def by_entity(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """The quotas; read only."""
        return self._values

    def of_address(self, address: str) -> Mapping[str, float]:
        """Return the quotas that an IP address has of its own; empty if there are none.

        It doesn't matter how it is spelt, here or there. If several spellings of it have quotas, those of the
        first spelling in alphabetical order apply.
        """
        if not self._spellings:
            return {}
        spellings = self._spellings.get(usual_spelling(address))
        return self._values[((IP, spellings[0]),)] if spellings else {}

    def replay(self, record: ClientQuotaRecord, offset: int) -> None:
        """Set or remove one quota of an entity."""
        entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
        before = self._values.get(entity, {})
        values = dict(before)
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            self._journal.put(self._values, entity, values)
        else:
            self._journal.drop(self._values, entity)
        name = _address_of(entity)
        if name is not None and bool(values) != bool(before):
            undo, arguments = self._add_spelling(name) if values else self._remove_spelling(name)
            if self._journal.active:
                self._journal.add(undo, *arguments)

    def _add_spelling(self, name: str) -> Inverse:
        insort(self._spellings.setdefault(usual_spelling(name), []), name)
        return self._remove_spelling, (name,)

    def _remove_spelling(self, name: str) -> Inverse:
        address = usual_spelling(name)
        spellings = self._spellings[address]
        del spellings[bisect_left(spellings, name)]
        if not spellings:
            del self._spellings[address]
        return self._add_spelling, (name,)


def _address_of(entity: QuotaEntity) -> str | None:
    """Return the address that an entity is, as it is spelt there; None for any other entity."""
    if len(entity) != 1:
        return None
    ((kind, name),) = entity
    return name if kind == IP else None
