"""Emit the index of generated messages: the module of each class, and the class of each key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from codegen.emit.code import INDENT
from codegen.emit.module import MARK
from codegen.emit.plan import MessagePlan
from codegen.schema.errors import SchemaError
from codegen.schema.model import Message

CLUSTER_METADATA_ARTIFACT = "kafka-metadata"
"""Its records are in __cluster_metadata; tiered storage has records of its own under the same ids."""
_COORDINATOR_ARTIFACT = re.compile(r"kafka-(?P<name>\w+)-coordinator")


def emit_index(plans: list[MessagePlan], artifacts: Mapping[str, str] | None, source: str) -> str:
    """Return the generated package's ``__init__``: tables of names, no import of any message.

    ``artifacts`` says which jar published a schema; None means that all belong together.
    """
    messages = [each.message for each in plans]
    requests = [each for each in messages if each.kind == "request"]
    responses = [each for each in messages if each.kind == "response"]
    records = [
        each
        for each in messages
        if each.kind == "metadata"
        and (artifacts is None or artifacts.get(each.name) == CLUSTER_METADATA_ARTIFACT)
    ]
    lines = [
        f"{MARK}{source}; do not edit.",
        f'"""The {len(plans)} messages of {source}, one module each; this index imports none of them."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
    ]
    modules = {each.message.name: each.module for each in plans}
    lines += _table("MODULES: Final[dict[str, str]]", "Every message's module.", modules.items())
    lines += _table("REQUESTS: Final[dict[int, str]]", "Requests by API key.", _by_key(requests))
    lines += _table("RESPONSES: Final[dict[int, str]]", "Responses by API key.", _by_key(responses))
    lines += _table(
        "METADATA_RECORDS: Final[dict[int, str]]", "Records of __cluster_metadata by id.", _by_key(records)
    )
    lines += _table(
        "COORDINATOR_RECORDS: Final[dict[str, dict[int, tuple[str, str]]]]",
        "Keys and values in the coordinators' topics, by coordinator and record type.",
        _coordinators(messages, artifacts or {}),
    )
    listeners = [
        (each.api_key, each.listeners) for each in sorted(requests, key=lambda each: each.api_key or 0)
    ]
    lines += _table(
        "LISTENERS: Final[dict[int, tuple[str, ...]]]", "The kinds of servers that serve an API.", listeners
    )
    unstable = tuple(each.api_key for each in requests if each.latest_version_unstable)
    lines += [
        f"UNSTABLE_LATEST: Final = {unstable!r}",
        '"""APIs whose latest version is not stable yet."""',
        "",
    ]
    return "\n".join(lines)


def _coordinators(
    messages: Iterable[Message], artifacts: Mapping[str, str]
) -> list[tuple[str, dict[int, tuple[str, str]]]]:
    """Return each coordinator, by its jar, with its records: their types start at 0 in every one of them."""
    families: dict[str, list[Message]] = {}
    for each in messages:
        match = _COORDINATOR_ARTIFACT.fullmatch(artifacts.get(each.name, ""))
        if match is not None:
            families.setdefault(match["name"], []).append(each)
    return [(name, found) for name in sorted(families) if (found := _key_value_pairs(families[name]))]


def _key_value_pairs(messages: list[Message]) -> dict[int, tuple[str, str]]:
    keys = dict(_by_key(each for each in messages if each.kind == "coordinator-key"))
    values = dict(_by_key(each for each in messages if each.kind == "coordinator-value"))
    for record_type in sorted(keys.keys() ^ values.keys()):
        name = keys.get(record_type) or values[record_type]
        raise SchemaError(name, f"coordinator record {record_type} has a key or a value only")
    return {record_type: (keys[record_type], values[record_type]) for record_type in keys}


def _by_key(messages: Iterable[Message]) -> list[tuple[int, str]]:
    found: dict[int, str] = {}
    for each in messages:
        if each.api_key is None:
            raise SchemaError(each.name, f"a {each.kind} needs an apiKey")
        if each.api_key in found:
            raise SchemaError(each.name, f"{each.kind} {each.api_key} is {found[each.api_key]} already")
        found[each.api_key] = each.name
    return sorted(found.items())


def _table(declaration: str, doc: str, rows: Iterable[tuple[object, object]]) -> list[str]:
    body = [f"{INDENT}{key!r}: {value!r}," for key, value in rows]
    return [f"{declaration} = {{", *body, "}", f'"""{doc}"""', ""]
