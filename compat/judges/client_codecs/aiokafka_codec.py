"""Drive aiokafka's codec: a hand-written class for each message and version, without tagged fields."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from typing import Any

import aiokafka.protocol
from aiokafka.protocol.api import RequestStruct, Response

from compat.judges.client_codecs.values import flat
from kraft_wire.protocol.registry import request_class, response_class

# aiokafka gets these wrong, and never sends them: Kafka's are flexible, or their leader epoch has four bytes.
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
    """Return aiokafka's classes by the schema's name and the version."""
    for module in pkgutil.iter_modules(aiokafka.protocol.__path__):
        importlib.import_module(f"{aiokafka.protocol.__name__}.{module.name}")
    found = {(request_class(cls.API_KEY).NAME, cls.API_VERSION): cls for cls in _subclasses(RequestStruct)}
    found |= {(response_class(cls.API_KEY).NAME, cls.API_VERSION): cls for cls in _subclasses(Response)}
    return found


def versions(message: str) -> list[int]:
    """Return the versions of a message that aiokafka encodes correctly."""
    return [
        version for name, version in sorted(messages()) if name == message and (name, version) not in WRONG
    ]


def decode(message: str, version: int, data: bytes) -> Any:
    """Decode a message; raises ValueError if aiokafka leaves bytes unread, and any error of aiokafka."""
    stream = BytesIO(data)
    decoded = messages()[message, version].decode(stream)
    if stream.read():
        raise ValueError(f"aiokafka left bytes of {message} {version} unread")
    return decoded


def encode(decoded: Any) -> bytes:
    encoded: bytes = decoded.encode()
    return encoded


def encode_request(request: Any, correlation_id: int, client_id: str) -> bytes:
    """Encode a request with aiokafka's header."""
    header: bytes = request.build_request_header(correlation_id, client_id).encode()
    return header + encode(request)


def decode_response(message: str, version: int, payload: bytes) -> tuple[int, Any]:
    """Return the correlation id and aiokafka's object; the request's class knows the header."""
    stream = BytesIO(payload)
    request = messages()[message.replace("Response", "Request"), version]
    header = request.parse_response_header(request, stream)
    return header.correlation_id, decode(message, version, stream.read())


def leaves(decoded: Any) -> list[Any]:
    """Return the object's values without its structure, because aiokafka groups fields differently."""
    return list(flat([getattr(decoded, name) for name in decoded.SCHEMA.names]))


def _subclasses(cls: type[Any]) -> Iterator[Any]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
