"""The screen without a name: how large the cluster is, and what isn't as it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from kraft_wire.cli.describe.brokers import FENCED, SHUTTING_DOWN, state_of
from kraft_wire.cli.describe.quorum import voter_ids
from kraft_wire.cli.describe.table import NOTHING, cell
from kraft_wire.cli.describe.topics import PartitionCounts
from kraft_wire.logs.metadata_at import UNKNOWN, MetadataThen
from kraft_wire.metadata.features.metadata_version import name_of
from kraft_wire.metadata.features.supported import METADATA_VERSION

UNKNOWN_LEADER: Final = "unknown: the log doesn't have its election any more"
NO_LEADER_YET: Final = "none yet"


class Overview(msgspec.Struct):
    """Counts of the whole cluster. ``leader`` is null if it isn't known."""

    metadata_version: str | None
    kraft_version: int
    leader: int | None
    voters: list[int]
    controllers: int
    brokers: int
    fenced: int
    in_controlled_shutdown: int
    topics: int
    partitions: PartitionCounts
    configured_resources: int


def overview_of(then: MetadataThen) -> Overview:
    """Count everything."""
    state, quorum = then.state, then.quorum
    states = Counter(map(state_of, state.brokers.values()))
    partitions = (each for topic in state.topics for each in state.partitions.of_topic(topic.id))
    level = state.features.levels.get(METADATA_VERSION)
    return Overview(
        None if level is None else name_of(level),
        quorum.kraft_version,
        None if quorum.leader_id == UNKNOWN else quorum.leader_id,
        voter_ids(then),
        len(state.controllers),
        len(state.brokers),
        states[FENCED],
        states[SHUTTING_DOWN],
        len(state.topics),
        PartitionCounts.of(partitions),
        sum(1 for _ in state.configs.resources()),
    )


def overview_lines(then: MetadataThen) -> Iterator[str]:
    """Yield the lines of the screen."""
    found = overview_of(then)
    partitions = found.partitions
    texts = {
        "metadata.version": found.metadata_version or NOTHING,
        "kraft.version": str(found.kraft_version),
        "Leader": _leader_text(then.quorum.leader_id, is_empty=then.offset == UNKNOWN),
        "Voters": cell(found.voters),
        "Controllers": f"{found.controllers} registered",
        "Brokers": f"{found.brokers} registered, {found.fenced} fenced, "
        f"{found.in_controlled_shutdown} in controlled shutdown",
        "Topics": str(found.topics),
        "Partitions": f"{partitions.count}, of these {partitions.without_leader} without a leader, "
        f"{partitions.under_replicated} under-replicated, {partitions.reassigning} being reassigned",
        "Configs set on": f"{found.configured_resources} (topics, brokers and others)",
    }
    for name, text in texts.items():
        yield f"{name:<17} {text}"


def _leader_text(leader_id: int, *, is_empty: bool) -> str:
    if leader_id != UNKNOWN:
        return str(leader_id)
    return NO_LEADER_YET if is_empty else UNKNOWN_LEADER
