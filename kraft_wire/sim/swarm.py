"""Derive a run from a seed: which faults it has, how strong they are, and when they happen.

This is swarm testing: a run with few kinds of faults goes deeper than a run with all of them. The schedule is
drawn before the run and names the nodes that each fault hits, so that leaving out some faults doesn't change
the others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.sim.faults import (
    BROKER_FAULTS,
    DAMAGE,
    DISASTERS,
    FAULTS,
    MEMBERSHIP_FAULTS,
    RELEASES,
    STRANGERS,
    Fault,
)
from kraft_wire.sim.machines.handler_cost import HandlerCost
from kraft_wire.sim.machines.world import DiskSpeed
from kraft_wire.sim.network.connections import Faults
from kraft_wire.sim.network.links import LinkConditions
from kraft_wire.sim.options import Options
from kraft_wire.sim.randomness import stream

RARE = ("move", "replace-disk")
"""The faults that few runs with voters that change have."""

DRAFTED_SHARE = 0.1
"""The share of runs with voters that change that speak KIP-853's draft."""

FIRST_DISASTER = 1_000_000
"""The number of the first disaster in a schedule. It doesn't depend on the number of other faults."""

DISASTER_SHARE = 0.25
"""The share of runs with voters that change in which a majority is lost."""

INSPECTOR_SHARE = 0.3
"""The share of runs with whole controllers in which their states are compared by digests."""

SAFETY_SHARE = 0.7
RECOVERY_MS = 18_000
"""The end of a run has no faults, so that the cluster can recover: a share of a short run, this long in a
longer one."""


def safety_ms(seconds: int) -> int:
    """Return how much of a run has faults, in milliseconds."""
    return max(int(seconds * 1000 * SAFETY_SHARE), seconds * 1000 - RECOVERY_MS)


def seconds_for(safe_ms: int) -> int:
    """Return the length of the shortest run that has faults for so long, in seconds."""
    return min(int(safe_ms / SAFETY_SHARE), safe_ms + RECOVERY_MS) // 1000 + 1


def options_of(seed: int, seconds: int = 120) -> Options:
    """Return the options of the run that a seed stands for."""
    chance = stream(seed, "swarm")
    voters = chance.choice((1, 2, 3, 3, 3, 3, 4, 5, 5, 5))
    kinds = [kind for kind in FAULTS if chance.random() < 0.4]
    return Options(
        seed=seed,
        seconds=seconds,
        voters=voters,
        observers=chance.choice((0, 0, 0, 1, 1, 2)),
        observers_only=stream(seed, "swarm of readers").random() < 0.5,
        kraft_version=chance.choice((0, 1, 1)),
        proposals_per_second=chance.choice((2, 5, 10, 20, 40)),
        value_bytes=chance.choice((10, 50, 200, 1000)),
        snapshot_interval_ms=chance.choice((2_000, 10_000, 30_000)),
        retention_bytes=chance.choice((2_000, 20_000, 200_000, 100_000_000)),
        fetch_max_bytes=chance.choice((2_000, 20_000, 1024 * 1024)),
        fetch_snapshot_max_bytes=chance.choice((50, 200, 1024 * 1024)),
        drift_ppm=chance.choice((0, 200, 5_000, 50_000)),
        fault_kinds=tuple(kinds),
        mean_fault_interval_ms=chance.choice((300, 1_000, 3_000, 10_000)),
        link=_link(chance),
        messages=_messages(chance),
        disk=_disk(chance),
        handlers=_handlers(stream(seed, "swarm of handlers")),
    )


def controllers_of(seed: int, seconds: int = 120) -> Options:
    """Return the same run with whole controllers, and with brokers and administrators around them."""
    options = options_of(seed, seconds)
    chance = stream(seed, "swarm of brokers")
    kinds = [kind for kind in BROKER_FAULTS if chance.random() < 0.5]
    return msgspec.structs.replace(
        options,
        controllers=True,
        brokers=chance.choice((1, 3, 3, 4, 5)),
        has_elr=chance.random() < 0.7,
        proposals_per_second=chance.choice((2, 5, 10, 20)),
        fault_kinds=(*options.fault_kinds, *kinds),
        slices=_slices(stream(seed, "swarm of slices")),
        has_inspector=stream(seed, "swarm of inspectors").random() < INSPECTOR_SHARE,
    )


def rolling_of(seed: int, seconds: int = 120) -> Options:
    """Return the same run as ``controllers_of``, during a rolling upgrade: nodes are upgraded twice as often
    as they are downgraded."""
    options = controllers_of(seed, seconds)
    return msgspec.structs.replace(
        options, rolling_upgrade=True, fault_kinds=(*options.fault_kinds, "upgrade", *RELEASES)
    )


def exporting_of(seed: int, seconds: int = 120) -> Options:
    """Return the run that a seed stands for, with exporters. The log waits for them for long, a little, or
    not at all."""
    chance = stream(seed, "swarm of exporters")
    limit = chance.choice((0, 30_000, 100_000_000))
    return msgspec.structs.replace(options_of(seed, seconds), exporters=True, max_wanted_bytes=limit)


