"""What the active controller knows about brokers beyond the log: when they were heard, and how far they have
read.

Soft state: it lives with one term of one active controller and is never written (Kafka's
BrokerHeartbeatManager and BrokerHeartbeatTracker). Time is passed in, in milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration

UNKNOWN_OFFSET = -1


class BrokerSession(msgspec.Struct, gc=False):
    """One incarnation of a broker as its heartbeats show it.

    ``last_contact_ms`` is None while the session is not counting: before the first heartbeat, and once a
    shutdown has been granted. ``metadata_offset`` is the last metadata record that the broker says it has
    applied. ``controlled_shutdown_offset`` is the record that all other brokers must have applied before the
    broker may stop, -1 while it isn't stopping.
    """

    broker_epoch: int
    last_contact_ms: int | None = None
    metadata_offset: int = UNKNOWN_OFFSET
    controlled_shutdown_offset: int = UNKNOWN_OFFSET


class BrokerSessions:
    """The sessions by broker id. At most one a broker: that of the incarnation heard last."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, BrokerSession] = {}

    def activate(self, brokers: Iterable[BrokerRegistration], now_ms: int) -> None:
        """Begin a term: unfenced brokers get a fresh session; fenced ones must call first.

        Fenced brokers are not tracked, so that a restarted one isn't taken for a duplicate (KAFKA-19130).
        """
        self._sessions = {b.id: BrokerSession(b.epoch, now_ms) for b in brokers if not b.fenced}

    def begin(self, broker_id: int, broker_epoch: int) -> None:
        """A broker registered: what was known of an earlier incarnation is void.

        The session begins to count with the first heartbeat. Registering again with the same epoch changes
        nothing.
        """
        session = self._sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch:
            self._sessions[broker_id] = BrokerSession(broker_epoch)

    def remove(self, broker_id: int) -> None:
        """The broker is not registered any more."""
        self._sessions.pop(broker_id, None)

    def heard(self, broker_id: int, broker_epoch: int, metadata_offset: int, now_ms: int) -> None:
        """A heartbeat came from the incarnation that is registered at ``broker_epoch``."""
        self.begin(broker_id, broker_epoch)
        session = self._sessions[broker_id]
        session.last_contact_ms = now_ms
        session.metadata_offset = metadata_offset

    def shutdown_granted(self, broker_id: int) -> None:
        """The broker may stop, so nothing more is expected of this incarnation.

        Kafka keeps the session until it times out and refuses the restarted broker for as long as that, up to
        9 seconds (KAFKA-19047). Ending it here is safe: the broker is fenced by the same decision, and a
        session serves only to notice silence and to refuse a second process, which a broker that stops
        doesn't become.
        """
        if session := self._sessions.get(broker_id):
            session.last_contact_ms = None
            session.controlled_shutdown_offset = UNKNOWN_OFFSET

    def has_valid_session(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Whether this very incarnation has been heard within the session timeout."""
        session = self._sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch or session.last_contact_ms is None:
            return False
        return not self._is_stale(session.last_contact_ms, now_ms)

    def forgive(self, pause_ms: int) -> None:
        """This process itself stood still for so long: silence meanwhile is no broker's fault
        (KAFKA-15019).
        """
        for session in self._sessions.values():
            if session.last_contact_ms is not None:
                session.last_contact_ms += pause_ms

    def stale_brokers(self, now_ms: int) -> list[tuple[int, int]]:
        """(broker id, epoch) of the sessions that timed out, longest silent first."""
        stale = [
            (session.last_contact_ms, broker_id, session.broker_epoch)
            for broker_id, session in self._sessions.items()
            if session.last_contact_ms is not None and self._is_stale(session.last_contact_ms, now_ms)
        ]
        return [(broker_id, epoch) for _, broker_id, epoch in sorted(stale)]

    def expire(self, broker_id: int) -> None:
        """Stop counting a session that timed out; the broker is heard anew or not at all."""
        if session := self._sessions.get(broker_id):
            session.last_contact_ms = None
            session.controlled_shutdown_offset = UNKNOWN_OFFSET

    def next_expiry_ms(self) -> int | None:
        """The first moment at which a session would be stale."""
        contacts = [s.last_contact_ms for s in self._sessions.values() if s.last_contact_ms is not None]
        return min(contacts) + self.session_timeout_ms + 1 if contacts else None

    def enter_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """The broker may stop when all others have applied ``offset``; a later call doesn't move the mark."""
        session = self._sessions[broker_id]
        if session.controlled_shutdown_offset < 0:
            session.controlled_shutdown_offset = offset

    def leave_controlled_shutdown(self, broker_id: int) -> None:
        """The broker is fenced: its next heartbeat may stop it at once."""
        if session := self._sessions.get(broker_id):
            session.controlled_shutdown_offset = UNKNOWN_OFFSET

    def controlled_shutdown_offset(self, broker_id: int) -> int:
        """The mark set by ``enter_controlled_shutdown``, or -1."""
        session = self._sessions.get(broker_id)
        return session.controlled_shutdown_offset if session else UNKNOWN_OFFSET

    def is_shutting_down(self, broker_id: int) -> bool:
        """Whether this term has put the broker into controlled shutdown."""
        return self.controlled_shutdown_offset(broker_id) >= 0

    def metadata_offset(self, broker_id: int) -> int:
        """The last metadata record that the broker reported as applied, or -1 before it said."""
        session = self._sessions.get(broker_id)
        return session.metadata_offset if session else UNKNOWN_OFFSET

    def lowest_offset(self, broker_ids: Iterable[int]) -> int | None:
        """How far all of these brokers have read; -1 when one has not said; None for no broker at all."""
        return min(map(self.metadata_offset, broker_ids), default=None)

    def _is_stale(self, last_contact_ms: int, now_ms: int) -> bool:
        return last_contact_ms + self.session_timeout_ms < now_ms
