"""The client's side of a connection: requests to bytes, bytes to responses. No I/O.

The caller moves the bytes: it sends what ``begin``, ``send`` and ``ToSend`` give, passes what arrives to
``receive``, and takes events until there are none.

    client = ClientSide("my-client", max_frame_bytes)
    write(client.begin())
    ...                                    # ToSend events, then Ready
    write(client.send(request))
    client.receive(read())
    event = client.next_event()            # Response, or None: more bytes are needed

Requests may be pipelined. Kafka answers the requests of a connection in their order, so each response must
have the correlation id of the oldest request in flight. After an exception of ``next_event`` the connection
can't be used any more.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final

import msgspec

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.response_header import ResponseHeader
from kraft_wire.protocol.registry import response_class
from kraft_wire.security.sasl import Conversation
from kraft_wire.wire.dialect import Dialect, Form
from kraft_wire.wire.entry_count import check_entry_count
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import decode_response, encode_request, response_header_version
from kraft_wire.wire.opening import Steps, opening
from kraft_wire.wire.served_versions import ServedVersions

CORRELATION_ID_LIMIT: Final = 1 << 31
_CORRELATION_ID: Final = struct.Struct(">i")


class UnexpectedResponse(ProtocolError):
    """A frame that isn't the response to the oldest request in flight."""


class ToSend(msgspec.Struct, frozen=True, gc=False):
    """Bytes that continue the opening: the caller sends them."""

    data: bytes


