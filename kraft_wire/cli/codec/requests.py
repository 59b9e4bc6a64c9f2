"""Read what a client sent on a connection, frame by frame, to know what each response answers. No I/O."""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from dataclasses import dataclass

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.registry import request_class
from kraft_wire.wire.headers import decode_request_header

PRODUCE = 0
SASL_HANDSHAKE = 17
_START = struct.Struct(">hhi")


class SaslTokens:
    """Distinguishes SASL's tokens from requests.

    After a SaslHandshake of version 0, frames hold bare tokens without any header, until the mechanism is
    done. Then requests follow again. No token happens to be a whole request.
    """

    def __init__(self) -> None:
        self._expected = False

    def is_token(self, payload: bytes) -> bool:
        """Whether the client's next frame is a token. Call it for every frame, in order."""
        if self._expected and not _is_request(payload):
            return True
        self._expected = payload[:4] == _start_of(SASL_HANDSHAKE, 0)
        return False


def _start_of(api_key: int, version: int) -> bytes:
    return api_key.to_bytes(2) + version.to_bytes(2)


def _is_request(payload: bytes) -> bool:
    """Whether the frame is a known request, from its first byte to its last."""
    try:
        header, end = decode_request_header(payload)
        request = request_class(header.request_api_key)
        _, end = request.decode_from(payload, header.request_api_version, end)
    except ProtocolError:
        return False
    return end == len(payload)


@dataclass
class SentRequest:
    """A request that gets a response."""

    api_key: int
    version: int
    tokens: int = 0
    """The number of SASL tokens without a header that followed the request."""


class SentRequests:
    """A client's requests by correlation id. Each is answered once, the oldest of equal ids first."""

    def __init__(self) -> None:
        self.count = 0
        self._by_id: defaultdict[int, deque[SentRequest]] = defaultdict(deque)
        self._tokens = SaslTokens()
        self._last: SentRequest | None = None

    def add(self, payload: bytes) -> None:
        """Read the client's next frame; ignore it if it isn't a request."""
        if self._tokens.is_token(payload):
            if self._last is not None:
                self._last.tokens += 1
            return
        if len(payload) < _START.size:
            return
        self.count += 1
        api_key, version, correlation_id = _START.unpack_from(payload)
        self._last = SentRequest(api_key, version)
        if api_key != PRODUCE or _wants_answer(payload):
            self._by_id[correlation_id].append(self._last)

    def __contains__(self, correlation_id: int) -> bool:
        return bool(self._by_id.get(correlation_id))

    def take(self, correlation_id: int) -> SentRequest | None:
        """Return the request that a response with this id answers; None if there is none."""
        waiting = self._by_id.get(correlation_id)
        return waiting.popleft() if waiting else None


def _wants_answer(payload: bytes) -> bool:
    """Whether a Produce request gets a response: with acks=0, the broker sends none."""
    try:
        header, end = decode_request_header(payload)
        request, _ = request_class(PRODUCE).decode_from(payload, header.request_api_version, end)
    except ProtocolError:
        return True
    return bool(getattr(request, "acks", 1))
