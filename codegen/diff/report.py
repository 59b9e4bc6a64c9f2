"""Format a comparison as text for people or as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from codegen.diff import Diff, MessageDiff
from codegen.diff.change import say


def as_text(diff: Diff, old: str, new: str, *, wire_only: bool = False) -> str:
    """Return lines: every message with its changes, ``!`` for an incompatible one; then the sums."""
    lines = [f"{old} -> {new}", ""]
    for each in _shown(diff, wire_only):
        lines += [*_message_lines(each), ""]
    return "\n".join([*lines, *_sums(diff, wire_only)])


def as_json(diff: Diff, old: str, new: str, *, wire_only: bool = False) -> str:
    """Return one JSON object; its keys are those of the README's section on schemas that change."""
    return json.dumps(
        {
            "old": old,
            "new": new,
            "compatible": diff.compatible,
            "same_bytes": diff.same_bytes,
            "alike": diff.alike,
            "messages": [_message_object(each) for each in _shown(diff, wire_only)],
        },
        indent=1,
    )


def _shown(diff: Diff, wire_only: bool) -> Sequence[MessageDiff]:
    return [each for each in diff.messages if each.different_bytes or not wire_only]


def _message_lines(message: MessageDiff) -> Iterator[str]:
    yield message.name
    for change in message.changes:
        mark = " " if change.compatible else "!"
        where = f"{change.path}: " if change.path else ""
        yield f"  {mark} {where}{change.text}"
    if message.different_bytes:
        yield f"    different bytes at {say(message.different_bytes)}"


def _sums(diff: Diff, wire_only: bool) -> Iterator[str]:
    if not wire_only:
        counts = Counter(_fate(each) for each in diff.messages)
        fates = ", ".join(f"{counts[fate]} {fate}" for fate in ("changed", "added", "removed"))
        yield f"{diff.alike} messages are alike, {fates}"
        yield _verdict(diff)
    different = [each.name for each in diff.messages if each.different_bytes]
    yield "bytes at versions that both have: " + (
        f"different in {', '.join(different)}" if different else "the same"
    )


def _fate(message: MessageDiff) -> str:
    return "added" if message.old is None else "removed" if message.new is None else "changed"


def _verdict(diff: Diff) -> str:
    broken = Counter(
        change.rule for each in diff.messages for change in each.changes if not change.compatible
    )
    if not broken:
        return "compatible"
    rules = ", ".join(f"{count} {rule}" for rule, count in sorted(broken.items()))
    count = sum(not each.compatible for each in diff.messages)
    return f"incompatible: {count} message{'s' if count > 1 else ''} ({rules})"


def _message_object(message: MessageDiff) -> dict[str, object]:
    return {
        "message": message.name,
        "old_versions": None if message.old is None else str(message.old.versions),
        "new_versions": None if message.new is None else str(message.new.versions),
        "compatible": message.compatible,
        "different_bytes": list(message.different_bytes),
        "changes": [
            {
                "rule": change.rule,
                "field": change.path or None,
                "change": change.text,
                "compatible": change.compatible,
                "broken_versions": list(change.versions),
            }
            for change in message.changes
        ],
    }
