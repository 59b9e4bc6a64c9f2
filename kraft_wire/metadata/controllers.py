"""Replay the registrations of controllers (KIP-919)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.journal import Journal
from kraft_wire.metadata.registration import Listener, VersionRange, features_of, listeners_of
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.uuid import Uuid


class ControllerRegistration(msgspec.Struct, frozen=True, gc=False):
    """A controller as the metadata log has it."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    features: Mapping[str, VersionRange]


class Controllers:
    """Applies the records about controllers to ``table``.

    ``changed_end`` is the offset after the last record that changed it.
    """

    def __init__(self, journal: Journal) -> None:
        self.changed_end = 0
        self._journal = journal
        self.table: dict[int, ControllerRegistration] = {}

    def register(self, record: RegisterControllerRecord, offset: int) -> None:
        """Register a controller. An earlier registration of the same id is replaced."""
        registration = ControllerRegistration(
            record.controller_id,
            record.incarnation_id,
            record.zk_migration_ready,
            listeners_of(record.end_points),
            features_of(record.features),
        )
        self._journal.put(self.table, registration.id, registration)
        self.changed_end = offset + 1

    def unregister(self, record: UnregisterControllerRecord, offset: int) -> None:
        """Remove a controller's registration."""
        if record.controller_id not in self.table:
            raise Contradiction(f"controller {record.controller_id} is not registered")
        self._journal.drop(self.table, record.controller_id)
        self.changed_end = offset + 1