def membership_of(seed: int, seconds: int = 60) -> Options:
    """Return the run that a seed stands for, with voters that change."""
    options = options_of(seed, seconds)
    chance = stream(seed, "swarm of voters")
    kinds = [kind for kind in options.fault_kinds if kind not in DAMAGE]
    changes = [kind for kind in MEMBERSHIP_FAULTS if kind not in RARE or chance.random() < 0.4]
    if chance.random() < 0.3:
        changes.extend(STRANGERS)
    changing = msgspec.structs.replace(
        options,
        kraft_version=int(chance.random() < 0.8),
        voters=chance.choice((1, 2, 2, 3, 3, 3, 4, 5)),
        observers=chance.choice((1, 1, 2, 3)),
        observers_only=False,
        voters_change=True,
        auto_join=chance.random() < 0.2,
        drafted=stream(seed, "swarm of dialects").random() < DRAFTED_SHARE,
        fault_kinds=(*kinds, *changes),
    )
    chance = stream(seed, "swarm of disasters")
    return _with_disasters(changing, chance) if chance.random() < DISASTER_SHARE else changing


def _with_disasters(options: Options, chance: random.Random) -> Options:
    """Let a majority be lost in this run: of enough voters that several survive, and not of static ones."""
    return msgspec.structs.replace(
        options,
        kraft_version=1,
        voters=chance.choice((2, 3, 3, 4, 5, 5, 5)),
        fault_kinds=(*options.fault_kinds, *DISASTERS),
    )


def _link(chance: random.Random) -> LinkConditions:
    return LinkConditions(
        min_delay_us=chance.choice((100, 500, 5_000)),
        max_delay_us=chance.choice((500, 5_000, 50_000, 200_000)),
        loss=chance.choice((0.0, 0.0, 0.001, 0.01, 0.05, 0.3)),
    )


def _messages(chance: random.Random) -> Faults:
    return Faults(
        reset=chance.choice((0.0, 0.0, 0.001, 0.01)),
        duplicate=chance.choice((0.0, 0.0, 0.01, 0.1, 0.5)),
        on_the_wire=chance.random() < 0.25,
    )


def _disk(chance: random.Random) -> DiskSpeed:
    return DiskSpeed(min_us=100, max_us=chance.choice((200, 4_000, 30_000, 300_000)))


def _handlers(chance: random.Random) -> HandlerCost:
    """Draw what steps cost: from nothing to 50 times what they cost on our machine, where a step takes some
    50 µs, a record 20 µs if it is decided alone, and 5 µs if it is replayed."""
    return HandlerCost(
        step_us=chance.choice((0, 0, 50, 500, 2_500)),
        decided_record_us=chance.choice((0, 1, 20, 200, 1_000)),
        replayed_record_us=chance.choice((0, 1, 5, 50, 250)),
    )


def _slices(chance: random.Random) -> SliceLimits:
    """Draw how much of a work is done in a step: the small clusters here need small slices for several."""
    window_rows = chance.choice((1, 3, 8, 8192))
    if window_rows == 8192:
        return SliceLimits()
    return SliceLimits(
        window_rows=window_rows,
        few_changes=chance.choice((0, 2)),
        most_considered=chance.choice((1, 10)),
        most_unusual=chance.choice((1, 3, 400)),
    )


def schedule_of(options: Options) -> list[Fault]:
    """Return the faults of a run, in the order in which they happen, each with its number."""
    end_ms = safety_ms(options.seconds)
    faults = [*_common_faults(options, end_ms), *_disasters(options, end_ms)]
    schedule = sorted(faults, key=lambda fault: fault.at_ms)
    if options.only is None:
        return schedule
    wanted = set(options.only)
    return [fault for fault in schedule if fault.number in wanted]


def _common_faults(options: Options, end_ms: int) -> list[Fault]:
    kinds = [kind for kind in options.fault_kinds if kind not in DISASTERS]
    if not kinds:
        return []
    chance = stream(options.seed, "schedule")
    faults: list[Fault] = []
    at_ms = 0
    while True:
        at_ms += 1 + int(chance.random() * 2 * options.mean_fault_interval_ms)
        fault = _draw(options, kinds, chance, len(faults), at_ms)
        if at_ms >= end_ms:
            return faults
        faults.append(fault)


def _disasters(options: Options, end_ms: int) -> list[Fault]:
    """Return two disasters at most, from a stream of their own: the first one when there are some records,
    the second one when the quorum has grown again."""
    kinds = [kind for kind in options.fault_kinds if kind in DISASTERS]
    if not kinds:
        return []
    chance = stream(options.seed, "schedule of disasters")
    first_ms = chance.randrange(2_000, 8_000)
    times_ms = (first_ms, first_ms + chance.randrange(8_000, 24_000))
    faults = [
        _draw(options, kinds, chance, FIRST_DISASTER + turn, at_ms) for turn, at_ms in enumerate(times_ms)
    ]
    return [fault for fault in faults if fault.at_ms < end_ms]


def _draw(options: Options, kinds: Sequence[str], chance: random.Random, number: int, at_ms: int) -> Fault:
    ids = list(options.ids)
    chance.shuffle(ids)
    return Fault(
        number=number,
        at_ms=at_ms,
        kind=chance.choice(kinds),
        nodes=tuple(ids),
        hits_leader=chance.random() < 0.4,
        duration_ms=chance.choice((10, 100, 500, 1_000, 2_500, 5_000, 15_000)),
        seed=chance.getrandbits(32),
    )
