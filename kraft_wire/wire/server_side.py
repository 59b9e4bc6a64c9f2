"""The server's side of a connection: bytes to requests, responses to bytes. No I/O.

The caller moves the bytes: it passes what arrives to ``receive``, takes requests while there are any, and
sends what ``take_ready`` gives.

    server.receive(read())
    while (frame := server.next_frame()) is not None:
        ...                               # wait until server.has_room
        request = server.take(frame)      # request.slot.answer(response) at any time
    write(server.take_ready())

Kafka answers the requests of a connection in their order. Each request has a slot in this order; a response
may be given to its slot at any time and leaves after those of all earlier requests. After an exception the
connection can't be used any more.

``take`` is the only way in: a client that has to authenticate first will do so there, between the header and
the body of its requests. There requests with too many entries or bytes for their API are refused. A limit on
the size of all frames belongs to ``FrameReader``: ``take`` sees a frame when all of it is in memory. A limit
on their number belongs to ``take``: ``has_room`` only pauses reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.request_header import RequestHeader
from kraft_wire.protocol.registry import api_name
from kraft_wire.wire.dialect import Form
from kraft_wire.wire.entry_count import TooManyEntries
from kraft_wire.wire.framing import MAX_FRAME_BYTES, FrameReader, frame_header, frame_pieces
from kraft_wire.wire.headers import (
    API_VERSIONS_KEY,
    decode_request_header,
    encode_response_header,
)
from kraft_wire.wire.large_responses import encode_in_pieces, estimated_bytes, is_large
from kraft_wire.wire.refused_items import NamedItems, decode_or_refuse
from kraft_wire.wire.shared_bytes import Part, SharedBytes, encode_in_parts, size_of
from kraft_wire.wire.unsent import Unsent

MAX_IN_FLIGHT: Final = 128
"""Requests of one connection that may be without a response that has left."""
MAX_UNSENT_BYTES: Final = 1024 * 1024
"""Bytes of responses from which on no further request is taken."""
_DECODED_FACTOR: Final = 8
_MOST_BYTES_OF_ITEMS: Final = 16 * 1024 * 1024


class ServedApi(msgspec.Struct, frozen=True, gc=False):
    """An API that is served: the class of its requests, how many entries and bytes a request may have, and
    which of its items are named if it is refused. With a ``form`` it has other messages on the wire."""

    request_class: type[Message]
    max_entries: int
    named_items: tuple[NamedItems, ...] = ()
    form: Form | None = None
    max_bytes: int = MAX_FRAME_BYTES


FindApi = Callable[[int, int], ServedApi | None]
"""Find an API by its key and a version; None if it is not served."""


class UnservedApi(ProtocolError):
    """A request of an API, or of a version of an API, that this listener doesn't serve."""