class Ready(msgspec.Struct, frozen=True, gc=False):
    """The peer's versions are known, and authentication is over if it was wanted: requests may be sent."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """The response to the request that was sent with this ``request_id``."""

    request_id: int
    message: Message


Event = ToSend | Ready | Response


class InFlight(msgspec.Struct, frozen=True, gc=False):
    """A request without its response. ``request_id`` is None for requests of the opening. Key and version are
    those of the wire; ``form`` is the one that they are in, if the API has one of its own there."""

    correlation_id: int
    api_key: int
    version: int
    request_id: int | None
    form: Form | None = None


class ClientSide:
    """A state machine: opening (versions, then authentication with a ``conversation``), then requests.

    A caller that knows the versions may skip the opening and give one to each ``send``. A peer that speaks
    the ``dialect`` gets requests in its forms. A response with more than ``max_answer_entries`` isn't
    decoded.
    """

    def __init__(
        self,
        client_id: str,
        max_frame_bytes: int,
        conversation: Conversation | None = None,
        *,
        first_correlation_id: int = 0,
        dialect: Dialect | None = None,
        max_answer_entries: int | None = None,
    ) -> None:
        self._client_id = client_id
        self._dialect = dialect
        self._max_answer_entries = max_answer_entries
        self._conversation = conversation
        self._correlation_id = first_correlation_id
        self._frames = FrameReader(max_frame_bytes)
        self._in_flight: deque[InFlight] = deque()
        self._opening: Steps[ServedVersions] | None = None
        self._served: ServedVersions | None = None

    def begin(self) -> bytes:
        """Return the first bytes to send. ``Ready`` follows, after a ``ToSend`` for each further request."""
        self._opening = opening(self._conversation)
        return self._ask(*next(self._opening))

    def send(self, request: Message, version: int | None = None, *, request_id: int = 0) -> bytes:
        """Return a request's bytes, and expect its response.

        Without ``version`` the request has the highest one that both sides know. ``request_id`` is the
        caller's own and comes back with the response. Raises UnsupportedVersion and EncodeError; then nothing
        has changed.
        """
        assert self._opening is None, "requests follow the opening"
        if version is not None:
            return self._ask(request, version, request_id)
        assert self._served is not None, "only the opening finds out which versions the peer serves"
        form = self._form_of(request)
        if form is None:
            return self._ask(request, self._served.version_of(request), request_id)
        request = form.write_request(request)
        version = self._served.version_of(request, (form.min_version, form.max_version))
        return self._ask(request, version, request_id, form)

    def _form_of(self, request: Message) -> Form | None:
        """Return the form in which this peer wants the request; None for Kafka's."""
        assert self._served is not None
        if self._dialect is None or not self._dialect.is_spoken_by(self._served):
            return None
        return self._dialect.form_of(request.API_KEY)

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes that arrived."""
        self._frames.feed(data)

    def next_event(self) -> Event | None:
        """Return the next event, or None until more bytes arrive.

        Raises ProtocolError for anything but the response that is due, TooManyEntries (another one) for one
        that is too large, and AuthenticationFailed during the opening.
        """
        whole = self._frames.next_frame()
        if whole is None:
            return None
        call = self._in_flight[0] if self._in_flight and len(whole) >= _CORRELATION_ID.size else None
        if call is None or _CORRELATION_ID.unpack_from(whole)[0] != call.correlation_id:
            raise self._unexpected(whole)
        self._check_entries(call, whole)
        if self._opening is not None:
            return self._continue(self._opening, whole)
        assert call.request_id is not None, "the opening is over"
        form = call.form
        body_class = None if form is None else form.response_class
        _, message = decode_response(call.api_key, call.version, whole, body_class)
        self._in_flight.popleft()
        return Response(call.request_id, message if form is None else form.read_response(message))

    def serves(self, api_key: int) -> bool:
        """Whether the peer serves any version of an API, which the opening finds out."""
        return self._served is not None and self._served.serves(api_key)

    @property
    def has_in_flight(self) -> bool:
        """Whether a response is due."""
        return bool(self._in_flight)

    @property
    def due_api_key(self) -> int | None:
        """The API of the response that is due next, if any."""
        return self._in_flight[0].api_key if self._in_flight else None

    def unanswered(self) -> list[int]:
        """The request ids of the caller's requests in flight, oldest first."""
        return [call.request_id for call in self._in_flight if call.request_id is not None]

    def _ask(
        self, request: Message, version: int, request_id: int | None = None, form: Form | None = None
    ) -> bytes:
        correlation_id = self._correlation_id
        data = frame(encode_request(request.API_KEY, version, correlation_id, self._client_id, request))
        self._in_flight.append(InFlight(correlation_id, request.API_KEY, version, request_id, form))
        self._correlation_id = (correlation_id + 1) % CORRELATION_ID_LIMIT
        return data

    def _check_entries(self, call: InFlight, whole: bytes) -> None:
        """Raise TooManyEntries for a response with more entries than are allowed."""
        if self._max_answer_entries is None:
            return
        cls = response_class(call.api_key) if call.form is None else call.form.response_class
        header_version = response_header_version(call.api_key, call.version)
        _, position = ResponseHeader.decode_from(whole, header_version, 0)
        check_entry_count(cls, whole, call.version, position, self._max_answer_entries)

    def _unexpected(self, whole: bytes) -> UnexpectedResponse:
        """Say why this frame is not the response that is due."""
        if not self._in_flight:
            return UnexpectedResponse(f"a frame of {len(whole)} bytes arrived, but no request is in flight")
        if len(whole) < _CORRELATION_ID.size:
            return UnexpectedResponse(f"a frame of {len(whole)} bytes is too short for a response")
        (correlation_id,) = _CORRELATION_ID.unpack_from(whole)
        is_early = any(call.correlation_id == correlation_id for call in self._in_flight)
        problem = "the responses are out of order" if is_early else "it is not in flight"
        return UnexpectedResponse(
            f"a response with correlation id {correlation_id} arrived, expected "
            f"{self._in_flight[0].correlation_id}: {problem}"
        )

    def _continue(self, steps: Steps[ServedVersions], whole: bytes) -> Event:
        try:
            request, version = steps.send(whole)
        except StopIteration as end:
            self._in_flight.popleft()
            self._served = end.value
            self._opening = None
            return Ready()
        self._in_flight.popleft()
        return ToSend(self._ask(request, version))
