"""Replay access control entries."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraft_wire.protocol.uuid import Uuid


class Acl(msgspec.Struct, frozen=True, gc=False):
    """An access control entry. Types, operation and permission are the numbers of
    org.apache.kafka.common.acl."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class Acls:
    """All entries by id."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._table: dict[Uuid, Acl] = {}

    @property
    def by_id(self) -> Mapping[Uuid, Acl]:
        """The entries; read only."""
        return self._table

    def replay(self, record: AccessControlEntryRecord, offset: int) -> None:
        """Add an entry."""
        acl = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self._journal.put(self._table, record.id, acl)

    def replay_remove(self, record: RemoveAccessControlEntryRecord, offset: int) -> None:
        """Remove an entry."""
        if record.id not in self._table:
            raise Contradiction(f"there is no ACL with id {record.id}")
        self._journal.drop(self._table, record.id)
