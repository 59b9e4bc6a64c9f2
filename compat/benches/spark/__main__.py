"""Measure how fast metadata logs become tables, in one process, through Spark, and beside kafka-dump-log; how
much memory reading takes; and the latency of a stream: ``python -m compat.benches.spark``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from compat.benches.machine import this_machine
from compat.benches.spark.appenders import WRITABLE_LOGS
from compat.benches.spark.decoding import measure_decoding
from compat.benches.spark.dump_log import measure_dump_log
from compat.benches.spark.history import HISTORIES, Histories, Took
from compat.benches.spark.latency import AT_ONCE, EVERY_S
from compat.benches.spark.sessions import quiet_session
from compat.benches.spark.through_spark import CHOSEN, ThroughSpark
from compat.harness.interrupts import raise_on_signals
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.tables.generated_logs import (
    HISTORY_RECORDS,
    KINDS,
    PART_BYTES_A_RECORD,
    RECORDS,
    RECORDS_A_BATCH,
    write_cluster_history,
    write_log,
)

PARTS = ("decode", "spark", "dump-log", "memory", "stream", "history")
DECODE_GOAL = 4e6
SPARK_GOAL = 2e6
SPARK_CORES = 2
DUMP_LOG_GOAL = 10
SEGMENT_MIB = (256, 1024)
P50_GOAL_MS, P99_GOAL_MS = 150, 300
LATENCY_RUNS, LATENCY_SECONDS = 3, 10.0
HISTORY_GOAL = 300_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit code; a missed goal is not a failure."""
    raise_on_signals()
    options = _parser().parse_args(arguments)
    machine = this_machine()
    print(f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f}; {machine.python}")
    try:
        with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-spark-") as folder:
            for kind in options.log if {"decode", "spark", "dump-log"} & set(options.only) else ():
                _log(Path(folder) / kind, kind, options.records, options.only)
            if "memory" in options.only:
                _memory(Path(folder))
            if "stream" in options.only:
                _stream(Path(folder))
            if "history" in options.only:
                _history(Path(folder), min(options.records, HISTORY_RECORDS))
    except KeyboardInterrupt:
        print("\ninterrupted; all processes are stopped and the folder is removed")
        return 130
    except (MissingComponent, ProcessFailed) as failure:
        print(f"bench-spark failed: {failure}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compat.benches.spark", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        metavar="PART",
        help=f"measure only these parts (default: {' '.join(PARTS)})",
    )
    parser.add_argument(
        "--log",
        nargs="+",
        choices=KINDS,
        default=KINDS,
        metavar="LOG",
        help='the logs to read: "part" has new partitions only, "mix" has 70 %% changes (default: both)',
    )
    parser.add_argument(
        "--records", type=int, default=RECORDS, metavar="N", help="records per log (default: %(default)s)"
    )
    return parser


def _log(folder: Path, kind: str, records: int, parts: Collection[str]) -> None:
    segment = write_log(folder, kind, records)
    print(f"\n{kind}: {records:,} records, {segment.stat().st_size / 1e6:.0f} MB")
    speeds: dict[str, float] = {}
    if "decode" in parts:
        speeds |= _decode(segment)
    if "spark" in parts:
        speeds |= _spark(segment, kind, records)
    if "dump-log" in parts:
        java = records / measure_dump_log(segment)
        print(f"  kafka-dump-log: {_millions(java)} records/s (goal: ours is ≥ {DUMP_LOG_GOAL} × as fast)")
        for name, speed in speeds.items():
            print(f"    {name}: {speed / java:.1f} × as fast")


def _decode(segment: Path) -> dict[str, float]:
    """Measure decoding in one process; return records per second by title."""
    speed = measure_decoding(segment)
    print(
        f"  disk to Arrow, all typed tables: {_millions(speed.records_a_core_and_s)} records/s per core "
        f"(goal ≥ {_millions(DECODE_GOAL)}); {speed.process_s:.2f} s process time, "
        f"{speed.wall_s:.2f} s wall time"
    )
    return {"disk to Arrow, one process": speed.records / speed.wall_s}


