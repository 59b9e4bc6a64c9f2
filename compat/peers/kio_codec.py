"""kio: a dataclass for every message and version, read in Rust and written in Python."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from typing import Any, get_args, get_type_hints

from kio.index import load_entity_module
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

MS = datetime.timedelta(milliseconds=1)
NO_ID = uuid.UUID(int=0)


@cache
def versions(message: str) -> tuple[int, ...]:
    """The versions that kio has of a message, by the schema's name of it; none where it lacks the message."""
    return tuple(version for name, version in _paths() if name == message)


@cache
def entity_class(message: str, version: int) -> type[Any]:
    """kio's class; raises KeyError where it has none."""
    found: type[Any] = getattr(module(message, version), message)
    return found


def module(message: str, version: int) -> Any:
    """kio's module, which has the structures inside the message as well."""
    name, kind = _paths()[message, version]
    return load_entity_module(name, version, kind)


def messages() -> list[str]:
    """Every message that kio has."""
    return sorted({message for message, _ in _paths()})


def decode(message: str, version: int, data: bytes) -> Any:
    """kio's entity; raises ValueError where it leaves bytes unread, and what kio raises."""
    entity, size = entity_reader(entity_class(message, version))(data, 0)
    if size != len(data):
        raise ValueError(f"kio read {size} of the {len(data)} bytes of {message} {version}")
    return entity


def encode(entity: Any) -> bytes:
    with BytesIO() as buffer:
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def encode_request(request: Any, correlation_id: int, client_id: str) -> bytes:
    """A request with the header that kio says belongs to it."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode(header) + encode(request)


def decode_response(message: str, version: int, payload: bytes) -> tuple[int, Any]:
    """The correlation id, and kio's entity."""
    cls = entity_class(message, version)
    header, size = entity_reader(cls.__header_schema__)(payload, 0)
    return header.correlation_id, decode(message, version, payload[size:])


def plain(entity: Any) -> list[Any]:
    """The entity as ``compat.peers.values.plain`` would have it."""
    values = []
    for field in dataclasses.fields(entity):
        value, kind = getattr(entity, field.name), field.metadata.get("kafka_type", "")
        is_null_array = value is None and "tuple" in str(field.type)
        values.append(None if is_null_array else _plain(value, kind))
    return values


def restrict(structure: Any, entity: type[Any], version: int) -> None:
    """Put values that kio can't hold within its range: error codes that it knows, times that aren't negative.

    kio gives both types of their own, and refuses to read what they have no value for.
    """
    fields = [field for field in structure.FIELDS if field.is_present(version)]
    hints = get_type_hints(entity)
    for field, theirs in zip(fields, dataclasses.fields(entity), strict=True):
        value = getattr(structure, field.name)
        kind = theirs.metadata.get("kafka_type") or ""
        if field.struct is not None and value is not None:
            inner = next(_dataclasses_in(hints[theirs.name]))
            for element in value if field.array else [value]:
                restrict(element, inner, version)
        elif kind == "error_code":
            setattr(structure, field.name, abs(value) % 100)
        elif kind.startswith(("timedelta", "datetime")):
            setattr(structure, field.name, abs(value) % 2**31)


def _dataclasses_in(hint: Any) -> Iterator[type[Any]]:
    """The dataclass in ``Entity | None`` or ``tuple[Entity, ...]``."""
    if dataclasses.is_dataclass(hint):
        yield hint  # type: ignore[misc]
    for inner in get_args(hint):
        yield from _dataclasses_in(inner)


def _plain(value: Any, kind: str) -> Any:
    if dataclasses.is_dataclass(value):
        return plain(value)
    if isinstance(value, tuple):
        return [_plain(element, kind) for element in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return value // MS
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if kind == "uuid":
        return NO_ID.bytes if value is None else value.bytes
    return value


@cache
def _paths() -> dict[tuple[str, int], tuple[str, Any]]:
    """Message and version -> where ``load_entity_module`` finds it."""
    return {
        (path.rpartition(":")[2], version): (name, kind)
        for name, by_version in schema_name_map.items()
        for version, by_kind in by_version.items()
        for kind, path in by_kind.items()
    }
