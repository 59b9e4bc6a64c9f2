"""Rounds in turn: each codec runs for some milliseconds, then the next one, over and over.

Whatever else the machine does hits all of them alike. A round is long enough for the clock and short enough
to fall between two disturbances; what Python codecs are given is counted in processor time, as they have one
thread, and Java by the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import msgspec

from compat.bench_codec.payloads import Payload
from compat.bench_codec.workers import JAVA, Codec, Worker

NS_PER_S = 1_000_000_000
DECODE, ENCODE = OPERATIONS = ("decode", "encode")
DECODE_OTHER_IDS = "decode, ids never met before"
FEWER_ROUNDS = 10
"""One round is so many times longer where every id is new, as it takes thousands of messages."""


ADJUSTMENTS = 10
MOST_GROWTH = 10
"""How many times more calls one adjustment may ask for."""


class Effort(msgspec.Struct, frozen=True):
    """How much is measured."""

    rounds: int
    round_s: float
    java_warm_up_s: float
    imports: int
    other_ids: bool


FULL = Effort(rounds=201, round_s=0.002, java_warm_up_s=2.0, imports=7, other_ids=True)
QUICK = Effort(rounds=51, round_s=0.001, java_warm_up_s=1.0, imports=3, other_ids=False)


class Timing(msgspec.Struct, frozen=True):
    """Nanoseconds a call: the best round, and the one in the middle."""

    best_ns: float
    median_ns: float


class Row(msgspec.Struct, frozen=True):
    """One message: by operation, by codec. A codec that lacks the message isn't there."""

    payload: Payload
    timings: dict[str, dict[str, Timing]]


class Measured(msgspec.Struct, frozen=True):
    """The messages' rows, and the version of each codec's library."""

    rows: list[Row]
    versions: dict[str, str]


def measure(
    codecs: Sequence[Codec], payloads: Sequence[Payload], effort: Effort, progress: Callable[[str], None]
) -> Measured:
    """Raises ProcessFailed where a codec doesn't write back the bytes that it read."""
    rows = []
    versions: dict[str, str] = {}
    for payload in payloads:
        progress(payload.title)
        with ExitStack() as stack:
            ready = []
            for codec in codecs:
                worker = stack.enter_context(Worker(codec))
                version = worker.load(payload.message, payload.version, payload.data)
                if version is not None:
                    versions[codec.name] = version
                    ready.append(worker)
            timings = {operation: _measure_operation(ready, operation, effort, 1) for operation in OPERATIONS}
            if effort.other_ids and (others := payload.with_other_ids()):
                for worker in ready:
                    worker.load(payload.message, payload.version, *others)
                fewer = msgspec.structs.replace(effort, rounds=effort.rounds // FEWER_ROUNDS)
                timings[DECODE_OTHER_IDS] = _measure_operation(ready, DECODE, fewer, len(others))
        rows.append(Row(payload, timings))
    return Measured(rows, versions)


def _measure_operation(
    workers: Sequence[Worker], operation: str, effort: Effort, payload_count: int
) -> dict[str, Timing]:
    loops = [_warm_up(worker, operation, effort) for worker in workers]
    rounds: list[list[float]] = [[] for _ in workers]
    for nth in range(effort.rounds):
        for turn in range(len(workers)):
            at = (nth + turn) % len(workers)
            calls = loops[at] * payload_count
            rounds[at].append(workers[at].time_ns(operation, loops[at]) / calls)
    return {
        worker.codec.name: Timing(min(times), statistics.median(times))
        for worker, times in zip(workers, rounds, strict=True)
    }


def _warm_up(worker: Worker, operation: str, effort: Effort) -> int:
    """Run until the codec is at its speed; returns how many calls fill a round.

    The count is adjusted several times: whatever slowed one of the first calls must not make rounds of a few
    cold ones.
    """
    until = time.monotonic() + (effort.java_warm_up_s if worker.codec.name == JAVA else 0)
    loops, adjusted = 1, 0
    while adjusted < ADJUSTMENTS or time.monotonic() < until:
        elapsed_ns = max(1, worker.time_ns(operation, loops))
        wanted = round(loops * effort.round_s * NS_PER_S / elapsed_ns)
        loops = min(max(1, wanted), loops * MOST_GROWTH)
        adjusted += 1
    return loops
