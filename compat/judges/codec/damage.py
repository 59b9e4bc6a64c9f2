"""Damage the bytes or the JSON of a message: a few results are still legal, most aren't."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from compat.judges.codec.wire_map import Sized, TagEntry, TagSection, WireMap
from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.varint import read_uvarint, uvarint

Damage = Callable[[Random, WireMap], bytes | None]
"""A function that returns damaged bytes, or None if the message has nothing that it could damage."""

_BYTES = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)
_SIZES = (-(2**31), -3, -2, -1, 0, 1, 2, 127, 128, 10_000, 32_767, 32_768, 1_000_000, 2**31 - 2, 2**31 - 1)
_VARINTS = tuple(
    bytes.fromhex(text)
    for text in (
        "8000",  # 0, one byte too long
        "8180808000",  # 1, four too long
        "ffffffff07",  # the highest positive
        "8080808008",  # the lowest
        "ffffffff0f",  # -1
        "ffffffff7f",  # bits that don't exist
        "808080808000",  # too long
        "ffffffffffff",
        "80",
    )
)
_MALFORMED_TEXT = tuple(
    bytes.fromhex(text)
    for text in (
        "80", "bf", "c0", "c080", "c1bf", "c2", "c241", "df", "e08080", "e09f80", "e0a0", "e28241", "e282",
        "ed80", "ed9fbf", "eda0", "eda080", "edafbf", "edb080", "edbfbf41", "eda080edb080", "ee80",
        "f0808080", "f08f8080", "f090", "f0908d", "f0908d41", "f09f98", "f48fbfbf", "f4908080", "f5808080",
        "f8888080", "fe", "ff41fe",
    )
)  # fmt: skip


def damaged(random: Random, bytes_map: WireMap) -> bytes:
    """Return the bytes with one change, sometimes with two."""
    while True:
        raw = random.choice(_DAMAGES)(random, bytes_map)
        if raw is not None:
            break
    if raw and random.random() < 0.15:
        raw = random.choice((_cut, _changed, _extended))(random, raw)
    return raw


def _replaced(raw: bytes, start: int, end: int, by: bytes) -> bytes:
    return raw[:start] + by + raw[end:]


# --- anywhere


def _cut(random: Random, raw: bytes) -> bytes:
    return raw[: random.randrange(len(raw) + 1)]


def _changed(random: Random, raw: bytes) -> bytes:
    at = random.randrange(len(raw))
    return _replaced(raw, at, at + 1, bytes([random.choice((*_BYTES, raw[at] ^ 1 << random.randrange(8)))]))


def _extended(random: Random, raw: bytes) -> bytes:
    return raw + random.randbytes(random.randrange(1, 5))


def _truncated(random: Random, where: WireMap) -> bytes:
    return _cut(random, where.data)


def _longer(random: Random, where: WireMap) -> bytes:
    return _extended(random, where.data)


def _one_byte_changed(random: Random, where: WireMap) -> bytes | None:
    return _changed(random, where.data) if where.data else None


def _one_byte_lost(random: Random, where: WireMap) -> bytes | None:
    if not where.data:
        return None
    at = random.randrange(len(where.data))
    return _replaced(where.data, at, at + 1, b"")


def _one_byte_more(random: Random, where: WireMap) -> bytes:
    at = random.randrange(len(where.data) + 1)
    return _replaced(where.data, at, at, random.randbytes(1))


def _anything(random: Random, where: WireMap) -> bytes:
    return bytes(random.choice(_BYTES) for _ in range(random.randrange(40)))


# --- lengths, counts and what they count


def _other_length(random: Random, where: WireMap) -> bytes | None:
    if not where.sized:
        return None
    spot = random.choice(where.sized)
    left = len(where.data) - spot.content
    size = random.choice(
        (*_SIZES, left, left + 1, left - 1, spot.end - spot.content + random.choice((-1, 1)))
    )
    return _replaced(where.data, spot.start, spot.content, spot.size_bytes(size))


def _odd_varint(random: Random, where: WireMap) -> bytes | None:
    spots = [(spot.start, spot.content) for spot in where.sized if spot.compact]
    for section in where.sections:
        spots.append((section.start, section.content))
        for entry in section.entries:
            _, size_at = read_uvarint(where.data, entry.start)
            spots += [(entry.start, size_at), (size_at, entry.content)]
    if not spots:
        return None
    start, end = random.choice(spots)
    padded = where.data[start : end - 1] + bytes([where.data[end - 1] | 0x80, 0])
    return _replaced(where.data, start, end, random.choice((*_VARINTS, padded, padded, padded)))


def _without_value(random: Random, where: WireMap) -> bytes | None:
    """Replace a string, bytes or an array by null or an empty one."""
    if not where.sized:
        return None
    spot = random.choice(where.sized)
    return _replaced(where.data, spot.start, spot.end, spot.size_bytes(random.choice((-1, 0))))


def _malformed_text(random: Random, where: WireMap) -> bytes | None:
    if not where.texts:
        return None
    spot = random.choice(where.texts)
    text = where.data[spot.content : spot.end]
    at = random.randrange(len(text) + 1)
    text = (text[:at] + random.choice(_MALFORMED_TEXT) + text[at:])[:32_767]
    return _with_text(where, spot, text)


def _long_text(random: Random, where: WireMap) -> bytes | None:
    """Insert a string of the maximum length, or of one byte more."""
    compact = [spot for spot in where.texts if spot.compact]
    if not compact or random.random() < 0.9:
        return None
    return _with_text(where, random.choice(compact), b"x" * random.choice((32_767, 32_768)))


def _with_text(where: WireMap, spot: Sized, text: bytes) -> bytes:
    return _replaced(where.data, spot.start, spot.end, spot.size_bytes(len(text)) + text)


def _other_bool(random: Random, where: WireMap) -> bytes | None:
    return _other_byte(random, where, where.bools)


def _other_marker(random: Random, where: WireMap) -> bytes | None:
    return _other_byte(random, where, where.markers)


def _other_byte(random: Random, where: WireMap, spots: list[int]) -> bytes | None:
    if not spots:
        return None
    at = random.choice(spots)
    return _replaced(where.data, at, at + 1, bytes([random.choice(_BYTES)]))


# --- tag sections


def _section(random: Random, where: WireMap) -> TagSection | None:
    """Choose a tag section, usually one that has entries."""
    filled = [section for section in where.sections if section.entries]
    if filled and random.random() < 0.8:
        return random.choice(filled)
    return random.choice(where.sections) if where.sections else None


def _rewritten(where: WireMap, section: TagSection, entries: list[bytes], count: int) -> bytes:
    return _replaced(where.data, section.start, section.end, uvarint(count) + b"".join(entries))


def _raw_entries(where: WireMap, section: TagSection) -> list[bytes]:
    return [where.data[entry.start : entry.end] for entry in section.entries]


def _entries_doubled(random: Random, where: WireMap) -> bytes | None:
    section = _section(random, where)
    if section is None or not section.entries:
        return None
    entries = _raw_entries(where, section)
    entries.insert(random.randrange(len(entries) + 1), random.choice(entries))
    return _rewritten(where, section, entries, len(entries))


def _entries_shuffled(random: Random, where: WireMap) -> bytes | None:
    section = _section(random, where)
    if section is None or len(section.entries) < 2:
        return None
    entries = _raw_entries(where, section)
    random.shuffle(entries)
    return _rewritten(where, section, entries, len(entries))


def _entry_more(random: Random, where: WireMap) -> bytes | None:
    section = _section(random, where)
    if section is None:
        return None
    tag = random.choice((0, 1, 2, 3, 4, 5, 120, 70_000, 2**31 - 1, 2**31, 2**32 - 1))
    payload = bytes(random.choice(_BYTES) for _ in range(random.choice((0, 1, 2, 3, 8, 17))))
    entries = _raw_entries(where, section)
    entry = uvarint(tag) + uvarint(len(payload)) + payload
    entries.insert(random.randrange(len(entries) + 1), entry)
    return _rewritten(where, section, entries, len(entries))


def _other_count(random: Random, where: WireMap) -> bytes | None:
    section = _section(random, where)
    if section is None:
        return None
    entries = _raw_entries(where, section)
    left = len(where.data) - section.start
    count = random.choice((0, len(entries) + 1, left, left - 1, 9_999, 10_001, 2**31 - 1, 2**31, 2**32 - 1))
    return _rewritten(where, section, entries, count)


def _entry_with(random: Random, where: WireMap, change: Callable[[TagEntry], bytes]) -> bytes | None:
    section = _section(random, where)
    if section is None or not section.entries:
        return None
    entry = random.choice(section.entries)
    return _replaced(where.data, entry.start, entry.content, change(entry))


def _other_tag(random: Random, where: WireMap) -> bytes | None:
    tag = random.choice((0, 1, 2, 3, 4, 5, 70_000, 2**31 - 1, 2**31, 2**32 - 1))
    return _entry_with(random, where, lambda entry: uvarint(tag) + uvarint(entry.end - entry.content))


def _other_tag_size(random: Random, where: WireMap) -> bytes | None:
    size = random.choice((0, 1, 2, 100, 2**31 - 1, 2**31, 2**32 - 1))
    return _entry_with(random, where, lambda entry: uvarint(entry.tag) + uvarint(size))


_DAMAGES: tuple[Damage, ...] = (
    _truncated,
    _longer,
    _one_byte_changed,
    _one_byte_changed,
    _one_byte_lost,
    _one_byte_more,
    _anything,
    _other_length,
    _other_length,
    _odd_varint,
    _odd_varint,
    _without_value,
    _without_value,
    _malformed_text,
    _long_text,
    _other_bool,
    # More often, because few messages have a marker.
    *[_other_marker] * 8,
    _entries_doubled,
    _entries_shuffled,
    _entry_more,
    _other_count,
    _other_tag,
    _other_tag_size,
)


# --- JSON


_LEAVES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 127, 128, 255, 256, 257, -128, -129, 32_767, 32_768, -32_768, -32_769,
    65_535, 65_536, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63),
    -(2**63) - 1, 10**30, 0.0, 1.0, -1.5, 1e300, "", "x", "0x10", "10", "true", "null", "NaN", "AAAA", "AA==",
    "AA=", "AA", "A", "A A=", "AA==\n", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA==",
    "AAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAB", "_____________________w", "++++++++++++++++++++++",
    "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAA", "\u20ac", "\ud800", "AA\u20ac=", "A===", "====",
    "AAAA====", "AB==",
    "AA==AAAA", "AA== AA==", "-_-_", "+/+/", [], [None], [[]], [0], ["x"], {}, {"x": 1}, [{}],
)  # fmt: skip


def damaged_json(random: Random, tree: dict[str, Any], cls: type[Structure]) -> dict[str, Any]:
    """Return a copy of the JSON tree of a ``cls`` with one change."""
    changed = copy.deepcopy(tree)
    node = random.choice(_nodes(changed))
    if isinstance(node, list):
        _damage_list(random, node)
    else:
        _damage_object(random, node, sorted({"anything", *_names(cls)}))
    return changed


def _names(cls: type[Structure]) -> Iterator[str]:
    """Yield the JSON names of all fields of all versions."""
    for field in cls.FIELDS:
        yield field.json_name
        if field.struct is not None:
            yield from _names(field.struct)


def _nodes(node: Any) -> list[Any]:
    """Return the objects and arrays of the tree."""
    if not isinstance(node, dict | list):
        return []
    children = node.values() if isinstance(node, dict) else node
    return [node, *(found for child in children for found in _nodes(child))]


def _damage_list(random: Random, node: list[Any]) -> None:
    if node and random.random() < 0.5:
        at = random.randrange(len(node))
        node[at] = _other_leaf(random, node[at])
    else:
        node.append(random.choice(_LEAVES))


def _damage_object(random: Random, node: dict[str, Any], names: list[str]) -> None:
    draw = random.random()
    if not node or draw < 0.15:
        node[random.choice(names)] = random.choice(_LEAVES)
    elif draw < 0.3:
        del node[random.choice(list(node))]
    elif draw < 0.4:
        items = list(node.items())
        random.shuffle(items)
        node.clear()
        node.update(items)
    else:
        name = random.choice(list(node))
        node[name] = _other_leaf(random, node[name])


def _other_leaf(random: Random, old: Any) -> Any:
    """Return any value, or a text similar to the old one, for parsers that read ids and base64."""
    if not isinstance(old, str) or random.random() < 0.4:
        return random.choice(_LEAVES)
    at = random.randrange(len(old) + 1)
    inserted = random.choice(("=", "==", "A", "AA", " ", "\n", "+", "-", "\u00e4", ""))
    return random.choice((old + inserted, old[:at] + inserted + old[at + 1 :], old.rstrip("="), old[:-1]))
