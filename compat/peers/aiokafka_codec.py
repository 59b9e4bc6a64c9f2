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


def leaves(decoded: Any) -> list[Any]:
    """The object's values, without its structure: it groups fields in its own way."""
    return [leaf for name in decoded.SCHEMA.names for leaf in flat(getattr(decoded, name))]


def flat(value: Any) -> Iterator[Any]:
    """What is in nested lists and tuples; nothing for the tagged fields, which are a dict."""
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from flat(element)
    elif not isinstance(value, dict):
        yield value


def _subclasses(cls: type[Any]) -> Iterator[Any]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
