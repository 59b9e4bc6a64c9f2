"""The state in a form that can be compared: equal states, however they came about, give equal forms."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from kraft_wire.metadata.state import MetadataState


def canonical(state: MetadataState, *, offsets: bool = False) -> dict[str, Any]:
    """Everything the state holds, as sorted builtin types.

    ``offsets`` adds what a snapshot doesn't carry: the offsets of registrations and feature changes, the last
    applied one, and the open transaction.
    """
    form: dict[str, Any] = {
        "features": dict(sorted(state.features.levels.items())),
        "brokers": [msgspec.to_builtins(broker) for _, broker in sorted(state.brokers.items())],
        "controllers": [msgspec.to_builtins(one) for _, one in sorted(state.controllers.items())],
        "topics": [_topic(state, *key) for key in sorted((topic.name, topic.id) for topic in state.topics)],
        "configs": [
            [*one, sorted(state.configs.get(*one).items())] for one in sorted(state.configs.resources())
        ],
        "quotas": sorted(
            (
                [list(map(list, entity)), sorted(values.items())]
                for entity, values in state.quotas.by_entity.items()
            ),
            key=repr,
        ),
        "producer_ids": [state.producer_ids.any_given_out, state.producer_ids.next_producer_id],
        "acls": [[str(key), msgspec.to_builtins(acl)] for key, acl in sorted(state.acls.by_id.items())],
        "scram": [[*key, msgspec.to_builtins(one)] for key, one in sorted(state.scram.by_user.items())],
        "tokens": [msgspec.to_builtins(token) for _, token in sorted(state.tokens.by_id.items())],
    }
    if offsets:
        form["offsets"] = [state.last_applied_offset, state.features.epoch, state.transaction_start]
    else:
        for broker in form["brokers"]:
            del broker["registration_offset"]
    return form


def fingerprint(state: MetadataState, *, offsets: bool = False) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    encoded = msgspec.json.encode(canonical(state, offsets=offsets), order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def _topic(state: MetadataState, name: str, topic_id: Any) -> list[Any]:
    partitions = state.partitions.indexed(topic_id)
    return [name, str(topic_id), [[index, msgspec.to_builtins(one)] for index, one in partitions]]
