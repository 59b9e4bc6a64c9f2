"""Open connections to controllers, and make one request at a time on each. Sockets block."""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from typing import Final, TypeVar

from kraft_wire.client.errors import AuthenticationFailed
from kraft_wire.client.security_options import Security
from kraft_wire.client.tls import tls_context
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.security import errors
from kraft_wire.security.sasl import Conversation, conversation
from kraft_wire.wire.address import Address
from kraft_wire.wire.client_side import ClientSide, Event, Ready, Response, ToSend
from kraft_wire.wire.framing import MAX_FRAME_BYTES

CLIENT_ID: Final = "kraft-wire"
FIRST_CORRELATION_ID: Final = 1  # the id that this client has always sent first
RECEIVE_BYTES: Final = 256 * 1024
NONCE_BYTES: Final = 24

DRAFT_SIGNS: Final = (77, VoteRequest.API_KEY)
"""The draft's UpdateVoter, and Vote. In released Kafka brokers serve key 77, controllers serve Vote, and
nobody both."""
DRAFTED_APIS: Final = (FetchRequest.API_KEY, FetchSnapshotRequest.API_KEY)
"""The APIs of this client that are others in the draft."""

R = TypeVar("R", bound=Message)


class ClosedByController(ConnectionError):
    """The controller closed the connection."""


class DraftedListener(ProtocolError):
    """The listener speaks KIP-853 as it was drafted: its Fetch is another one."""


def connected(address: Address, timeout_s: float) -> socket.socket:
    """Return a connection. Raises OSError, also for what can't be a host: a controller may have told it."""
    try:
        return socket.create_connection(address, timeout=timeout_s)
    except UnicodeError:
        raise OSError(f"{address.host!r} can't be the name of a host") from None


class Connector:
    """Opens connections, all with the same security. A connection fails if nothing arrives for
    ``silence_s``."""

    def __init__(self, security: Security, silence_s: float) -> None:
        self._security = security
        self._silence_s = silence_s
        self._tls = tls_context(security.tls) if security.tls is not None else None

    def open(self, address: Address, timeout_s: float) -> Connection:
        """Connect and authenticate. Raises OSError, ProtocolError, AuthenticationFailed."""
        deadline_s = time.monotonic() + timeout_s
        stream = self._stream(address, timeout_s)
        connection = Connection(stream, address, self._silence_s, self._conversation())
        try:
            connection.begin(deadline_s)
        except BaseException:
            connection.close()
            raise
        return connection

    def _conversation(self) -> Conversation | None:
        sasl = self._security.sasl
        return None if sasl is None else conversation(sasl, secrets.token_urlsafe(NONCE_BYTES))

    def _stream(self, address: Address, timeout_s: float) -> socket.socket:
        stream = connected(address, min(timeout_s, self._silence_s))
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
                f"{address}: the controller's certificate is not accepted: {error.verify_message}; check "
                "kafka.ssl.truststore.* or, if it names another host, the controller's certificate"
            ) from None


class Connection:
    """One connection to a controller, from its first byte on."""

    def __init__(
        self, stream: socket.socket, address: Address, silence_s: float, talk: Conversation | None
    ) -> None:
        self.address = address
        self._silence_s = silence_s
        self._stream = stream
        self._wire = ClientSide(CLIENT_ID, MAX_FRAME_BYTES, talk, first_correlation_id=FIRST_CORRELATION_ID)

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def begin(self, deadline_s: float) -> None:
        """Ask for the controller's versions, and authenticate.

        Raises OSError, ProtocolError, AuthenticationFailed.
        """
        try:
            event = self._exchange(self._wire.begin(), deadline_s)
            while isinstance(event, ToSend):
                event = self._exchange(event.data, deadline_s)
        except errors.MechanismRefused as error:
            raise AuthenticationFailed(
                f"{self.address}: {error}; check kafka.sasl.mechanism, and whether the listener uses SASL "
                "at all (kafka.security.protocol)"
            ) from None
        except errors.AuthenticationFailed as error:
            raise AuthenticationFailed(f"{self.address}: {error}") from None
        assert isinstance(event, Ready)

    def call(self, request: Message, response_class: type[R], timeout_s: float) -> R:
        """Return the response, at the highest version that both sides know.

        After an error the connection can't be used any more. Raises OSError, ProtocolError,
        AuthenticationFailed; DraftedListener for a Fetch or FetchSnapshot to such a listener.
        """
        if request.API_KEY in DRAFTED_APIS and all(map(self._wire.serves, DRAFT_SIGNS)):
            raise DraftedListener(
                "this listener speaks KIP-853's draft: use another one of controller.listener.names"
            )
        event = self._exchange(self._wire.send(request), time.monotonic() + timeout_s)
        assert isinstance(event, Response)
        assert isinstance(event.message, response_class)
        return event.message

    def _exchange(self, data: bytes, deadline_s: float) -> Event:
        """Send a request, and wait for the event that its response is."""
        try:
            self._set_timeout(deadline_s)
            self._stream.sendall(data)
            while (event := self._wire.next_event()) is None:
                self._wire.receive(self._receive(deadline_s))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            raise ClosedByController("the controller closed the connection") from None
        except ssl.SSLError as error:
            # With TLS 1.3 a server rejects our certificate only after the handshake.
            raise AuthenticationFailed(
                f"{self.address}: TLS failed: {error.reason}; check kafka.ssl.keystore.*"
            ) from None
        return event

    def _receive(self, deadline_s: float) -> bytes:
        self._set_timeout(deadline_s)
        data = self._stream.recv(RECEIVE_BYTES)
        if not data:
            raise ClosedByController("the controller closed the connection")
        return data

    def _set_timeout(self, deadline_s: float) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._stream.settimeout(min(left_s, self._silence_s))
