"""Replay the registrations of brokers (rules: org.apache.kafka.controller.ClusterControlManager)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.journal import Journal
from kraft_wire.metadata.registration import Listener, VersionRange, features_of, listeners_of
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.uuid import Uuid

_FENCED_BY_CHANGE: Final[Mapping[int, bool | None]] = {1: True, 0: None, -1: False}
_SHUTDOWN_BY_CHANGE: Final[Mapping[int, bool | None]] = {1: True, 0: None}


class BrokerRegistration(msgspec.Struct, frozen=True, gc=False):
    """A broker as the metadata log has it.

    ``directories`` are its online log directories, in Java's order of ids. ``cordoned_directories`` is None
    until the broker has reported them. ``registration_offset`` is the offset of its RegisterBrokerRecord, or
    of the snapshot that it was loaded from: a broker that has read up to there knows of its own registration.
    A broker that ``is_cordoned`` has cordoned all its directories: it gets no new replicas.
    """

    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[Uuid, ...]
    cordoned_directories: tuple[Uuid, ...] | None
    registration_offset: int
    is_migrating_zk_broker: bool = False
    is_cordoned: bool = False

    def has_online_directory(self, directory: Uuid) -> bool:
        """Whether a replica in this directory can work (org.apache.kafka.common.DirectoryId.isOnline)."""
        number = int.from_bytes(directory, "big")
        if number < 2:  # migrating, or not assigned yet
            return True
        if number == 2:  # lost
            return False
        return not self.directories or directory in self.directories


class Brokers:
    """Applies the records about brokers to ``table``.

    ``changed_end`` is the offset after the last record that changed it.
    """

    def __init__(self, journal: Journal) -> None:
        self.changed_end = 0
        self._journal = journal
        self.table: dict[int, BrokerRegistration] = {}

    def register(self, record: RegisterBrokerRecord, offset: int) -> None:
        """Register a broker, or replace its registration."""
        directories, cordoned = in_java_order(record.log_dirs), record.cordoned_log_dirs
        registration = BrokerRegistration(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            listeners_of(record.end_points),
            features_of(record.features),
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            directories,
            None if cordoned is None else tuple(cordoned),
            offset,
            record.is_migrating_zk_broker,
            _are_all_cordoned(directories, cordoned),
        )
        self._put(registration)

    def unregister(self, record: UnregisterBrokerRecord, offset: int) -> None:
        """Remove a broker's registration."""
        self._journal.drop(self.table, self._registered(record.broker_id, record.broker_epoch).id)
        self.changed_end = offset + 1

    def fence(self, record: FenceBrokerRecord, offset: int) -> None:
        """Fence a broker by the legacy record."""
        self._change(self._registered(record.id, record.epoch), fenced=True)

    def unfence(self, record: UnfenceBrokerRecord, offset: int) -> None:
        """Unfence a broker by the legacy record."""
        self._change(self._registered(record.id, record.epoch), fenced=False)

    def change(self, record: BrokerRegistrationChangeRecord, offset: int) -> None:
        """Change parts of a registration. Empty directories, or null cordoned ones, stay as they are."""
        old = self._registered(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        if record.fenced not in _FENCED_BY_CHANGE:
            raise Contradiction(f"fenced is {record.fenced}, must be -1, 0 or 1")
        if record.in_controlled_shutdown not in _SHUTDOWN_BY_CHANGE:
            raise Contradiction(f"in-controlled-shutdown is {record.in_controlled_shutdown}, must be 0 or 1")
        directories = in_java_order(record.log_dirs) or old.directories
        cordoned = old.cordoned_directories if cordoned is None else tuple(cordoned)
        self._change(
            old,
            fenced=_FENCED_BY_CHANGE[record.fenced],
            in_controlled_shutdown=_SHUTDOWN_BY_CHANGE[record.in_controlled_shutdown],
            directories=directories,
            cordoned_directories=cordoned,
            is_cordoned=_are_all_cordoned(directories, cordoned),
        )

    def _change(self, old: BrokerRegistration, **changes: object) -> None:
        """Change the fields that aren't None."""
        new = msgspec.structs.replace(
            old, **{name: value for name, value in changes.items() if value is not None}
        )
        if new != old:
            self._put(new)

    def _put(self, registration: BrokerRegistration) -> None:
        self._journal.put(self.table, registration.id, registration)
        self.changed_end = self._journal.offset + 1

    def _registered(self, broker_id: int, epoch: int) -> BrokerRegistration:
        registration = self.table.get(broker_id)
        if registration is None:
            raise Contradiction(f"broker {broker_id} is not registered")
        if registration.epoch != epoch:
            raise Contradiction(
                f"broker {broker_id} is registered with epoch {registration.epoch}, not {epoch}"
            )
        return registration


def _are_all_cordoned(directories: Sequence[Uuid], cordoned: Sequence[Uuid] | None) -> bool:
    return bool(directories) and cordoned is not None and set(directories) <= set(cordoned)


def in_java_order(directories: Iterable[Uuid]) -> tuple[Uuid, ...]:
    """Return ids sorted as in Java, which compares them as two signed halves."""
    return tuple(sorted(directories, key=_signed_halves))


def _signed_halves(uuid: Uuid) -> tuple[int, int]:
    high, low = struct.unpack(">qq", uuid)
    return high, low
