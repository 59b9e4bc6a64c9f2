"""Show one direction of a captured TCP stream, a line for every frame. No I/O.

Offsets, also those in errors, count the stream's bytes. A frame starts with the four bytes of its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kraft_wire.cli.codec.lines import Answer, message_members, to_text
from kraft_wire.cli.codec.requests import SaslTokens, SentRequest, SentRequests
from kraft_wire.cli.codec.text import explain
from kraft_wire.cli.dump.java_json import message_json
from kraft_wire.protocol.errors import FrameTooLarge, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.request_header import RequestHeader
from kraft_wire.protocol.messages.response_header import ResponseHeader
from kraft_wire.protocol.registry import request_class, response_class
from kraft_wire.wire.framing import FrameReader
from kraft_wire.wire.headers import (
    API_VERSIONS_KEY,
    decode_request_header,
    request_header_version,
    response_header_version,
)

LENGTH_BYTES = 4
CORRELATION_ID_BYTES = 4
OTHER_FORMATS = {
    b"\x16\x03": "it looks like TLS, which only the two ends can decrypt",
    b"\xd4\xc3\xb2\xa1": "it is a pcap file; take a connection out of it with tcpflow -r, or with tshark",
    b"\xa1\xb2\xc3\xd4": "it is a pcap file; take a connection out of it with tcpflow -r, or with tshark",
    b"\x0a\x0d\x0d\x0a": "it is a pcapng file; take a connection out of it with tcpflow -r, or with tshark",
}
"""The reason why a stream's frames can't be found, by its first bytes."""
NO_BEGINNING = "a stream must start where its connection, or one of its frames, starts"


class Frame(NamedTuple):
    """A frame: the offset of its length in the stream, and the bytes after the length."""

    offset: int
    payload: bytes


class StreamBroken(Exception):
    """A stream can't be split into frames any further: where, and why."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


def frames_of(chunks: Iterator[bytes], max_frame_bytes: int) -> Iterator[list[Frame]]:
    """Yield the frames that each piece of a stream completes.

    Raises StreamBroken, also for an incomplete last frame.
    """
    reader = FrameReader(max_frame_bytes)
    start = b""
    offset = 0
    for chunk in chunks:
        if len(start) < LENGTH_BYTES:
            start = (start + chunk)[:LENGTH_BYTES]
        reader.feed(chunk)
        frames: list[Frame] = []
        try:
            while (payload := reader.next_frame()) is not None:
                frames.append(Frame(offset, payload))
                offset += LENGTH_BYTES + len(payload)
        except FrameTooLarge as error:
            yield frames
            raise StreamBroken(offset, f"{error}; {_hint(start) if not offset else NO_BEGINNING}") from None
        yield frames
    if reader.buffered_bytes:
        raise StreamBroken(offset, f"the stream breaks off, {reader.buffered_bytes} bytes into this frame")


def _hint(start: bytes) -> str:
    return next((why for magic, why in OTHER_FORMATS.items() if start.startswith(magic)), NO_BEGINNING)


class ClientLines:
    """The lines of the frames that a client sent."""

    def __init__(self) -> None:
        self._tokens = SaslTokens()

    def answer(self, frame: Frame) -> Answer:
        if self._tokens.is_token(frame.payload):
            return _token(frame)
        try:
            header, end = decode_request_header(frame.payload)
        except ProtocolError as error:
            return _refusal(frame, "", explain(error, RequestHeader, moved_bytes=frame.offset + LENGTH_BYTES))
        version = header.request_api_version
        shown = f'"header":{message_json(header, request_header_version(header.request_api_key, version))},'
        return _message(frame, shown, request_class(header.request_api_key), version, end)


class ServerLines:
    """The lines of the frames that a server sent in response to these requests."""

    def __init__(self, requests: SentRequests) -> None:
        self._requests = requests
        self._tokens_due = 0

    def answer(self, frame: Frame) -> Answer:
        payload = frame.payload
        correlation_id = int.from_bytes(payload[:CORRELATION_ID_BYTES], signed=True)
        is_known = len(payload) >= CORRELATION_ID_BYTES and correlation_id in self._requests
        if self._tokens_due and not is_known:
            self._tokens_due -= 1
            return _token(frame)
        if len(payload) < CORRELATION_ID_BYTES:
            return _refusal(frame, "", f"a frame of {len(payload)} bytes holds no header")
        sent = self._requests.take(correlation_id)
        if sent is None:
            shown = f'"header":{{"correlationId":{correlation_id}}},'
            return _refusal(frame, shown, "no request with this correlation id is left unanswered")
        self._tokens_due = sent.tokens
        return _response(frame, sent)


def _response(frame: Frame, sent: SentRequest) -> Answer:
    key, version = sent.api_key, sent.version
    try:
        response = response_class(key)
    except KeyError:
        shown = f'"header":{{"correlationId":{int.from_bytes(frame.payload[:4], signed=True)}}},'
        return _refusal(frame, shown, f"it answers a request of API {key}, which doesn't exist")
    header_version = response_header_version(key, version)
    try:
        header, end = ResponseHeader.decode_from(frame.payload, header_version, 0)
    except ProtocolError as error:
        return _refusal(frame, "", explain(error, ResponseHeader, moved_bytes=frame.offset + LENGTH_BYTES))
    shown = f'"header":{message_json(header, header_version)},'
    answer = _message(frame, shown, response, version, end)
    if key == API_VERSIONS_KEY and not answer.ok:
        # A server that doesn't know the version answers with version 0 (KIP-511).
        oldest = _message(frame, shown, response, 0, end)
        return oldest if oldest.ok else answer
    return answer


def _message(frame: Frame, shown: str, cls: type[Message], version: int, start: int) -> Answer:
    try:
        message, end = cls.decode_from(frame.payload, version, start)
    except ProtocolError as error:
        shown += f'"message":"{cls.NAME}","version":{version},'
        return _refusal(frame, shown, explain(error, cls, moved_bytes=frame.offset + LENGTH_BYTES))
    members = message_members(message, version, len(frame.payload) - end)
    return Answer(f'{{"offset":{frame.offset},{shown}{members}}}', True)


def _token(frame: Frame) -> Answer:
    return Answer(f'{{"offset":{frame.offset},"sasl_token_bytes":{len(frame.payload)}}}', True)


def _refusal(frame: Frame, shown: str, reason: str) -> Answer:
    return Answer(f'{{"offset":{frame.offset},{shown}"error":{to_text(reason)}}}', False)


def broken_line(error: StreamBroken) -> Answer:
    """Return the last line of a stream that breaks off."""
    return Answer(f'{{"offset":{error.offset},"error":{to_text(str(error))}}}', False)
