"""kafka-protocol 0.1 (``import kafkaprotocol``): ApiVersions and Metadata as they were in 2021.

What it gets wrong: it can't write an id (its format has sixteen numbers for one value), and of one it reads
the first byte only; a null that is compact it writes as a length of five bytes, and reads as the rest of the
message.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import kafkaprotocol

from kraft_wire.protocol.schema import Structure

CLASSES = {
    "ApiVersionsRequest": kafkaprotocol.ApiVersionsRequest,
    "ApiVersionsResponse": kafkaprotocol.ApiVersionsResponse,
    "MetadataRequest": kafkaprotocol.MetadataRequest,
    "MetadataResponse": kafkaprotocol.MetadataResponse,
}


def versions(message: str) -> range:
    """The versions of one of the four messages."""
    return range(len(CLASSES[message]))


def message_class(message: str, version: int) -> Any:
    return CLASSES[message][version]


def decode(message: str, version: int, data: bytes) -> Any:
    """Its object; raises ValueError where it leaves bytes unread, and what it raises."""
    stream = BytesIO(data)
    decoded = message_class(message, version).unpack(stream)
    if stream.read():
        raise ValueError(f"kafka-protocol left bytes of {message} {version} unread")
    return decoded


def encode(decoded: Any) -> bytes:
    packed: bytes = type(decoded).pack(decoded)
    return packed


def encode_request(message: str, version: int, request: Any, correlation_id: int, client_id: str) -> bytes:
    """A request with its header; a frame's size is the caller's to add."""
    header_class = (
        kafkaprotocol.RequestHeader2
        if message_class(message, version).FLEXIBLE
        else kafkaprotocol.RequestHeader1
    )
    api_key = next(key for key, classes in kafkaprotocol.requests.items() if classes is CLASSES[message])
    header = header_class(api_key, version, correlation_id, client_id, {})
    return encode(header) + encode(request)


def restrict(structure: Structure, version: int) -> None:
    """Take out what it gets wrong: what has an id, and compact nulls."""
    for field in structure.FIELDS:
        value = getattr(structure, field.name)
        if not field.is_present(version):
            continue
        if field.struct is not None and any(
            inner.kind == "uuid" and inner.is_present(version) for inner in field.struct.FIELDS
        ):
            setattr(structure, field.name, [])
        elif value is None and version >= structure.FLEXIBLE_FROM:
            setattr(structure, field.name, [] if field.array else "")
        elif field.struct is not None:
            for element in value or ():
                restrict(element, version)


def leaves(decoded: Any) -> Iterator[Any]:
    """The object's values, without its structure; nothing for the tagged fields, which are dicts."""
    if hasattr(decoded, "_fields"):
        for name, _ in decoded._fields:
            yield from leaves(getattr(decoded, name))
    elif isinstance(decoded, list):
        for element in decoded:
            yield from leaves(element)
    elif not isinstance(decoded, dict):
        yield decoded or "" if isinstance(decoded, bytes) else decoded  # it reads "" as bytes
