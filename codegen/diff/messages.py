"""Compare messages: key, versions, listeners and stability; their fields; and their bytes."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.diff.change import Change, Pair, say
from codegen.diff.fields import compare_structs
from codegen.diff.wire import layout, same_bytes


def compare_messages(pair: Pair) -> list[Change]:
    """Return all differences between the two states."""
    if pair.new.versions.empty:
        return list(_versions(pair))
    changes = [
        *_identity(pair),
        *_versions(pair),
        *_flexible(pair),
        *_service(pair),
        *compare_structs(pair, pair.old.fields, pair.new.fields, "", pair.common),
    ]
    different = different_bytes(pair)
    # No rule explained it, but a change of bytes is never compatible.
    if pair.released & set(different) and all(each.compatible for each in changes):
        changes.append(pair.change("bytes-changed", "", "the bytes are not the same", different))
    return changes


def different_bytes(pair: Pair) -> tuple[int, ...]:
    """Return the versions of both states at which values that both can hold are written differently."""
    return tuple(
        version
        for version in pair.common
        if not same_bytes(layout(pair.old, version), layout(pair.new, version))
    )


def _identity(pair: Pair) -> Iterator[Change]:
    old, new = pair.old, pair.new
    if old.name != new.name:
        yield pair.change("message-renamed", "", f"was called {old.name}; names are not on the wire")
    if old.kind != new.kind:
        yield _judge("kind-changed", f"type {old.kind} -> {new.kind}", compatible=not pair.released)
    if old.api_key != new.api_key:
        text = f"apiKey {_say(old.api_key)} -> {_say(new.api_key)}"
        yield _judge("key-changed", text, compatible=not pair.released)


def _say(key: int | None) -> str:
    return "none" if key is None else str(key)


def _judge(rule: str, text: str, *, compatible: bool) -> Change:
    """Return a change that is not about the layout of single versions."""
    return Change(rule, "", text, compatible)


def _versions(pair: Pair) -> Iterator[Change]:
    old, new = pair.old.versions, pair.new.versions
    gone = [version for version in old if version not in new]
    if gone:
        compatible = pair.released.isdisjoint(gone)
        text = f"{say(gone)} removed" + (", never released" if compatible else "")
        yield _judge("versions-removed", text, compatible=compatible)
    lower = [version for version in new if version < old.low]
    if lower and not old.empty:
        text = f"{say(lower)} added below the old ones, which Kafka's checker forbids"
        yield _judge("lowest-version-lowered", text, compatible=False)
    higher = [version for version in new if version > old.high]
    if higher:
        yield pair.change("versions-added", "", f"{say(higher)} added")


def _flexible(pair: Pair) -> Iterator[Change]:
    old, new = pair.old.flexible_versions, pair.new.flexible_versions
    if old != new:
        broken = [version for version in pair.common if (version in old) != (version in new)]
        yield pair.change("flexible-changed", "", f"flexible at {old} -> {new}", broken)


def _service(pair: Pair) -> Iterator[Change]:
    """Return who serves which versions, as far as the schema says."""
    old, new = pair.old, pair.new
    for listener in sorted(set(old.listeners) - set(new.listeners)):
        yield _judge("listener-removed", f"no longer served by {listener}", compatible=not pair.released)
    for listener in sorted(set(new.listeners) - set(old.listeners)):
        yield pair.change("listener-added", "", f"served by {listener} as well")
    if old.latest_version_unstable and not new.latest_version_unstable:
        yield pair.change("stability-changed", "", "the latest version is stable now")
    if new.latest_version_unstable and not old.latest_version_unstable:
        compatible = new.versions.high not in pair.released
        yield _judge("stability-changed", "the latest version is not stable", compatible=compatible)
    if old.deprecated != new.deprecated:
        yield pair.change("deprecated-changed", "", f"deprecated at {old.deprecated} -> {new.deprecated}")
