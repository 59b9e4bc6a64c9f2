"""Decode a request, or refuse it for its size. Then its first items are read, so that the answer can name
them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kraft_wire.protocol.careful_decode import decode_element
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import api_name
from kraft_wire.protocol.schema import Field
from kraft_wire.protocol.varint import VarintTooLong
from kraft_wire.wire.entry_count import (
    TooManyEntries,
    Walk,
    check_entry_count,
    length_of,
    step_over,
    steps_over,
)
from kraft_wire.wire.framing import MAX_FRAME_BYTES

MOST_ITEMS: Final = 1_000
"""The items that are named at most. A client fails those that its answer doesn't name: in Java, "did not
contain a result"."""


class NamedItems(msgspec.Struct, frozen=True):
    """The items of a request that an answer has errors for: the elements of ``array``.

    ``keys`` are the fields that name an item, and are its first. An item that isn't a structure is its name.
    """

    array: str
    keys: tuple[str, ...]


class RequestTooLarge(ProtocolError):
    """A request that is larger than a request of its API can be."""

    def __init__(self, api: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{api} request of {size_bytes} bytes, at most {limit_bytes} are allowed")


def decode_or_refuse(
    cls: type[Message],
    data: bytes,
    version: int,
    pos: int,
    named: tuple[NamedItems, ...],
    limit: int,
    max_bytes: int = MAX_FRAME_BYTES,
) -> tuple[Message, TooManyEntries | None]:
    """Return the request that begins at ``pos``; with the error, its first items, if it has more than
    ``limit`` entries. Raises DecodeError, and RequestTooLarge if header and request have more than
    ``max_bytes``."""
    if len(data) > max_bytes:
        raise RequestTooLarge(api_name(cls.API_KEY), len(data), max_bytes)
    try:
        check_entry_count(cls, data, version, pos, limit)
    except TooManyEntries as error:
        return read_first_items(cls, data, version, pos, named, limit), error
    message, _ = cls.decode_from(data, version, pos)
    return message, None


def read_first_items(
    cls: type[Message], data: bytes, version: int, pos: int, named: tuple[NamedItems, ...], limit: int
) -> Message:
    """Return a request that has nothing but the names of its first items.

    It ends where the request has more than ``limit`` entries inside of its items, or is malformed.
    """
    request = cls()
    keys = {items.array: items.keys for items in named}
    fields = [field for field in cls.FIELDS if field.is_present(version) and not field.is_tagged(version)]
    last = max((place for place, field in enumerate(fields) if field.name in keys), default=-1)
    walk = Walk(cls.NAME, data, limit)
    try:
        for field in fields[: last + 1]:
            if field.name in keys:
                found: list[Any] = []
                setattr(request, field.name, found)
                _read_items(walk, field, version, pos, keys[field.name], found)
            pos = step_over(field, version)(walk, pos)
    except (ProtocolError, IndexError, VarintTooLong):
        pass
    return request


def _read_items(
    walk: Walk, field: Field, version: int, pos: int, keys: tuple[str, ...], found: list[Any]
) -> None:
    count, pos = length_of(field, version)(walk.data, pos)
    for _ in range(min(count, MOST_ITEMS)):
        if field.struct is None:
            value, pos = decode_element(field, walk.name, walk.data, version, pos)
            found.append(value)
            continue
        found.append(field.struct(**_first_values(walk, field, version, pos, keys)))
        for step in steps_over(field.struct, version):
            pos = step(walk, pos)


def _first_values(walk: Walk, field: Field, version: int, pos: int, keys: tuple[str, ...]) -> dict[str, Any]:
    assert field.struct is not None
    values: dict[str, Any] = {}
    for key in field.struct.FIELDS[: len(keys)]:
        assert key.name in keys, "the fields that name an item are its first"
        if key.is_present(version):
            values[key.name], pos = decode_element(key, walk.name, walk.data, version, pos)
    return values
