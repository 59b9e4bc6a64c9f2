"""Keep the sessions of brokers: the time of the last heartbeat, and the last metadata offset reported in it.

Sessions are soft state: they last for one term of the active controller and are never written to the log
(Kafka's BrokerHeartbeatManager and BrokerHeartbeatTracker). Handlers only read them; they return changes as
values, which the node applies. Times are milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration

UNKNOWN_OFFSET = -1


class BrokerRegistered(msgspec.Struct, frozen=True, gc=False):
    """A broker registered with this epoch.

    Everything about an earlier incarnation is dropped. The session does not count before the first heartbeat.
    Registering again with the same epoch changes nothing.
    """

    broker_id: int
    broker_epoch: int


class BrokerHeard(msgspec.Struct, frozen=True, gc=False):
    """A heartbeat came from the registered incarnation at ``at_ms``."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    at_ms: int


class ShutdownBegun(msgspec.Struct, frozen=True, gc=False):
    """A controlled shutdown began: the broker may stop when all others have applied ``offset``.

    If the shutdown has begun already, its offset does not change.
    """

    broker_id: int
    offset: int


class ShutdownWaits(msgspec.Struct, frozen=True, gc=False):
    """The last record of a controlled shutdown is at ``offset``: all other brokers must apply it first."""

    broker_id: int
    offset: int


class SessionEnded(msgspec.Struct, frozen=True, gc=False):
    """A session timed out, or its broker was granted a shutdown. The next heartbeat starts it again.

    Kafka keeps the session of a stopped broker until it times out, and rejects the restarted broker until
    then, for up to 9 seconds (KAFKA-19047). Ending it at once is safe: the same decision fences the broker. A
    session only serves to notice a silent broker and to reject a second process, and a stopping broker does
    not become a second process.
    """

    broker_id: int


class BrokerUnregistered(msgspec.Struct, frozen=True, gc=False):
    """A broker is no longer registered."""

    broker_id: int


SessionChange = (
    BrokerRegistered | BrokerHeard | ShutdownBegun | ShutdownWaits | SessionEnded | BrokerUnregistered
)


class BrokerSession(msgspec.Struct, frozen=True, gc=False):
    """The session of one incarnation of a broker.

    ``last_contact_ms`` is None while the session does not count: before the first heartbeat, and after the
    session ended. ``metadata_offset`` is the last metadata record that the broker reported as applied.
    ``controlled_shutdown_offset`` is the record that all other brokers must have applied before the broker
    may stop; it is -1 unless the broker is in controlled shutdown.
    """

    broker_epoch: int
    last_contact_ms: int | None = None
    metadata_offset: int = UNKNOWN_OFFSET
    controlled_shutdown_offset: int = UNKNOWN_OFFSET


class BrokerSessions:
    """The sessions by broker id, at most one for each broker: that of the incarnation heard last."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, BrokerSession] = {}

    # Changes. Only the node makes them.

    def activate(self, brokers: Iterable[BrokerRegistration], now_ms: int) -> None:
        """Begin a term: unfenced brokers get a new session, fenced ones get one with their first heartbeat.

        A fenced broker has no session, so that it is not taken for a duplicate when it restarts
        (KAFKA-19130).
        """
        self._sessions = {b.id: BrokerSession(b.epoch, now_ms) for b in brokers if not b.fenced}

    def apply(self, changes: Iterable[SessionChange]) -> None:
        """Apply the changes that a decision returned, in order."""
        for change in changes:
            match change:
                case BrokerHeard(broker_id, broker_epoch, metadata_offset, at_ms):
                    session = self._session_at(broker_id, broker_epoch)
                    self._sessions[broker_id] = BrokerSession(
                        broker_epoch, at_ms, metadata_offset, session.controlled_shutdown_offset
                    )
                case BrokerRegistered(broker_id, broker_epoch):
                    self._sessions[broker_id] = self._session_at(broker_id, broker_epoch)
                case ShutdownBegun(broker_id, offset):
                    if not self.is_shutting_down(broker_id):
                        self._replace(broker_id, controlled_shutdown_offset=offset)
                case ShutdownWaits(broker_id, offset):
                    if self.is_shutting_down(broker_id):
                        self._replace(broker_id, controlled_shutdown_offset=offset)
                case SessionEnded(broker_id):
                    if broker_id in self._sessions:
                        self._replace(
                            broker_id, last_contact_ms=None, controlled_shutdown_offset=UNKNOWN_OFFSET
                        )
                case BrokerUnregistered(broker_id):
                    self._sessions.pop(broker_id, None)

    def forgive(self, pause_ms: int) -> None:
        """Extend all sessions by ``pause_ms``, for which this process itself was suspended (KAFKA-15019)."""
        for broker_id, session in self._sessions.items():
            if session.last_contact_ms is not None:
                self._replace(broker_id, last_contact_ms=session.last_contact_ms + pause_ms)

    # Queries.

    def has_valid_session(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Whether this incarnation was heard within the session timeout."""
        session = self._sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch or session.last_contact_ms is None:
            return False
        return not self._is_stale(session.last_contact_ms, now_ms)

    def stale_brokers(self, now_ms: int) -> list[tuple[int, int]]:
        """Return (broker id, epoch) of the sessions that timed out, longest silent first."""
        stale = [
            (session.last_contact_ms, broker_id, session.broker_epoch)
            for broker_id, session in self._sessions.items()
            if session.last_contact_ms is not None and self._is_stale(session.last_contact_ms, now_ms)
        ]
        return [(broker_id, epoch) for _, broker_id, epoch in sorted(stale)]

    def silences_ms(self, now_ms: int) -> dict[int, int]:
        """Return for how long the brokers whose sessions count have been silent, by their ids."""
        return {
            broker_id: now_ms - session.last_contact_ms
            for broker_id, session in self._sessions.items()
            if session.last_contact_ms is not None
        }

    def controlled_shutdown_offset(self, broker_id: int) -> int:
        """Return the offset that ``ShutdownBegun`` set, or -1."""
        session = self._sessions.get(broker_id)
        return session.controlled_shutdown_offset if session else UNKNOWN_OFFSET

    def is_shutting_down(self, broker_id: int) -> bool:
        """Whether the broker entered controlled shutdown in this term."""
        return self.controlled_shutdown_offset(broker_id) >= 0

    def metadata_offset(self, broker_id: int) -> int:
        """Return the last metadata record that the broker reported as applied, or -1 if it reported none."""
        session = self._sessions.get(broker_id)
        return session.metadata_offset if session else UNKNOWN_OFFSET

    def lowest_offset(self, broker_ids: Iterable[int]) -> int | None:
        """Return the lowest metadata offset of these brokers, -1 if one is unknown, None without brokers."""
        return min(map(self.metadata_offset, broker_ids), default=None)

    def _session_at(self, broker_id: int, broker_epoch: int) -> BrokerSession:
        """Return the session of this incarnation, a new one if there is none."""
        session = self._sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch:
            return BrokerSession(broker_epoch)
        return session

    def _replace(self, broker_id: int, **changes: int | None) -> None:
        self._sessions[broker_id] = msgspec.structs.replace(self._sessions[broker_id], **changes)

    def _is_stale(self, last_contact_ms: int, now_ms: int) -> bool:
        return last_contact_ms + self.session_timeout_ms < now_ms