class Slot:
    """The place of one response in the connection's order. It is the request's token.

    ``payload`` is the response or its beginning, ``rest`` what follows. A large response waits in
    ``unencoded`` until ``encode_in_pieces``. An answer after the end of the connection is dropped.
    """

    __slots__ = (
        "_side",
        "api_key",
        "correlation_id",
        "decoded_bytes",
        "form",
        "payload",
        "rest",
        "unencoded",
        "version",
    )

    def __init__(
        self, side: ServerSide, api_key: int, version: int, correlation_id: int, decoded_bytes: int
    ) -> None:
        self._side = side
        self.decoded_bytes = decoded_bytes
        """What the request takes in memory, about, until it is answered."""
        self.api_key = api_key
        self.version = version
        """The version of the response."""
        self.correlation_id = correlation_id
        self.form: Form | None = None
        """The form of the response on the wire, if it has one of its own. Key and version are those of the
        wire."""
        self.payload: bytes | None = None
        self.rest: tuple[Part, ...] = ()
        self.unencoded: Message | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the slot has its response, encoded or not."""
        return self.payload is not None or self.unencoded is not None

    def encode_in_pieces(self) -> Iterator[None]:
        """Encode a large response; yield after each piece."""
        response = self.unencoded
        assert response is not None
        pieces: list[bytes] = []
        size_bytes, counted_bytes = 0, estimated_bytes(response)
        try:
            header = encode_response_header(self.api_key, self.version, self.correlation_id)
            for piece in encode_in_pieces(response, self.version):
                if piece:
                    pieces.append(piece)
                    size_bytes += len(piece)
                    self._side.grown(max(0, size_bytes - counted_bytes))
                    counted_bytes = max(counted_bytes, size_bytes)
                yield
                if self._side.is_closed:
                    return
        except ProtocolError as error:
            self.give_up(error)
            return
        self.unencoded = None
        self.payload = frame_header(len(header) + size_bytes) + header
        self.rest = tuple(pieces)
        self._side.encoded(self, counted_bytes)

    def answer(self, response: Message) -> None:
        """Encode the response, unless it is large. It leaves when all responses before it have left."""
        if self._side.is_closed:
            return
        self._side.throttle(getattr(response, "throttle_time_ms", 0))
        response = self.on_the_wire(response)
        if is_large(response):
            self.unencoded = response
            self._side.postponed(self, estimated_bytes(response))
            return
        try:
            body = response.encode(self.version)
        except ProtocolError as error:
            self.give_up(error)
            return
        header = encode_response_header(self.api_key, self.version, self.correlation_id)
        self.payload = payload = frame_pieces((header, body))
        self._side.answered(self, len(payload))

    def on_the_wire(self, response: Message) -> Message:
        """Return the response in the form of this slot."""
        return response if self.form is None else self.form.write_response(response)

    def take(self) -> tuple[bytes, tuple[Part, ...]]:
        """Return the beginning of the response and what follows it. The slot doesn't hold them any more."""
        assert self.payload is not None
        beginning, rest = self.payload, self.rest
        self.payload, self.rest = b"", ()
        return beginning, rest

    def give_up(self, error: ProtocolError) -> None:
        """Take note that there is no response: its version can't express it."""
        self._side.give_up(self, error)

    def answer_encoded(self, parts: Sequence[Part]) -> None:
        """Take the response as bytes of this slot's version, without a header."""
        if self._side.is_closed:
            return
        header = encode_response_header(self.api_key, self.version, self.correlation_id)
        size = frame_header(len(header) + sum(map(size_of, parts)))
        first, *rest = parts or [b""]
        if isinstance(first, SharedBytes):
            first, rest = b"", [first, *rest]
        self.payload = payload = b"".join((size, header, first))
        self.rest = tuple(rest)
        self._side.answered(self, len(payload))


def answer_alike(slots: Iterable[Slot], response: Message) -> None:
    """Answer slots with the same response. It is encoded once for each version, and its blobs are in memory
    once for all."""
    by_version: dict[tuple[Form | None, int], list[Slot]] = {}
    for slot in slots:
        by_version.setdefault((slot.form, slot.version), []).append(slot)
    for (_, version), some in by_version.items():
        if is_large(response):
            for slot in some:
                slot.answer(response)
            continue
        try:
            parts = encode_in_parts(some[0].on_the_wire(response), version)
        except ProtocolError as error:
            for slot in some:
                slot.give_up(error)
            continue
        for slot in some:
            slot.answer_encoded(parts)


def decoded_bytes(request_bytes: int) -> int:
    """Return about how much memory a decoded request takes.

    Small items take several times their bytes. There is a limit on their number: what makes a request larger
    than they can be is in long values.
    """
    return min(request_bytes * _DECODED_FACTOR, 2 * request_bytes + _MOST_BYTES_OF_ITEMS)


class DecodedFrame(NamedTuple):
    """The request in a frame. ``api`` is None if it is an ApiVersions of a version that isn't served."""

    header: RequestHeader
    size_bytes: int
    api: ServedApi | None
    message: Message
    refused: TooManyEntries | None


