"""Describe the state of a cluster as plain tables, to compare it with derived tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_wire.metadata.state import MetadataState

StateTables = dict[str, dict[tuple[Any, ...], Any]]
"""A state: for each table by name, the rows' values by key. The cluster is not part of the keys."""
Interval = tuple[tuple[Any, ...], Any, int, int | None]
"""The key, the value, and the offsets between which it was valid; the end is None if it still is."""


def intervals_in(
    states: list[StateTables], table: str, of: Callable[[Any], Any] = lambda value: value
) -> set[Interval]:
    """Return the intervals in which ``of`` a table's value stayed the same; a value of None has no interval.

    ``states`` holds the state after each offset. The values must be hashable.
    """
    found: set[Interval] = set()
    begun: dict[tuple[Any, ...], tuple[Any, int]] = {}
    for offset, state in enumerate(states):
        now = {key: seen for key, value in state[table].items() if (seen := of(value)) is not None}
        for key, (value, start) in list(begun.items()):
            if now.get(key) != value:
                found.add((key, value, start, offset))
                del begun[key]
        for key, value in now.items():
            begun.setdefault(key, (value, offset))
    return found | {(key, value, start, None) for key, (value, start) in begun.items()}


def state_tables(state: MetadataState) -> StateTables:
    """Return a controller's state with the values that the derived tables should have."""
    topics = {topic.id: topic for topic in state.topics}
    return {
        "partitions": {
            (str(topic.id), index): (
                topic.name,
                one.replicas,
                one.isr,
                one.leader,
                one.leader_epoch,
                one.partition_epoch,
                tuple(map(str, one.directories)),
                one.leader_recovery_state,
                one.removing_replicas,
                one.adding_replicas,
                one.elr,
                one.last_known_elr,
            )
            for topic in topics.values()
            for index, one in state.partitions.indexed(topic.id)
        },
        "topics": {(str(topic.id),): (topic.name, topic.partition_count) for topic in topics.values()},
        "brokers": {
            (broker.id,): (
                broker.epoch,
                str(broker.incarnation_id),
                tuple((at.name, at.host, at.port, at.security_protocol) for at in broker.listeners),
                tuple((name, *levels) for name, levels in sorted(broker.features.items())),
                broker.rack,
                broker.fenced,
                broker.in_controlled_shutdown,
                tuple(sorted(map(str, broker.directories))),
                None if broker.cordoned_directories is None else tuple(map(str, broker.cordoned_directories)),
                broker.registration_offset,
                broker.is_migrating_zk_broker,
            )
            for broker in state.brokers.values()
        },
        "configs": {
            (*resource, name): value
            for resource in state.configs.resources()
            for name, value in state.configs.get(*resource).items()
        },
        "features": {(name,): level for name, level in state.features.levels.items()},
    }
