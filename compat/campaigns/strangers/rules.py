"""Judge what was seen of controllers while strangers attacked them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

CHANGE_EVERY_S: Final = 10.0
"""The time for one change of leader while a follower restarts again and again among claimants."""
CLOCKS_DIFFER_S: Final = 0.1
"""Leaderships are timed by the wall clock, when they are logged; controllers count in monotonic time."""
WELL_WITHIN_S: Final = 5.0
CREATE_GOAL_MS: Final = 100.0
STALLED_MS: Final = 2000.0
"""The fetch timeout: followers that hear no leader for so long elect another one."""


class Sighting(msgspec.Struct, frozen=True):
    """Which leader, -1 for none, and which epoch a node names."""

    node_id: int
    leader_id: int
    epoch: int


class Leadership(msgspec.Struct, frozen=True):
    """A node that began to lead an epoch; ``began_s`` is in seconds since 1970."""

    leader_id: int
    epoch: int
    began_s: float


def changed(
    before: Mapping[int, Sighting], sightings: Sequence[Sighting], leaderships: Sequence[Leadership]
) -> list[str]:
    """Return a line for each change of leader or epoch, of which strangers may cause none while all voters
    hear the leader."""
    leaders = [f"node {each.leader_id} became the leader of epoch {each.epoch}" for each in leaderships]
    return leaders + [
        f"node {each.node_id} named leader {each.leader_id} and epoch {each.epoch}; before it was leader "
        f"{before[each.node_id].leader_id} and epoch {before[each.node_id].epoch}"
        for each in sightings
        if each != before[each.node_id]
    ]


def misplaced(ports: Mapping[int, int], found: Mapping[int, Sequence[int]]) -> list[str]:
    """Return a line for each voter that the leader seeks elsewhere than at its own port."""
    return [
        f"the leader seeks node {node_id} at the ports {list(found.get(node_id, ()))}, it is at {port}"
        for node_id, port in ports.items()
        if list(found.get(node_id, ())) != [port]
    ]


def shortest_leadership_s(leaderships: Sequence[Leadership]) -> float | None:
    """Return the shortest time between two changes of leader; None if there weren't two."""
    return min((after.began_s - each.began_s for each, after in pairwise(leaderships)), default=None)


def hurried(leaderships: Sequence[Leadership]) -> list[str]:
    """Return a line for each leader that was replaced too early."""
    return [
        f"node {each.leader_id} led epoch {each.epoch} for {after.began_s - each.began_s:.2f} s until node "
        f"{after.leader_id} led epoch {after.epoch}: one change in {CHANGE_EVERY_S:g} s is allowed"
        for each, after in pairwise(leaderships)
        if after.began_s - each.began_s < CHANGE_EVERY_S - CLOCKS_DIFFER_S
    ]


def late(well_after_s: float, what: str) -> list[str]:
    """Return a line if the quorum was not well in time after ``what``."""
    if well_after_s <= WELL_WITHIN_S:
        return []
    return [f"it was well {well_after_s:.1f} s after {what}: {WELL_WITHIN_S:g} s are allowed"]


def stalled(creations_ms: Sequence[float], failures: Sequence[str], waits_ms: float) -> list[str]:
    """Return a line if clients had no leader for too long: a leader that is lost without a successor is no
    leadership that was replaced. ``waits_ms`` is the time for which a creation already waited at the end."""
    longest_ms = max((*creations_ms, waits_ms))
    lines = [f"failed: {failure}" for failure in failures]
    if not creations_ms:
        lines.append("no topic was created")
    if longest_ms > STALLED_MS:
        lines.append(f"a create-topic took {longest_ms / 1000:.1f} s: {STALLED_MS / 1000:g} s are allowed")
    return lines
