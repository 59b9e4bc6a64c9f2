"""Find the changes of a struct's fields, each with the versions that it breaks.

A field is identified by its name and its place. Names are not on the wire: a new field in the place of a
removed field is that field under another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from codegen.diff.change import Change, Pair, describe
from codegen.diff.wire import field_layout, same_bytes
from codegen.emit.plan import default_source
from codegen.schema.model import Field, Message, Type

Fields = tuple[Field, ...]
FieldRule = Callable[[Pair, Field, Field, str, Sequence[int]], Iterator[Change]]


def compare_structs(
    pair: Pair, old: Fields, new: Fields, path: str, versions: Sequence[int]
) -> Iterator[Change]:
    """Return all changes below ``path``. ``versions`` are those at which both states have the struct."""
    matches = _match(old, new, versions)
    kept = {field.name for field in matches.values()}
    gone = tuple(field for field in old if field.name not in matches)
    for field in gone:
        broken = [version for version in versions if _place(field, version) == "untagged"]
        yield pair.change("field-removed", path + field.name, f"removed: {describe(field)}", broken)
    for field in new:
        if field.name not in kept:
            yield _added(pair, field, gone, path, versions)
    yield from _order(pair, old, new, matches, path, versions)
    for field in old:
        if field.name in matches:
            yield from _compare(pair, field, matches[field.name], path, versions)


def _match(old: Fields, new: Fields, versions: Sequence[int]) -> dict[str, Field]:
    """Return the new state of every old field that has one, by the old name."""
    named = {field.name: field for field in new}
    kept = {
        field.name
        for field in old
        if field.name in named and _stays(old, field, new, named[field.name], versions)
    }
    matches = {name: named[name] for name in kept}
    for field in old:
        for other in new:
            if (
                field.name not in matches
                and other not in matches.values()
                and _took_the_place(old, field, new, other, versions)
            ):
                matches[field.name] = other
    for field in old:
        if field.name not in matches and field.name in named and named[field.name] not in matches.values():
            matches[field.name] = named[field.name]
    return matches


def _stays(old: Fields, field: Field, new: Fields, other: Field, versions: Sequence[int]) -> bool:
    return _places(old, field, versions) == _places(new, other, versions)


def _took_the_place(old: Fields, field: Field, new: Fields, other: Field, versions: Sequence[int]) -> bool:
    """Whether ``other`` is ``field`` under another name; neither name may mean another field in the other
    state."""
    places = _places(old, field, versions)
    return (
        any(places)
        and places == _places(new, other, versions)
        and _alike(field.type, other.type)
        and not any(each.name == field.name and any(_places(new, each, versions)) for each in new)
        and not any(each.name == other.name and any(_places(old, each, versions)) for each in old)
    )


def _places(fields: Fields, field: Field, versions: Sequence[int]) -> list[str]:
    """Return the place of a field at each version: its position or its tag, "" if it is absent."""
    return [_numbered_place(fields, field, version) for version in versions]


def _numbered_place(fields: Fields, field: Field, version: int) -> str:
    place = _place(field, version)
    if place != "untagged":
        return place
    before = fields[: fields.index(field)]
    return f"number {sum(_place(each, version) == 'untagged' for each in before)}"


def _place(field: Field, version: int) -> str:
    if field.tag is not None and version in field.tagged:
        return f"tag {field.tag}"
    return "untagged" if version in field.versions else ""


def _alike(old: Type, new: Type) -> bool:
    """Whether two types are the same except for a struct's name."""
    return (old.base, old.is_array) == (new.base, new.is_array)


def _added(pair: Pair, field: Field, gone: Fields, path: str, versions: Sequence[int]) -> Change:
    for other in gone:
        if (
            field.tag is not None
            and field.tag == other.tag
            and any(each in other.tagged for each in pair.released)
        ):
            text = f"added: {describe(field)}; the tag was {other.name}'s, and a tag is never used again"
            return Change("tag-reused", path + field.name, text, compatible=False)
    broken = [version for version in versions if _place(field, version) == "untagged"]
    return pair.change("field-added", path + field.name, f"added: {describe(field)}", broken)


def _order(
    pair: Pair, old: Fields, new: Fields, matches: dict[str, Field], path: str, versions: Sequence[int]
) -> Iterator[Change]:
    broken = []
    for version in versions:
        both = [
            matches[field.name].name
            for field in old
            if field.name in matches
            and _place(field, version) == _place(matches[field.name], version) == "untagged"
        ]
        if both != [field.name for field in new if field.name in both]:
            broken.append(version)
    if broken:
        yield pair.change("fields-reordered", path.removesuffix("."), "fields are in another order", broken)


def _compare(pair: Pair, old: Field, new: Field, path: str, versions: Sequence[int]) -> Iterator[Change]:
    here = path + new.name
    if old.name != new.name:
        yield pair.change("field-renamed", here, f"was called {old.name}; the bytes are the same")
    both = [version for version in versions if _place(old, version) and _place(new, version)]
    for rule in FIELD_RULES:
        yield from rule(pair, old, new, here, versions if rule is _versions else both)
    if old.type.is_struct and _alike(old.type, new.type):
        yield from compare_structs(pair, _parts(pair.old, old), _parts(pair.new, new), f"{here}.", both)


