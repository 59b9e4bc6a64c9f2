"""One connection to a controller: opened, secured, asked what it serves, and then one request at a time."""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from struct import Struct
from typing import Final, TypeVar

from kraft_wire.client.addresses import Address
from kraft_wire.client.errors import AuthenticationFailed
from kraft_wire.client.sasl import conversation
from kraft_wire.client.security import Sasl, Security
from kraft_wire.client.tls import tls_context
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.framing import FrameReader, frame
from kraft_wire.protocol.headers import decode_response, encode_request
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraft_wire.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kraft_wire.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kraft_wire.protocol.served_versions import FIRST_ASKED_VERSION, QUESTION, ServedVersions, read_versions

CLIENT_ID: Final = "kraft-wire"
MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""Kafka's own limit of what it sends and takes (socket.request.max.bytes)."""
RECEIVE_BYTES: Final = 256 * 1024
NONCE_BYTES: Final = 24
_CORRELATION_ID: Final = Struct(">i")

R = TypeVar("R", bound=Message)


class ClosedByController(ConnectionError):
    """The other end closed it."""


class Connector:
    """Opens connections, all secured in the same way, and given up when nothing comes for ``silence_s``."""

    def __init__(self, security: Security, silence_s: float) -> None:
        self._security = security
        self._silence_s = silence_s
        self._tls = tls_context(security.tls) if security.tls is not None else None

    def open(self, address: Address, timeout_s: float) -> Connection:
        """Raises OSError, ProtocolError, AuthenticationFailed."""
        deadline_s = time.monotonic() + timeout_s
        connection = Connection(self._stream(address, timeout_s), address, self._silence_s)
        try:
            connection.begin(self._security.sasl, deadline_s)
        except BaseException:
            connection.close()
            raise
        return connection

    def _stream(self, address: Address, timeout_s: float) -> socket.socket:
        stream = socket.create_connection(address, timeout=min(timeout_s, self._silence_s))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self._secured(stream, address)
        except BaseException:
            stream.close()
            raise

    def _secured(self, raw: socket.socket, address: Address) -> socket.socket:
        if self._tls is None:
            return raw
        try:
            return self._tls.wrap_socket(raw, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationFailed(
                f"{address}: its certificate isn't accepted: {error.verify_message}; look at "
                "kafka.ssl.truststore.* and, where it names another host, at the controllers' certificates"
            ) from None


class Connection:
    def __init__(self, stream: socket.socket, address: Address, silence_s: float) -> None:
        self.address = address
        self._silence_s = silence_s
        self._stream = stream
        self._frames = FrameReader(MAX_FRAME_BYTES)
        self._correlation_id = 0
        self._served: ServedVersions | None = None

    def close(self) -> None:
        self._stream.close()

    def call(self, request: Message, response_class: type[R], timeout_s: float) -> R:
        """The answer, at the highest version that both sides know; after an error it can't be used any more.

        Raises OSError, ProtocolError, AuthenticationFailed.
        """
        assert self._served is not None, "asked at the beginning"
        version = self._served.version_of(request)
        deadline_s = time.monotonic() + timeout_s
        whole = self._exchange(request, version, deadline_s)
        _, response = decode_response(request.API_KEY, version, whole)
        assert isinstance(response, response_class)
        return response

    # The beginning.

    def begin(self, sasl: Sasl | None, deadline_s: float) -> None:
        """Raises OSError, ProtocolError, AuthenticationFailed."""
        self._served = self._ask_versions(deadline_s)
        if sasl is not None:
            self._authenticate(sasl, deadline_s)

    def _ask_versions(self, deadline_s: float) -> ServedVersions:
        version = FIRST_ASKED_VERSION
        while True:
            answer = read_versions(self._exchange(QUESTION, version, deadline_s), version)
            if isinstance(answer, ServedVersions):
                return answer
            version = answer

    def _authenticate(self, sasl: Sasl, deadline_s: float) -> None:
        self._choose(sasl.mechanism, deadline_s)
        talk = conversation(sasl, secrets.token_urlsafe(NONCE_BYTES))
        message: bytes | None = talk.first()
        while message is not None:
            request = SaslAuthenticateRequest(auth_bytes=message)
            answer = self.call(request, SaslAuthenticateResponse, deadline_s - time.monotonic())
            if answer.error_code:
                reason = answer.error_message or ErrorCode.of(answer.error_code).name
                raise AuthenticationFailed(f"{self.address}: {sasl.username} isn't let in: {reason}")
            message = talk.answer(answer.auth_bytes)

    def _choose(self, mechanism: str, deadline_s: float) -> None:
        request = SaslHandshakeRequest(mechanism=mechanism)
        answer = self.call(request, SaslHandshakeResponse, deadline_s - time.monotonic())
        if answer.error_code:
            error, enabled = ErrorCode.of(answer.error_code).name, ", ".join(answer.mechanisms)
            raise AuthenticationFailed(
                f"{self.address}: {error}: {mechanism} isn't enabled there ({enabled or 'nothing'} is), or "
                "the listener has no SASL: look at kafka.security.protocol and kafka.sasl.mechanism"
            )

    # Frames.

    def _exchange(self, request: Message, version: int, deadline_s: float) -> bytes:
        self._correlation_id += 1
        data = encode_request(request.API_KEY, version, self._correlation_id, CLIENT_ID, request)
        try:
            self._set_timeout(deadline_s)
            self._stream.sendall(frame(data))
            whole = self._receive(deadline_s)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            raise ClosedByController("it closed the connection") from None
        except ssl.SSLError as error:
            # With TLS 1.3 a server says only now that it wants another certificate of ours.
            raise AuthenticationFailed(
                f"{self.address}: {error.reason}: look at kafka.ssl.keystore.*"
            ) from None
        if len(whole) < _CORRELATION_ID.size or _CORRELATION_ID.unpack_from(whole)[0] != self._correlation_id:
            raise ProtocolError("it answered something that wasn't asked")
        return whole

    def _receive(self, deadline_s: float) -> bytes:
        while (whole := self._frames.next_frame()) is None:
            self._set_timeout(deadline_s)
            data = self._stream.recv(RECEIVE_BYTES)
            if not data:
                raise ClosedByController("it closed the connection")
            self._frames.feed(data)
        return whole

    def _set_timeout(self, deadline_s: float) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._stream.settimeout(min(left_s, self._silence_s))