def _spark(segment: Path, kind: str, records: int) -> dict[str, float]:
    """Measure reading through Spark; return records per second by title."""
    with quiet_session(SPARK_CORES) as session:
        spark = ThroughSpark(session, SPARK_CORES)
        by_all = records / spark.measure(segment, kind)
        by_chosen = records / spark.measure(segment, kind, CHOSEN[kind])
        by_spark = records / spark.measure_ready_rows(segment, kind)
    print(
        f"  through Spark on {SPARK_CORES} cores, noop sink, goal ≥ {_millions(SPARK_GOAL)} records/s\n"
        f"    all columns: {_millions(by_all)} records/s\n"
        f"    {len(CHOSEN[kind])} columns ({', '.join(CHOSEN[kind])}): {_millions(by_chosen)} records/s\n"
        f"    Spark alone, as many rows that needn't be decoded: {_millions(by_spark)} records/s"
    )
    through = f"through Spark on {SPARK_CORES} cores"
    return {f"{through}, all columns": by_all, f"{through}, {len(CHOSEN[kind])} columns": by_chosen}


def _memory(folder: Path) -> None:
    print("\nmemory: the peak of a process that reads a segment of new partitions as one task")
    for mib in SEGMENT_MIB:
        records = mib * 2**20 // (PART_BYTES_A_RECORD * RECORDS_A_BATCH) * RECORDS_A_BATCH
        segment = write_log(folder / f"memory-{mib}", "part", records)
        peak_bytes = measure_decoding(segment, runs=1).peak_rss_bytes
        print(f"  {segment.stat().st_size / 2**20:.0f} MiB: {peak_bytes / 2**20:.0f} MiB")
        segment.unlink()


def _stream(folder: Path) -> None:
    print(f"\nstream: latency from append to foreachBatch, {AT_ONCE} records every {EVERY_S * 1000:.0f} ms")
    with quiet_session(SPARK_CORES) as session:
        spark = ThroughSpark(session, SPARK_CORES)
        for number, (name, writable_log) in enumerate(WRITABLE_LOGS.items()):
            with writable_log(folder / f"stream-{number}") as log:
                runs = [spark.latency(log, LATENCY_SECONDS) for _ in range(LATENCY_RUNS)]
            best = min(runs, key=lambda run: run.p50_ms)
            parts = ", ".join(f"{part} {took_ms} ms" for part, took_ms in best.trigger_ms.items() if took_ms)
            print(
                f"  from {name}: p50 {best.p50_ms:.0f} ms (goal ≤ {P50_GOAL_MS}), p99 {best.p99_ms:.0f} ms "
                f"(goal ≤ {P99_GOAL_MS}); best of {LATENCY_RUNS} runs, load {os.getloadavg()[0]:.1f}\n"
                f"    median trigger: {parts}"
            )


def _history(folder: Path, records: int) -> None:
    segment = write_cluster_history(folder / "history", records)
    print(f"\nhistory: {records:,} records, {segment.stat().st_size / 1e6:.0f} MB, on {SPARK_CORES} cores")

    def speed(took: Took) -> str:
        return f"{records / took.wall_s:,.0f} records/s, {records / took.processor_s:,.0f} per core"

    with quiet_session(SPARK_CORES) as session:
        histories = Histories(session, segment.parent, folder / "lake")
        print(f"  reading Parquet alone: {speed(histories.measure_reading())}")
        for history in HISTORIES:
            print(
                f"  {history}, from Parquet: {speed(histories.measure(history))} (goal ≥ {HISTORY_GOAL:,}/s)"
            )
            print(f"  {history}, from the log: {speed(histories.measure_from_source(history))}")


def _millions(number: float) -> str:
    return f"{number / 1e6:.2f} M"


if __name__ == "__main__":
    sys.exit(main())
