"""Drive kio's codec: a dataclass for each message and version, decoded in Rust and encoded in Python."""

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
    """Return kio's versions of a message, by the schema's name; none if it lacks the message."""
    return tuple(version for name, version in _paths() if name == message)


@cache
def entity_class(message: str, version: int) -> type[Any]:
    """Return kio's class; raises KeyError if it has none."""
    found: type[Any] = getattr(module(message, version), message)
    return found


def module(message: str, version: int) -> Any:
    """Return kio's module of a message, which also has the message's inner structures."""
    name, kind = _paths()[message, version]
    return load_entity_module(name, version, kind)


def messages() -> list[str]:
    """Return the names of all messages that kio has."""
    return sorted({message for message, _ in _paths()})


def decode(message: str, version: int, data: bytes) -> Any:
    """Decode a message; raises ValueError if kio leaves bytes unread, and any error of kio."""
    entity, size = entity_reader(entity_class(message, version))(data, 0)
    if size != len(data):
        raise ValueError(f"kio read {size} of the {len(data)} bytes of {message} {version}")
    return entity


def encode(entity: Any) -> bytes:
    with BytesIO() as buffer:
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def encode_request(request: Any, correlation_id: int, client_id: str) -> bytes:
    """Encode a request with the header that kio assigns to it."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode(header) + encode(request)


def decode_response(message: str, version: int, payload: bytes) -> tuple[int, Any]:
    """Return the correlation id and kio's entity."""
    cls = entity_class(message, version)
    header, size = entity_reader(cls.__header_schema__)(payload, 0)
    return header.correlation_id, decode(message, version, payload[size:])


def plain(entity: Any) -> list[Any]:
    """Return the entity in the format of ``compat.judges.client_codecs.values.plain``."""
    values = []
    for field in dataclasses.fields(entity):
        value, kind = getattr(entity, field.name), field.metadata.get("kafka_type", "")
        is_null_array = value is None and "tuple" in str(field.type)
        values.append(None if is_null_array else _plain(value, kind))
    return values


def restrict(structure: Any, entity: type[Any], version: int) -> None:
    """Replace values that kio can't represent: unknown error codes and negative times.

    kio has types of its own for both, and refuses to decode a value that the type lacks.
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
    """Yield the dataclass in ``Entity | None`` or ``tuple[Entity, ...]``."""
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
    """Return the arguments of ``load_entity_module`` by message and version."""
    return {
        (path.rpartition(":")[2], version): (name, kind)
        for name, by_version in schema_name_map.items()
        for version, by_kind in by_version.items()
        for kind, path in by_kind.items()
    }
