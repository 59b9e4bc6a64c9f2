"""Judge what exporters did: nothing missing, nothing that wasn't committed, and few things twice. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

GRACE_S: Final = 5.0
"""Positions travel once a second and are written once a second. What a sink has acknowledged so long before a
fault isn't exported again after it."""


class Exported(msgspec.Struct, frozen=True):
    """A record as a sink got it; ``data`` is its JSON text."""

    offset: int
    index: int
    type: str
    data: bytes


class Delivery(NamedTuple):
    """Records that a sink got together, at a time of the monotonic clock."""

    at_s: float
    records: Sequence[Exported]
    is_acknowledged: bool


class Span(NamedTuple):
    """A fault: when it began."""

    name: str
    began_s: float


class Look(NamedTuple):
    """A position that a controller had in its file at a time of the monotonic clock."""

    at_s: float
    controller: str
    exporter: str
    position: int


def incomplete(sink: str, committed: Mapping[int, Exported], got: Iterable[Exported]) -> list[str]:
    """Return what is wrong with the records that a sink has: missing, strange, changed, or for the first time
    after a later one. ``committed`` has the records of the log by offset."""
    violations = []
    seen: set[int] = set()
    last = -1
    for record in got:
        if record.offset in seen:
            continue
        seen.add(record.offset)
        if committed.get(record.offset) != record:
            violations.append(f"{sink}: {record} isn't in the log, which has {committed.get(record.offset)}")
        if record.offset < last:
            violations.append(f"{sink}: offset {record.offset} came first after {last}")
        last = max(last, record.offset)
    missing = sorted(committed.keys() - seen)
    if missing:
        violations.append(f"{sink}: {len(missing)} records are missing, the first at offset {missing[0]}")
    return violations


def repeated_too_late(sink: str, deliveries: Sequence[Delivery], faults: Sequence[Span]) -> list[str]:
    """Return the records that came again though they had been acknowledged long before the last fault.
    Deliveries are in the order of their times, as in the other rules."""
    violations = []
    acknowledged_s: dict[int, float] = {}
    for delivery in deliveries:
        fault = _last_before(delivery.at_s, faults)
        for record in delivery.records:
            first_s = acknowledged_s.get(record.offset)
            if first_s is None:
                continue
            if fault is None:
                violations.append(f"{sink}: offset {record.offset} came again before any fault")
            elif first_s < fault.began_s - GRACE_S:
                violations.append(
                    f"{sink}: offset {record.offset} came again after `{fault.name}`, acknowledged"
                    f" {fault.began_s - first_s:.1f} s before it"
                )
        if delivery.is_acknowledged:
            for record in delivery.records:
                acknowledged_s.setdefault(record.offset, delivery.at_s)
    return violations


def ahead_of_acknowledgement(
    committed: Mapping[int, Exported], deliveries: Sequence[Delivery], looks: Sequence[Look]
) -> list[str]:
    """Return the positions of one exporter that were higher than what its sink had acknowledged."""
    violations = []
    acknowledged_s: dict[int, float] = {}
    for delivery in deliveries:
        if delivery.is_acknowledged:
            for record in delivery.records:
                acknowledged_s.setdefault(record.offset, delivery.at_s)
    latest_s, offsets = -1.0, iter(sorted(committed))
    offset = next(offsets, None)
    for look in sorted(looks, key=lambda look: look.position):
        while offset is not None and offset < look.position:
            latest_s = max(latest_s, acknowledged_s.get(offset, float("inf")))
            offset = next(offsets, None)
        if latest_s > look.at_s:
            violations.append(
                f"{look.exporter}: {look.controller} had position {look.position} before its sink had all"
                " records before it"
            )
    return violations


def repetitions(got: Sequence[Exported]) -> int:
    """Return how many of these records had come before."""
    return len(got) - len({(record.offset, record.index) for record in got})


def doubled(sink: str, repetitions: int) -> list[str]:
    """Return whether a sink that leaves repetitions out has some."""
    return [f"{sink}: {repetitions} records came twice"] if repetitions else []


def _last_before(at_s: float, faults: Sequence[Span]) -> Span | None:
    return max((fault for fault in faults if fault.began_s <= at_s), key=lambda f: f.began_s, default=None)
