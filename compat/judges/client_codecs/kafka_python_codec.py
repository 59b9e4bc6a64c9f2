"""Drive kafka-python's codec: a class for each message, which interprets Kafka's own schemas at run time.

Import kafka-python from here: version 3.0.12 loads its schemas with functions of ``importlib.resources`` that
are deprecated in Python 3.11 and 3.12.
"""

from __future__ import annotations

import importlib
import uuid
import warnings
from functools import cache
from typing import Any

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r"(open|read)_text is deprecated", DeprecationWarning)
    import kafka
    import kafka.admin
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.data_container import DataContainer
    from kafka.protocol.schemas import StructField

    PACKAGES = [
        importlib.import_module(f"kafka.protocol.{name}")
        for name in ("admin", "consumer", "metadata", "producer", "sasl")
    ]

__all__ = ["kafka"]

NO_OPERATIONS = -(2**31)
"""Kafka's value for "authorized operations" that weren't requested; kafka-python has a set, or None."""


@cache
def message_class(message: str) -> Any:
    """Return kafka-python's class for a schema's name; raises KeyError if it has none."""
    return messages()[message]


@cache
def messages() -> dict[str, Any]:
    """Return every request and response that kafka-python has, by name."""
    return {
        name: found
        for package in PACKAGES
        for name, found in vars(package).items()
        if isinstance(found, type) and issubclass(found, ApiMessage) and found is not ApiMessage
    }


def versions(message: str) -> range:
    """Return the versions of a message; none if kafka-python lacks it."""
    if message not in messages():
        return range(0)
    cls = message_class(message)
    return range(cls.min_version, cls.max_version + 1)


def decode(message: str, version: int, data: bytes) -> Any:
    """Decode a message. kafka-python doesn't report how many bytes it read."""
    return message_class(message).decode(data, version=version)


def encode(decoded: Any) -> bytes:
    """Encode a decoded object, after adding the ``_header`` that kafka-python's encoder looks for."""
    decoded._header = None
    return bytes(decoded.encode())


def encode_request(request: Any, correlation_id: int, client_id: str) -> bytes:
    """Encode a request with its header; the object knows its version."""
    request.with_header(correlation_id=correlation_id, client_id=client_id)
    return bytes(request.encode(header=True))


def decode_response(message: str, version: int, payload: bytes) -> tuple[int, Any]:
    """Return the correlation id and kafka-python's object."""
    decoded = message_class(message).decode(payload, version=version, header=True)
    return decoded.header.correlation_id, decoded


def plain(container: Any) -> list[Any]:
    """Return the object in the format of ``compat.judges.client_codecs.values.plain``."""
    return [
        _field(field, getattr(container, field.name), container.version)
        for field in container._struct._fields
        if field.for_version_q(container.version)
    ]


def _field(field: Any, value: Any, version: int) -> Any:
    if field.type_str == "bitfield":
        return NO_OPERATIONS if value is None else _signed(sum(1 << bit for bit in value))
    if value is None and not field.nullable_for_version_q(version):
        # kafka-python has None for a tagged structure or id that wasn't sent; in Kafka it has its default.
        if field.is_struct():
            return [inner.default for inner in field._fields if inner.for_version_q(version)]
        return uuid.UUID(int=0).bytes
    return _plain(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "_struct"):
        return plain(value)
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value]
    return value.bytes if isinstance(value, uuid.UUID) else value


def _signed(bits: int) -> int:
    return bits - 2**32 if bits & 2**31 else bits


def encode_structure(fields: list[dict[str, Any]], **values: Any) -> bytes:
    """Encode a flexible structure of these fields, given as in a schema, with kafka-python."""
    schema = {"name": "Structure", "validVersions": "0", "flexibleVersions": "0+", "fields": fields}
    structure = StructField({**schema, "type": "data"})
    container = type("Structure", (DataContainer,), {"_struct": structure})
    return bytes(structure.encode(container(version=0, **values), version=0, compact=True, tagged=True))
