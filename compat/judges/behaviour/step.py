"""What a step of a script is: a request whose ids and epochs are filled in by each side."""

from __future__ import annotations

from typing import Final

import msgspec

from compat.judges.behaviour.known import Known
from kraft_wire.controller.forwarding.envelope import encode_principal
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.principal import Principal
from kraft_wire.wire.headers import encode_request

TIMEOUT_MS: Final = 30_000

Place = tuple[str, int]
"""A topic and a partition."""
Replicas = tuple[int, ...]


def uuid_of(kind: int, first: int, second: int = 0) -> Uuid:
    """Return an id that both sides get."""
    return Uuid(b"judge" + bytes([kind, first, second % 256]) + bytes([64 + kind]) * 8)


def directory(broker: int, number: int) -> Uuid:
    """Return the id of a broker's log directory."""
    return uuid_of(1, broker, number)


class Step(msgspec.Struct, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A request. With ``user`` it comes in an Envelope, as a broker's client of that name has sent it.
    ``version`` is the one that the client uses; None is the newest that controllers serve."""

    version: int | None = None
    user: str | None = None

    def message(self, known: Known) -> Message:
        """Return the request."""
        raise NotImplementedError

    def sent(self, known: Known, newest: int) -> tuple[Message, int]:
        """Return what is sent, and its version."""
        message = self.message(known)
        version = newest if self.version is None else self.version
        if self.user is None:
            return message, version
        inner = encode_request(message.API_KEY, version, 7, "judge", message)
        principal = encode_principal(Principal(name=self.user))
        return EnvelopeRequest(inner, principal, bytes([127, 0, 0, 1])), 0
