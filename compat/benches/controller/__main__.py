"""Measure our controller and Java's in turn, and print tables: ``python -m compat.benches.controller``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from compat.benches import tiers
from compat.benches.controller.damage import TOPICS, measure_damage
from compat.benches.controller.failover_pieces import pieces_table
from compat.benches.controller.large_log import make_large_log
from compat.benches.controller.large_quorum import JAVA_HEAP, LargeSizes, measure_large
from compat.benches.controller.measure import JAVA_NAME, Sizes, measure
from compat.benches.controller.quorum import QuorumSizes, measure_quorum, median_ms
from compat.benches.controller.reconfigured import measure_reconfigured
from compat.benches.controller.table import (
    damage_rows,
    large_rows,
    quorum_rows,
    reconfigured_rows,
    rows,
    table,
)
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.paths import COMPILED_CODEC, MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import WaitTimeout

F = TypeVar("F")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit code; a missed goal is not a failure."""
    raise_on_signals()
    options = _parser().parse_args(arguments)
    try:
        for part in options.only:
            with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-") as folder:
                PARTS[part](Path(folder))
    except KeyboardInterrupt:
        print("\ninterrupted; all processes are stopped and the folder is removed")
        return 130
    except (MissingComponent, ProcessFailed, WaitTimeout) as failure:
        print(f"bench failed: {failure}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compat.benches.controller", description=__doc__)
    parts = "; ".join(f"{name}: {function.__doc__}" for name, function in PARTS.items())
    help = f"measure only these parts. {parts}"
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=help)
    return parser


def _alone(folder: Path) -> None:
    """one controller, ours with both codecs"""
    sizes = Sizes()
    pure, java = _both("one", folder, lambda kind, tools: measure(kind, folder, tools, sizes))
    print("measuring one of ours with the compiled codec ...", flush=True)
    with ToolServer(folder / "tools.log") as tools:
        compiled = measure("ours", folder / "compiled", tools, sizes, tiers.compiled(COMPILED_CODEC))
    print(
        f"\none controller; {sizes.partitions_a_topic} partitions per topic, replication factor 3; a bulk "
        f"request has {sizes.bulk_topics} topics of {sizes.bulk_partitions} partitions; start-up is the "
        f"median of {sizes.starts} starts\n"
    )
    print(table(rows(sizes), {"ours": pure, "compiled": compiled}, java))


def _quorum(folder: Path) -> None:
    """three controllers and their failovers"""
    sizes = QuorumSizes()
    ours, java = _both("three", folder, lambda kind, tools: measure_quorum(kind, folder, tools, sizes))
    print(f"\nthree controllers; medians of {sizes.failovers} failovers, measured by a client\n")
    print(table(quorum_rows(), {"ours": ours}, java))


def _reconfigured(folder: Path) -> None:
    """failovers of five voters, and of voters that change"""
    sizes = QuorumSizes()
    ours, java = _both(
        "quorums", folder, lambda kind, tools: measure_reconfigured(kind, folder, tools, sizes)
    )
    print(f"\nuntil the next write; medians of {sizes.failovers} failovers, measured by a client\n")
    print(table(reconfigured_rows(), {"ours": ours}, java))


def _failovers(folder: Path) -> None:
    """many failovers of three of ours, piece by piece"""
    sizes = QuorumSizes(failovers=20)
    print("measuring three of ours ...", flush=True)
    with ToolServer(folder / "tools.log") as tools:
        figures = measure_quorum("ours", folder, tools, sizes)
    for end, failovers in (("killed", figures.killed), ("stopped", figures.stopped)):
        print(
            f"\nleader {end}, until the next write: median {median_ms(failovers.took_s):.1f} ms, slowest "
            f"{max(failovers.took_s) * 1000:.1f} ms; {failovers.contested} of {sizes.failovers} elections "
            f"contested\n\n{pieces_table(failovers.pieces_ms)}"
        )


def _large(folder: Path) -> None:
    """three controllers with very many partitions"""
    sizes = LargeSizes()
    print(f"writing a log with {sizes.partitions:,} partitions ...", flush=True)
    with ToolServer(folder / "tools.log") as tools:
        log = make_large_log(
            folder / "log",
            tools,
            topics=sizes.topics,
            tail_topics=sizes.tail_topics,
            partitions_a_topic=sizes.partitions_a_topic,
        )
    ours, java = _both("three", folder, lambda kind, tools: measure_large(kind, log, folder, tools, sizes))
    print(
        f"\nthree controllers with {log.partitions:,} partitions, in a snapshot of "
        f"{log.snapshot_bytes / 1e6:.0f} MB and {log.tail_bytes / 1e6:.0f} MB of log after it; medians of "
        f"{sizes.failovers} failovers; Java with {JAVA_HEAP}\n"
    )
    print(table(large_rows(), {"ours": ours}, java))


def _damage(folder: Path) -> None:
    """a flipped bit in one of three logs"""
    ours, java = _both("three", folder, lambda kind, tools: measure_damage(kind, folder, tools))
    print(
        f"\nA and B commit {TOPICS} topics while C is down, and stop. One bit of B's log is flipped. B and C "
        "start, then A.\nThe table shows how many of the topics all three logs have at the end.\n"
    )
    print(table(damage_rows(), {"ours": ours}, java))


PARTS: dict[str, Callable[[Path], None]] = {
    "alone": _alone,
    "quorum": _quorum,
    "reconfigured": _reconfigured,
    "failovers": _failovers,
    "large": _large,
    "damage": _damage,
}


def _both(count: str, folder: Path, measure: Callable[[ControllerKind, ToolServer], F]) -> tuple[F, F]:
    """Measure ours, then Java's."""
    names: dict[ControllerKind, str] = {"ours": "of ours", "java": f"of {JAVA_NAME}"}
    figures = []
    for kind, name in names.items():
        print(f"measuring {count} {name} ...", flush=True)
        with ToolServer(folder / "tools.log") as tools:
            figures.append(measure(kind, tools))
    ours, java = figures
    return ours, java


if __name__ == "__main__":
    sys.exit(main())
