"""Encode and decode requests and responses with their headers: the payload of one frame.

Header versions (KIP-482): a request has header 2 from its first flexible version on, and 1 before; a response
has header 1 from there on, and 0 before. There are two exceptions. ApiVersions responses always have header
0, so that a client can read the answer to a version that the server doesn't know. ControlledShutdown requests
of version 0, which Kafka 4 removed, have header 0, without a client id.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.request_header import RequestHeader
from kraft_wire.protocol.messages.response_header import ResponseHeader
from kraft_wire.protocol.registry import request_class, response_class

CONTROLLED_SHUTDOWN_KEY: Final = 7
API_VERSIONS_KEY: Final = 18
_KEY_AND_VERSION: Final = struct.Struct(">hh")
_CACHED_VERSIONS: Final = 1024
"""More than the versions of all APIs. A bound is needed: versions come from the peer."""


def header_version(message: type[Message], version: int) -> int:
    """Return the header's version for a request or response at this version.

    The message may be of any package of messages. Raises ValueError if it is of another kind.
    """
    flexible = version >= message.FLEXIBLE_FROM
    if message.KIND == "request":
        return 0 if message.API_KEY == CONTROLLED_SHUTDOWN_KEY and version == 0 else 1 + flexible
    if message.KIND == "response":
        return 0 if message.API_KEY == API_VERSIONS_KEY else int(flexible)
    raise ValueError(f"{message.NAME} is neither a request nor a response")


@lru_cache(_CACHED_VERSIONS)
def request_header_version(api_key: int, version: int) -> int:
    """Return the header's version for a request. Raises KeyError for an unknown API."""
    return header_version(request_class(api_key), version)


@lru_cache(_CACHED_VERSIONS)
def response_header_version(api_key: int, version: int) -> int:
    """Return the header's version for a response. Raises KeyError for an unknown API."""
    return header_version(response_class(api_key), version)


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Return a payload's request header and the position at which the request begins.

    A null client id reads as "", as in Java. Raises DecodeError, also for an unknown API, and
    UnsupportedVersion for an API that has no version left. The request's own version is not checked.
    """
    if len(frame) < _KEY_AND_VERSION.size:
        raise DecodeError(
            "RequestHeader", "request_api_key", 0, f"a frame of {len(frame)} bytes holds no header"
        )
    api_key, version = _KEY_AND_VERSION.unpack_from(frame)
    try:
        request = request_class(api_key)
    except KeyError:
        raise DecodeError("RequestHeader", "request_api_key", 0, f"there is no API {api_key}") from None
    if request.MAX_VERSION < request.MIN_VERSION:
        raise UnsupportedVersion(request.NAME, version, f"API {api_key} has no version left")
    header, end = RequestHeader.decode_from(frame, request_header_version(api_key, version), 0)
    if header.client_id is None:
        header.client_id = ""
    return header, end


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Message
) -> bytes:
    """Return a request with its header, without a frame. Raises EncodeError or UnsupportedVersion."""
    out: list[bytes] = []
    header = RequestHeader(api_key, version, correlation_id, client_id)
    try:
        header_version = request_header_version(api_key, version)
    except KeyError:
        raise EncodeError("RequestHeader", "request_api_key", f"there is no API {api_key}") from None
    header.encode_into(out, header_version)
    body.encode_into(out, version)
    return b"".join(out)


def encode_response(api_key: int, version: int, correlation_id: int, body: Message) -> bytes:
    """Return a response with its header, without a frame. Raises EncodeError or UnsupportedVersion."""
    out = [encode_response_header(api_key, version, correlation_id)]
    body.encode_into(out, version)
    return b"".join(out)


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Return the header of a response. Raises EncodeError for an unknown API."""
    try:
        header_version = response_header_version(api_key, version)
    except KeyError:
        raise EncodeError("ResponseHeader", "", f"there is no API {api_key}") from None
    return ResponseHeader(correlation_id).encode(header_version)


def decode_response(
    api_key: int, version: int, frame: bytes, body_class: type[Message] | None = None
) -> tuple[int, Message]:
    """Return a payload's correlation id and response, which is a ``body_class`` if Kafka's isn't used.

    Raises DecodeError or UnsupportedVersion.
    """
    try:
        header_version = response_header_version(api_key, version)
    except KeyError:
        raise DecodeError("ResponseHeader", "", 0, f"there is no API {api_key}") from None
    header, end = ResponseHeader.decode_from(frame, header_version, 0)
    body, _ = (body_class or response_class(api_key)).decode_from(frame, version, end)
    return header.correlation_id, body
