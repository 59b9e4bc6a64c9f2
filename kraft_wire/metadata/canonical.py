"""Convert the state to a form that can be compared: equal states give equal forms, however they were
built."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from kraft_wire.metadata.state import MetadataState
from kraft_wire.metadata.topics import Topic


def canonical(state: MetadataState, *, offsets: bool = False) -> dict[str, Any]:
    """Return everything that the state holds, as sorted builtin types.

    ``offsets`` adds what a snapshot doesn't have: the offsets of registrations and feature changes, the last
    applied one, and the open transaction.
    """
    brokers = [_plain(broker) for _, broker in sorted(state.brokers.items())]
    if not offsets:
        for broker in brokers:
            del broker["registration_offset"]
    resources = sorted(state.configs.resources())
    form: dict[str, Any] = {
        "features": dict(sorted(state.features.levels.items())),
        "brokers": brokers,
        "controllers": [_plain(controller) for _, controller in sorted(state.controllers.items())],
        "topics": [_topic(state, topic) for topic in sorted(state.topics, key=lambda topic: topic.name)],
        "configs": [[*resource, sorted(state.configs.get(*resource).items())] for resource in resources],
        "quotas": sorted([repr(entity), sorted(of.items())] for entity, of in state.quotas.by_entity.items()),
        "producer_ids": [state.producer_ids.has_allocated, state.producer_ids.next_producer_id],
        "acls": [[str(acl_id), _plain(acl)] for acl_id, acl in sorted(state.acls.by_id.items())],
        "scram": [[*user, _plain(secret)] for user, secret in sorted(state.scram.by_user.items())],
        "tokens": [_plain(token) for _, token in sorted(state.tokens.by_id.items())],
    }
    if offsets:
        form["offsets"] = [state.last_applied_offset, state.features.epoch, state.transaction_start]
    return form


def fingerprint(state: MetadataState, *, offsets: bool = False) -> str:
    """Return the SHA-256 of the canonical form, in hexadecimal."""
    encoded = msgspec.json.encode(canonical(state, offsets=offsets), order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def _topic(state: MetadataState, topic: Topic) -> list[Any]:
    partitions = [[index, _plain(one)] for index, one in state.partitions.indexed(topic.id)]
    return [topic.name, str(topic.id), topic.partition_count, partitions]


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)