def _parts(message: Message, field: Field) -> Fields:
    """Return the fields of a struct, specified in place or as a common struct."""
    commons = {each.name: each.fields for each in message.common_structs}
    return field.fields or commons[field.type.struct]


def _type(pair: Pair, old: Field, new: Field, path: str, both: Sequence[int]) -> Iterator[Change]:
    if old.type == new.type:
        return
    text = f"type {old.type} -> {new.type}"
    if _alike(old.type, new.type):
        yield pair.change("struct-renamed", path, f"{text}; the bytes are the same")
        return
    broken = [version for version in both if not _same_bytes(pair, old, new, version)]
    yield pair.change("type-changed", path, text if broken else f"{text}; the bytes are the same", broken)


def _same_bytes(pair: Pair, old: Field, new: Field, version: int) -> bool:
    return same_bytes(field_layout(pair.old, old, version), field_layout(pair.new, new, version))


def _versions(pair: Pair, old: Field, new: Field, path: str, versions: Sequence[int]) -> Iterator[Change]:
    """Compare the versions of a field. It may get a tag where it was absent, if the old state doesn't know
    that tag.

    A reader that knows a tag refuses it at versions that lack it.
    """
    if (old.versions, old.tag, old.tagged) == (new.versions, new.tag, new.tagged):
        return
    broken = [
        version
        for version in versions
        if _place(old, version) != _place(new, version)
        and (_place(old, version) or _place(new, version) == "untagged" or old.tag == new.tag)
    ]
    said = [f"versions {old.versions} -> {new.versions}"] if old.versions != new.versions else []
    if (old.tag, old.tagged) != (new.tag, new.tagged):
        said.append(f"{_say_tag(old)} -> {_say_tag(new)}")
        yield pair.change("tag-changed", path, ", ".join(said), broken)
    else:
        yield pair.change("field-versions-changed", path, ", ".join(said), broken)


def _say_tag(field: Field) -> str:
    return "no tag" if field.tag is None else f"tag {field.tag} at {field.tagged}"


def _nullable(pair: Pair, old: Field, new: Field, path: str, both: Sequence[int]) -> Iterator[Change]:
    if old.nullable == new.nullable:
        return
    broken = [version for version in both if (version in old.nullable) != (version in new.nullable)]
    text = f"nullable at {old.nullable} -> {new.nullable}"
    yield pair.change("nullable-changed", path, text, broken)


def _default(pair: Pair, old: Field, new: Field, path: str, both: Sequence[int]) -> Iterator[Change]:
    """Compare defaults. A default is also the value of a field at versions without it, so it never changes
    after release."""
    if default_source(old) == default_source(new):
        return
    if not _alike(old.type, new.type):
        if not any(_same_bytes(pair, old, new, version) for version in both):
            return  # The changed type explains the change.
        if _parts_of_default(pair.old, old) == _parts_of_default(pair.new, new):
            return
    broken = [version for version in pair.old.versions if version in old.versions]
    text = f"default {_say_default(old)} -> {_say_default(new)}"
    yield pair.change("default-changed", path, text, broken)


def _parts_of_default(message: Message, field: Field) -> tuple[str, ...]:
    """Return the default values of a new struct's fields, because the struct itself is not visible on the
    wire."""
    default = default_source(field)
    if default == "struct":
        parts = _parts(message, field)
        return tuple(value for part in parts for value in _parts_of_default(message, part))
    return ("()",) if default == "[]" else (default,)


def _say_default(field: Field) -> str:
    return "of its type" if field.default is None else repr(field.default)


def _flexible(pair: Pair, old: Field, new: Field, path: str, both: Sequence[int]) -> Iterator[Change]:
    if old.flexible == new.flexible:
        return
    overrides = [
        each.flexible_versions if field.flexible is None else field.flexible
        for each, field in ((pair.old, old), (pair.new, new))
    ]
    broken = [version for version in both if (version in overrides[0]) != (version in overrides[1])]
    yield pair.change("flexible-changed", path, f"flexible at {overrides[0]} -> {overrides[1]}", broken)


def _attributes(pair: Pair, old: Field, new: Field, path: str, _: Sequence[int]) -> Iterator[Change]:
    """Compare the attributes that are not on the wire: how others handle the value."""
    for rule, before, after in (
        ("ignorable", old.ignorable, new.ignorable),
        ("mapKey", old.map_key, new.map_key),
        ("zeroCopy", old.zero_copy, new.zero_copy),
        ("entityType", old.entity_type, new.entity_type),
    ):
        if before != after:
            text = (
                f"{rule} {str(before).lower()} -> {str(after).lower()}"
                if rule != "entityType"
                else (f"entityType {before or 'none'} -> {after or 'none'}")
            )
            yield pair.change(f"{rule}-changed", path, text)


FIELD_RULES: tuple[FieldRule, ...] = (_type, _versions, _nullable, _default, _flexible, _attributes)
