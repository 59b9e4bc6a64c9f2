"""Register this controller in the log (KIP-919; Kafka's ControllerRegistrationManager).

The active controller registers itself. Any other controller sends a request to the active one, and repeats it
until its registration is in the log.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.metadata.features import metadata_version
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.raft.effects import CancelRequest, SendRequest
from kraft_wire.raft.membership.voters import Peer

ANSWER_TIMEOUT_MS: Final = 5000
RETRY_MS: Final = 500


class Registrar:
    """The registration of this controller, and its request for it while it is not active.

    Request ids are negative, those of raft are not. Times are milliseconds of a monotonic clock.
    """

    def __init__(self, registration: ControllerRegistrationRequest) -> None:
        self.registration = registration
        self._last_id = 0
        self._in_flight: int | None = None
        self._due_ms = 0

    def is_registered(self, state: ControllerState) -> bool:
        """Whether the log has this incarnation, or the metadata.version has no controller registrations."""
        if not metadata_version.controller_registration_supported(state.metadata.features.metadata_version):
            return True
        known = state.metadata.controllers.get(state.node_id)
        return known is not None and known.incarnation_id == self.registration.incarnation_id

    def is_due_here(self, state: ControllerState, now_ms: int) -> bool:
        """Whether the active controller has to register itself now: metadata.version has just been raised to
        a level that has registrations."""
        if self.is_registered(state) or now_ms < self._due_ms:
            return False
        self._due_ms = now_ms + RETRY_MS
        return True

    def next_deadline_ms(self, state: ControllerState) -> int | None:
        """Return the time of the next attempt, or None if there is nothing to do."""
        return None if self.is_registered(state) else self._due_ms

    def register(
        self, state: ControllerState, leader: Peer | None, now_ms: int
    ) -> list[SendRequest | CancelRequest]:
        """Send the registration to ``leader``, which is None if it is not known, if an attempt is due."""
        if now_ms < self._due_ms or self.is_registered(state):
            return []
        effects: list[SendRequest | CancelRequest] = []
        if self._in_flight is not None:
            effects.append(CancelRequest(self._in_flight))
            self._in_flight = None
        if leader is None:
            self._due_ms = now_ms + RETRY_MS
            return effects
        self._last_id -= 1
        self._in_flight = self._last_id
        self._due_ms = now_ms + ANSWER_TIMEOUT_MS
        effects.append(SendRequest(self._last_id, leader, self.registration))
        return effects

    def leader_changed(self) -> None:
        """Try the new leader at once."""
        self._due_ms = 0

    def request_ended(self, request_id: int, now_ms: int) -> bool:
        """Note that a request was answered or failed. Returns whether it was one of the registrar's.

        The answer does not matter: the request is repeated until the registration is in the log.
        """
        if request_id >= 0:
            return False
        if request_id == self._in_flight:
            self._in_flight = None
            self._due_ms = now_ms + RETRY_MS
        return True
