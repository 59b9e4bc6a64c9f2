"""Sees to it that the log knows this controller (KIP-919; Kafka's ControllerRegistrationManager).

The active controller registers itself; any other asks it to, and again until the registration comes back in
the log.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.context import ControllerState
from kraft_wire.metadata import version as metadata_version
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.raft.effects import CancelRequest, SendRequest
from kraft_wire.raft.voters import Peer

ANSWER_TIMEOUT_MS: Final = 5000
RETRY_MS: Final = 500


class Registrar:
    """Request ids are negative: those of raft are not. Times are monotonic milliseconds."""

    def __init__(self, registration: ControllerRegistrationRequest) -> None:
        self.registration = registration
        self._last_id = 0
        self._in_flight: int | None = None
        self._due_ms = 0

    def is_registered(self, state: ControllerState) -> bool:
        """Whether there is nothing to do: the log has this incarnation, or its level has no registrations."""
        if not metadata_version.controller_registration_supported(state.metadata.features.metadata_version):
            return True
        known = state.metadata.controllers.get(state.node_id)
        return known is not None and known.incarnation_id == self.registration.incarnation_id

    def next_deadline_ms(self, state: ControllerState) -> int | None:
        """When to look again."""
        return None if self.is_registered(state) else self._due_ms

    def act(
        self, state: ControllerState, leader: Peer | None, now_ms: int
    ) -> list[SendRequest | CancelRequest]:
        """Ask ``leader``, if that is due. None for nobody to ask, who will be known later."""
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
        """There is somebody else to ask."""
        self._due_ms = 0

    def ended(self, request_id: int, now_ms: int) -> bool:
        """A request has its answer, or failed; tells whether it was one of these. What counts is what the log
        says: it is asked again in a moment if that isn't there."""
        if request_id >= 0:
            return False
        if request_id == self._in_flight:
            self._in_flight = None
            self._due_ms = now_ms + RETRY_MS
        return True