class Request(msgspec.Struct, frozen=True, gc=False):
    """A decoded request. ``version`` is the one that the client asked for. If the API has a form of its own
    on the wire, key, version and message are those that the node knows.

    If it is ``refused``, it was not decoded: ``message`` has the names of its first items at most.
    """

    slot: Slot
    api_key: int
    version: int
    client_id: str
    message: Message
    refused: TooManyEntries | None = None


class ServerSide:
    """The order of requests and responses on one connection.

    ``ready()`` is called when a response got its bytes, ``failed(slot, error)`` when its version can't
    express it: then neither it nor any later response can be sent.
    """

    def __init__(
        self,
        find_api: FindApi,
        max_frame_bytes: int,
        ready: Callable[[], None],
        failed: Callable[[Slot, ProtocolError], None],
    ) -> None:
        self._find_api = find_api
        self._ready = ready
        self._failed = failed
        self._frames = FrameReader(max_frame_bytes)
        self._slots: deque[Slot] = deque()
        self._unsent = Unsent()
        self._decoded_bytes = 0
        self._unencoded = 0
        self._throttle_time_ms = 0
        self.is_closed = False

    # Requests.

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes that arrived."""
        self._frames.feed(data)

    def next_frame(self) -> bytes | None:
        """Return the frame of the next request, or None until more bytes arrive. Raises FrameTooLarge."""
        return self._frames.next_frame()

    @property
    def has_room(self) -> bool:
        """Whether another request may be taken: not too many are in flight, not too many bytes of responses
        are unsent, and no large response is being encoded."""
        is_full = len(self._slots) >= MAX_IN_FLIGHT or self._unsent.size_bytes >= MAX_UNSENT_BYTES
        return not is_full and not self._unencoded

    def take(self, whole: bytes) -> Request:
        """Decode the request in a frame, and give it the next slot. Raises as ``decode`` does."""
        return self.take_decoded(self.decode(whole))

    def decode(self, whole: bytes) -> DecodedFrame:
        """Decode a frame. Nothing changes, so another thread may do it.

        Raises DecodeError, UnsupportedVersion, UnservedApi or RequestTooLarge.
        """
        header, body_offset = decode_request_header(whole)
        api_key, version = header.request_api_key, header.request_api_version
        api = self._find_api(api_key, version)
        if api is not None:
            message, refused = decode_or_refuse(
                api.request_class,
                whole,
                version,
                body_offset,
                api.named_items,
                api.max_entries,
                api.max_bytes,
            )
            return DecodedFrame(header, len(whole), api, message, refused)
        if api_key == API_VERSIONS_KEY and version > 0:
            return DecodedFrame(header, len(whole), None, ApiVersionsRequest(), None)
        raise UnservedApi(f"{api_name(api_key)} (api key {api_key}) version {version} is not served here")

    def take_decoded(self, frame: DecodedFrame) -> Request:
        """Give a request the next slot."""
        api_key, version = frame.header.request_api_key, frame.header.request_api_version
        size_bytes = decoded_bytes(frame.size_bytes)
        slot = Slot(self, api_key, version, frame.header.correlation_id, size_bytes)
        api, message = frame.api, frame.message
        form = None
        if api is not None:
            form = slot.form = api.form
        else:
            # The version is newer than ours. The answer, at version 0, names the versions served (KIP-511).
            slot.version = 0
            served = self._find_api(api_key, 0)
            slot.form = None if served is None else served.form
        self._decoded_bytes += size_bytes
        self._slots.append(slot)
        if form is not None:
            api_key = form.own_key
            message = form.read_request(message, version)
            version = form.own_versions[version]
        return Request(slot, api_key, version, frame.header.client_id or "", message, frame.refused)

    # Responses.

    def throttle(self, time_ms: int) -> None:
        """Take note of what a response says: how long the client has to wait before its next request."""
        self._throttle_time_ms = max(self._throttle_time_ms, time_ms)

    def take_throttle_time_ms(self) -> int:
        """Return the longest such time since the last call; 0 if there is none."""
        time_ms, self._throttle_time_ms = self._throttle_time_ms, 0
        return time_ms

    def answered(self, slot: Slot, size_bytes: int) -> None:
        """Take note that a slot got its response: its request isn't in memory any more."""
        self._decoded_bytes -= slot.decoded_bytes
        slot.decoded_bytes = 0
        self._unsent.add(size_bytes, slot.rest)
        self._ready()

    def postponed(self, slot: Slot, estimated_bytes: int) -> None:
        """Take note that a slot got a large response, which isn't encoded yet."""
        self._unencoded += 1
        self.answered(slot, estimated_bytes)

    def grown(self, more_bytes: int) -> None:
        """Take note that a large response, as far as it is encoded, has more bytes than were counted."""
        self._unsent.add(more_bytes)

    def encoded(self, slot: Slot, counted_bytes: int) -> None:
        """Take note that a large response is encoded, for which so many bytes were counted."""
        assert slot.payload is not None
        self._unencoded -= 1
        self._unsent.add(len(slot.payload) - counted_bytes, slot.rest)
        self._ready()

    def give_up(self, slot: Slot, error: ProtocolError) -> None:
        """Take note that a slot can't get its response."""
        self._failed(slot, error)

    @property
    def has_ready(self) -> bool:
        """Whether there is a response, or the rest of one, that may leave now."""
        return self._unsent.has_following or (bool(self._slots) and self._slots[0].is_answered)

    def next_unencoded(self) -> Slot | None:
        """Return the slot whose response has to be encoded before anything leaves; None if there is none."""
        if self._unsent.has_following or not self._slots or self._slots[0].unencoded is None:
            return None
        return self._slots[0]

    def take_ready(self) -> bytes:
        """Return the next bytes that may leave now, and free the slots of their responses.

        Small responses that follow each other come together. The bytes count as unsent until ``sent``.
        """
        if self._unsent.has_following:
            return self._unsent.take_following()
        ready: list[bytes] = []
        while self._slots and self._slots[0].payload is not None:
            beginning, rest = self._slots.popleft().take()
            ready.append(beginning)
            if rest:
                self._unsent.follow(rest)
                break
        return self._unsent.take(ready[0] if len(ready) == 1 else b"".join(ready))

    def sent(self, size_bytes: int) -> None:
        """Count bytes of ``take_ready`` as sent."""
        self._unsent.sent(size_bytes)

    @property
    def held_bytes(self) -> int:
        """The bytes that are in memory for this connection alone: of what arrived and isn't a whole request
        yet, of decoded requests without a response, and of responses that aren't sent."""
        return self._frames.buffered_bytes + self._decoded_bytes + self._unsent.own_bytes

    @property
    def in_work_bytes(self) -> int:
        """The part of ``held_bytes`` that is of decoded requests without a response."""
        return self._decoded_bytes

    @property
    def shared(self) -> Collection[SharedBytes]:
        """The parts of unsent responses that other connections may have, too."""
        return self._unsent.shared

    @property
    def has_one_slot(self) -> bool:
        """Whether exactly one request was taken whose response wasn't taken by ``take_ready``."""
        return len(self._slots) == 1

    @property
    def has_slots(self) -> bool:
        """Whether there are requests whose responses weren't taken by ``take_ready``."""
        return bool(self._slots)

    def unanswered(self) -> list[Slot]:
        """The slots without a response, oldest first."""
        return [slot for slot in self._slots if not slot.is_answered]

    def close(self) -> None:
        """Forget all that was received and not sent: the connection is over.

        Connection, slots and this refer to each other. Their bytes must not wait until that is noticed by a
        garbage collection.
        """
        self.is_closed = True
        for slot in self._slots:
            slot.payload = slot.unencoded = None
            slot.rest = ()
        self._slots.clear()
        self._unsent.close()
        self._unsent = Unsent()
        self._decoded_bytes = self._unencoded = 0
        self._frames = FrameReader(0)
