"""Compare two sets of schemas, and judge the changes by Kafka's rules of evolution.

A released version must stay as it is, byte for byte and default for default. New versions and tagged fields
may be added. A latest version that its request calls unstable is not released. The rules come from three
authorities:

- The wire format decides about layouts: schemas that are read and written the same at all released versions
  are the same, whatever their names and structure; and no change of bytes is compatible.
- Kafka's checker of metadata schemas (EvolutionVerifier, Unifier) decides about keys and the lowest version.
- The notes beside Kafka's schemas decide about changes that the checker allows: versions, fields and
  nullability are removed, and released versions become flexible, only by a KIP. All of that is incompatible
  here.

compat/interop/codec/test_schema_changes_against_kafka.py lists the changes that the checker judges
differently.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen.diff.change import Change, Pair, say
from codegen.diff.messages import compare_messages, different_bytes
from codegen.schema.model import Message


@dataclass(frozen=True, slots=True)
class MessageDiff:
    """A message that differs between the sets; ``old`` or ``new`` is None if a set lacks it.

    ``different_bytes`` are the versions of both sets at which values that both can hold are written
    differently.
    """

    old: Message | None
    new: Message | None
    changes: tuple[Change, ...]
    different_bytes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        message = self.new or self.old
        assert message is not None
        return message.name

    @property
    def compatible(self) -> bool:
        return all(change.compatible for change in self.changes)


@dataclass(frozen=True, slots=True)
class Diff:
    """All differences, in the order of the messages' names. ``alike`` counts the messages without any."""

    messages: tuple[MessageDiff, ...]
    alike: int

    @property
    def compatible(self) -> bool:
        """Whether Kafka's evolution rules allow every change."""
        return all(each.compatible for each in self.messages)

    @property
    def same_bytes(self) -> bool:
        """Whether every message has the same bytes at every version that both sets have."""
        return not any(each.different_bytes for each in self.messages)


def compare(old: Iterable[Message], new: Iterable[Message]) -> Diff:
    """Compare two sets of checked messages."""
    old_names = {each.name: each for each in old}
    new_names = {each.name: each for each in new}
    released = {name: _released(each, old_names.values()) for name, each in old_names.items()}
    successors = _successors(old_names, new_names)
    found = [_added(each) for name, each in new_names.items() if name not in successors.values()]
    for name, message in old_names.items():
        if name not in successors:
            found.append(_removed(message, released[name]))
            continue
        pair = Pair(message, new_names[successors[name]], released[name])
        changes = compare_messages(pair)
        if changes:
            found.append(MessageDiff(pair.old, pair.new, tuple(changes), different_bytes(pair)))
    changed = sum(each.old is not None and each.new is not None for each in found)
    return Diff(tuple(sorted(found, key=lambda each: each.name)), len(successors) - changed)


def _successors(old: dict[str, Message], new: dict[str, Message]) -> dict[str, str]:
    """Return the new name of every old message that still exists: its own, or that of the message with its
    key."""
    successors = {name: name for name in old if name in new}
    for name in old.keys() - new.keys():
        rest = [each for each in new.keys() - old.keys() if _key(new[each]) == _key(old[name])]
        rivals = [each for each in old.values() if _key(each) == _key(old[name])]
        if old[name].api_key is not None and len(rest) == 1 and len(rivals) == 1:
            successors[name] = rest[0]
    return successors


def _key(message: Message) -> tuple[str, int | None]:
    return message.kind, message.api_key


def _released(message: Message, messages: Iterable[Message]) -> frozenset[int]:
    """Return the versions that others may rely on: all but a latest one that the API's request calls
    unstable."""
    versions = frozenset(message.versions)
    requests = (each for each in messages if each.kind == "request" and each.api_key == message.api_key)
    unstable = message.kind in ("request", "response") and any(
        each.latest_version_unstable for each in requests
    )
    return versions - {message.versions.high} if unstable else versions


def _added(message: Message) -> MessageDiff:
    text = f"added: {_describe(message)}"
    return MessageDiff(None, message, (Change("message-added", "", text, compatible=True),))


def _removed(message: Message, released: frozenset[int]) -> MessageDiff:
    text = f"removed: {_describe(message)}"
    return MessageDiff(message, None, (Change("message-removed", "", text, compatible=not released),))


def _describe(message: Message) -> str:
    key = "" if message.api_key is None else f" {message.api_key}"
    return f"{message.kind}{key}, " + (say(message.versions) if not message.versions.empty else "no version")
