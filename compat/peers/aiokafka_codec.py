"""aiokafka: one class a message and version, written by hand; tagged fields mean nothing to it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from typing import Any

import aiokafka.protocol
from aiokafka.protocol.api import RequestStruct, Response

from compat.peers.values import flat
from kraft_wire.protocol.registry import request_class, response_class

# Its clients never send these: what is flexible in Kafka and not here, and a leader epoch of eight bytes.
WRONG = frozenset(
    {
        ("DescribeAclsRequest", 2),
        ("DescribeAclsResponse", 2),
        ("ListOffsetsRequest", 4),
        ("ListOffsetsRequest", 5),
    }
)


@cache
def messages() -> dict[tuple[str, int], Any]:
    """aiokafka's classes by the schema's name and the version."""
    for module in pkgutil.iter_modules(aiokafka.protocol.__path__):
        importlib.import_module(f"{aiokafka.protocol.__name__}.{module.name}")
    found = {(request_class(cls.API_KEY).NAME, cls.API_VERSION): cls for cls in _subclasses(RequestStruct)}
    found |= {(response_class(cls.API_KEY).NAME, cls.API_VERSION): cls for cls in _subclasses(Response)}
    return found


def versions(message: str) -> list[int]:
    """The versions of a message that aiokafka has right."""
    return [
        version for name, version in sorted(messages()) if name == message and (name, version) not in WRONG
    ]


def decode(message: str, version: int, data: bytes) -> Any:
    """aiokafka's object; raises ValueError where it leaves bytes unread, and what aiokafka raises."""
    stream = BytesIO(data)
    decoded = messages()[message, version].decode(stream)
    if stream.read():
        raise ValueError(f"aiokafka left bytes of {message} {version} unread")
    return decoded


def encode(decoded: Any) -> bytes:
    encoded: bytes = decoded.encode()
    return encoded


def encode_request(request: Any, correlation_id: int, client_id: str) -> bytes:
    """A request with the header that aiokafka gives it."""
    header: bytes = request.build_request_header(correlation_id, client_id).encode()
    return header + encode(request)


def decode_response(message: str, version: int, payload: bytes) -> tuple[int, Any]:
    """The correlation id, and aiokafka's object; the request says which header it has."""
    stream = BytesIO(payload)
    request = messages()[message.replace("Response", "Request"), version]
    header = request.parse_response_header(request, stream)
    return header.correlation_id, decode(message, version, stream.read())


def leaves(decoded: Any) -> list[Any]:
    """The object's values, without its structure: it groups fields in its own way."""
    return list(flat([getattr(decoded, name) for name in decoded.SCHEMA.names]))


def _subclasses(cls: type[Any]) -> Iterator[Any]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
