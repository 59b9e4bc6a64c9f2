"""Replay client quotas, by entity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraft_wire.metadata.journal import Journal
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


class ClientQuotas:
    """The quotas that are set on entities. Invariant: values are replaced as a whole and never empty."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[QuotaEntity, dict[str, float]] = {}

    @property
    def by_entity(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """The quotas; read only."""
        return self._values

    def replay(self, record: ClientQuotaRecord, offset: int) -> None:
        """Set or remove one quota of an entity."""
        entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
        values = dict(self._values.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            self._journal.put(self._values, entity, values)
        else:
            self._journal.drop(self._values, entity)
