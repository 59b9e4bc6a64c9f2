"""Measure the codecs in turns: each runs for a few milliseconds, then the next one, many times.

So other load on the machine affects all codecs alike. A round is long enough for the clock and short enough
to fall between two disturbances. Python codecs have one thread and are measured in processor time, Java in
wall time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import msgspec

from compat.benches.codec.payloads import Payload
from compat.benches.codec.workers import JAVA, Codec, Worker

NS_PER_S = 1_000_000_000
DECODE, ENCODE = OPERATIONS = ("decode", "encode")
DECODE_OTHER_IDS = "decode, ids never seen before"
FEWER_ROUNDS = 10
"""The factor for the number of rounds with new ids: such a round decodes thousands of messages."""


ADJUSTMENTS = 10
MOST_GROWTH = 10
"""The largest factor by which one adjustment increases the number of calls."""


class Effort(msgspec.Struct, frozen=True):
    """The number and length of the measurements."""

    rounds: int
    round_s: float
    java_warm_up_s: float
    imports: int
    other_ids: bool


FULL = Effort(rounds=201, round_s=0.002, java_warm_up_s=2.0, imports=7, other_ids=True)
QUICK = Effort(rounds=51, round_s=0.001, java_warm_up_s=1.0, imports=3, other_ids=False)


class Timing(msgspec.Struct, frozen=True):
    """Nanoseconds per call, of the best and of the median round."""

    best_ns: float
    median_ns: float


class Row(msgspec.Struct, frozen=True):
    """The timings of one message by operation and by codec, without codecs that lack the message."""

    payload: Payload
    timings: dict[str, dict[str, Timing]]


class Measured(msgspec.Struct, frozen=True):
    """The rows of all messages, and the version of each codec's library."""

    rows: list[Row]
    versions: dict[str, str]


def measure(
    codecs: Sequence[Codec], payloads: Sequence[Payload], effort: Effort, progress: Callable[[str], None]
) -> Measured:
    """Measure all codecs; raises ProcessFailed if a codec doesn't encode the bytes that it decoded."""
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
    """Run until the codec has reached its speed; return how many calls fill a round.

    The count is adjusted several times, so that a slow first call doesn't lead to rounds of few calls.
    """
    until = time.monotonic() + (effort.java_warm_up_s if worker.codec.name == JAVA else 0)
    loops, adjusted = 1, 0
    while adjusted < ADJUSTMENTS or time.monotonic() < until:
        elapsed_ns = max(1, worker.time_ns(operation, loops))
        wanted = round(loops * effort.round_s * NS_PER_S / elapsed_ns)
        loops = min(max(1, wanted), loops * MOST_GROWTH)
        adjusted += 1
    return loops
