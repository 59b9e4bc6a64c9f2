"""Decide on a change of a broker's state: the broker's own record, and those of its partitions.

The order of the records is Kafka's (ReplicationControlManager.handleBroker*): partitions are moved off a
broker before it is fenced, and onto it after it is unfenced. Partitions are changed by works: the first piece
is decided at once, and most clusters need no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kraft_wire.controller.brokers.leaving import BrokerLeaving
from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.records import VersionedRecord, joined
from kraft_wire.controller.decision.sessions import SessionChange, ShutdownBegun, ShutdownWaits
from kraft_wire.controller.decision.work import Piece, Work, WorkKey, WorkKind
from kraft_wire.controller.partitions.election_work import ElectionWork
from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration

FENCE: Final = 1
UNFENCE: Final = -1
IN_CONTROLLED_SHUTDOWN: Final = 1


class BrokerChange(msgspec.Struct, frozen=True):
    """The beginning of a change: what is decided now, and the work that is left."""

    records: Sequence[VersionedRecord] = ()
    session_changes: Sequence[SessionChange] = ()
    works: tuple[Work, ...] = ()


def begin(
    work: Work, state: ControllerState, context: Context, before: VersionedRecord | None = None
) -> BrokerChange:
    """Decide the first piece of a work, after a record that comes ``before`` it."""
    piece = work.decide(state, context)
    records = piece.records if before is None else joined([before], piece.records)
    return BrokerChange(records, piece.session_changes, piece.rest_of(work))


def fence(state: ControllerState, broker: BrokerRegistration, context: Context) -> BrokerChange:
    """Remove the broker from every ISR, elect other leaders and fence it.

    Nothing changes if the broker is fenced already, or is being fenced.
    """
    if broker.fenced or state.is_being_fenced(broker.id):
        return BrokerChange()

    def close(state: ControllerState, context: Context, count: int) -> Piece:
        now = state.metadata.brokers.get(broker.id)
        if now is None or now.epoch != broker.epoch or now.fenced:
            return Piece((), is_last=True)
        change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
        return Piece([(change, 0)], is_last=True)

    return begin(BrokerLeaving(WorkKind.FENCE, broker.id, close), state, context)


def unfence(state: ControllerState, broker: BrokerRegistration, context: Context) -> BrokerChange:
    """Unfence the broker, then elect it for partitions that have no leader."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    work = ElectionWork(WorkKey(WorkKind.UNFENCE, broker.id), Election.ONLINE, arriving=(broker.id,))
    return begin(work, state, context, before=(change, 0))


def shut_down_gradually(state: ControllerState, broker: BrokerRegistration, context: Context) -> BrokerChange:
    """Begin or continue a controlled shutdown: move the broker's leaderships to other brokers.

    The broker may stop when all others have applied the last of the records.
    """
    if state.is_in_work(WorkKind.SHUT_DOWN, broker.id):
        return BrokerChange()

    def close(state: ControllerState, context: Context, count: int) -> Piece:
        return Piece((), True, [ShutdownWaits(broker.id, state.next_offset + count - 1)])

    before: VersionedRecord | None = None
    if not broker.in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
        )
        before = change, 1
    begun = begin(BrokerLeaving(WorkKind.SHUT_DOWN, broker.id, close), state, context, before)
    offset = state.next_offset + len(begun.records) - 1
    return BrokerChange(begun.records, [ShutdownBegun(broker.id, offset)], begun.works)


def take_directories_offline(
    state: ControllerState, broker: BrokerRegistration, offline: Sequence[Uuid], context: Context
) -> BrokerChange:
    """Remove failed log directories from the registration, and the replicas in them from their ISRs."""
    own = frozenset(broker.directories)
    lost = [directory for directory in offline if directory in own]
    if not lost or state.is_in_work(WorkKind.DIRECTORIES, broker.id):
        return BrokerChange()

    def close(state: ControllerState, context: Context, count: int) -> Piece:
        now = state.metadata.brokers.get(broker.id)
        if now is None or now.epoch != broker.epoch:
            return Piece((), is_last=True)
        are_lost = frozenset(lost)
        online = tuple(directory for directory in now.directories if directory not in are_lost)
        change = BrokerRegistrationChangeRecord(broker_id=now.id, broker_epoch=now.epoch, log_dirs=online)
        return Piece([(change, 2)], is_last=True)

    return begin(BrokerLeaving(WorkKind.DIRECTORIES, broker.id, close, directories=lost), state, context)


def cordon_directories(broker: BrokerRegistration, cordoned: Sequence[Uuid] | None) -> BrokerChange:
    """Record the log directories that take no new replicas. None means that the broker did not report any."""
    known = broker.cordoned_directories
    if cordoned is None or (known is not None and set(cordoned) == set(known)):
        return BrokerChange()
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
    )
    return BrokerChange([(change, 3)])
