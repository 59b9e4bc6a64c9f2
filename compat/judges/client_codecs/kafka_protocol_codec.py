"""Drive kafka-protocol 0.1 (``import kafkaprotocol``), which has ApiVersions and Metadata as of 2021.

It can't read flexible Metadata responses without the patches of ``patched``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any
from unittest.mock import patch

import kafkaprotocol
from kafkaprotocol import ktypes

CLASSES = {
    "ApiVersionsRequest": kafkaprotocol.ApiVersionsRequest,
    "ApiVersionsResponse": kafkaprotocol.ApiVersionsResponse,
    "MetadataRequest": kafkaprotocol.MetadataRequest,
    "MetadataResponse": kafkaprotocol.MetadataResponse,
}
ID_BYTES = 16


def versions(message: str) -> range:
    """Return the versions of a message; none if the library lacks it."""
    return range(len(CLASSES.get(message, ())))


def message_class(message: str, version: int) -> Any:
    return CLASSES[message][version]


@contextmanager
def patched() -> Iterator[None]:
    """Correct the library's mistakes within the block.

    Ids: its format has sixteen numbers for one value, so it can't write an id and reads only the first byte.
    Compact nulls: it writes a length of five bytes, reads a null string as the rest of the message, and a
    null array as an empty one.
    """
    with ExitStack() as stack:
        for owner, name, replacement in (
            (ktypes.UUID, "pack", classmethod(lambda cls, value: value)),
            (ktypes.UUID, "unpack", classmethod(lambda cls, stream: stream.read(ID_BYTES))),
            (ktypes.COMPACT_NULLABLE_BYTES, "pack", classmethod(_pack_compact_bytes)),
            (ktypes.COMPACT_NULLABLE_BYTES, "unpack", classmethod(_unpack_compact_bytes)),
            (ktypes.COMPACT_ARRAY, "pack", _pack_compact_array),
            (ktypes.COMPACT_ARRAY, "unpack", _unpack_compact_array),
        ):
            stack.enter_context(patch.object(owner, name, replacement))
        yield


def decode(message: str, version: int, data: bytes) -> Any:
    """Decode a message; raises ValueError if bytes are left unread, and any error of the library."""
    stream = BytesIO(data)
    decoded = message_class(message, version).unpack(stream)
    if stream.read():
        raise ValueError(f"kafka-protocol left bytes of {message} {version} unread")
    return decoded


def encode(decoded: Any) -> bytes:
    packed: bytes = type(decoded).pack(decoded)
    return packed


def encode_request(message: str, version: int, request: Any, correlation_id: int, client_id: str) -> bytes:
    """Encode a request with its header, without the frame's size."""
    is_flexible = message_class(message, version).FLEXIBLE
    api_key = next(key for key, classes in kafkaprotocol.requests.items() if classes is CLASSES[message])
    header_class = kafkaprotocol.RequestHeader2 if is_flexible else kafkaprotocol.RequestHeader1
    return encode(header_class(api_key, version, correlation_id, client_id, {})) + encode(request)


def decode_response(message: str, version: int, payload: bytes) -> tuple[int, Any]:
    """Return the correlation id and the library's object."""
    is_flexible = message_class(message, version).FLEXIBLE and message != "ApiVersionsResponse"
    stream = BytesIO(payload)
    header = (kafkaprotocol.ResponseHeader1 if is_flexible else kafkaprotocol.ResponseHeader0).unpack(stream)
    return header.correlation_id, decode(message, version, stream.read())


def leaves(decoded: Any) -> Iterator[Any]:
    """Yield the object's values without its structure and without tagged fields, which are dicts."""
    if hasattr(decoded, "_fields"):
        for name, kind in decoded._fields:
            value = getattr(decoded, name)
            is_text = kind is not ktypes.UUID and isinstance(value, bytes)
            yield from leaves(value.decode() if is_text else value)  # the library reads "" as bytes
    elif isinstance(decoded, list):
        for element in decoded:
            yield from leaves(element)
    elif not isinstance(decoded, dict):
        yield decoded


def _pack_compact_bytes(cls: Any, value: bytes | None) -> bytes:
    packed: bytes = ktypes.VARINT.pack(0 if value is None else len(value) + 1)
    return packed + (value or b"")


def _unpack_compact_bytes(cls: Any, stream: BytesIO) -> bytes | None:
    size = ktypes.VARINT.unpack(stream)
    return stream.read(size - 1) if size else None


def _pack_compact_array(array: Any, items: list[Any] | None) -> bytes:
    packed: bytes = ktypes.VARINT.pack(0 if items is None else len(items) + 1)
    return packed + b"".join(array._item.pack(item) for item in items or ())


def _unpack_compact_array(array: Any, stream: BytesIO) -> list[Any] | None:
    size = ktypes.VARINT.unpack(stream)
    return [array._item.unpack(stream) for _ in range(size - 1)] if size else None
