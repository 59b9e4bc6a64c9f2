"""``python -m compat.bench``: measure ours and Java's controllers one after the other, print tables."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from compat.bench.damage import TOPICS, measure_damage
from compat.bench.large_log import make_large_log
from compat.bench.large_quorum import JAVA_HEAP, LargeSizes, measure_large
from compat.bench.measure import JAVA_NAME, Sizes, measure
from compat.bench.quorum import QuorumSizes, measure_quorum
from compat.bench.table import damage_rows, large_rows, quorum_rows, rows, table
from compat.harness.cluster import ControllerKind
from compat.harness.interrupts import raise_on_signals
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import WaitTimeout

F = TypeVar("F")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code; a goal that is missed is no failure."""
    raise_on_signals()
    options = _parser().parse_args(arguments)
    try:
        for part in options.only:
            with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-") as folder:
                PARTS[part](Path(folder))
    except KeyboardInterrupt:
        print("\ninterrupted; everything is stopped and removed")
        return 130
    except (MissingComponent, ProcessFailed, WaitTimeout) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compat.bench", description=__doc__)
    parts = " ".join(f"{name} is {function.__doc__}" for name, function in PARTS.items())
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=parts)
    return parser


def _alone(folder: Path) -> None:
    """one controller."""
    sizes = Sizes()
    figures = _both("one", folder, lambda kind, tools: measure(kind, folder, tools, sizes))
    print(
        f"\n{sizes.partitions_a_topic} partitions a topic, replication factor 3; a bulk request has "
        f"{sizes.bulk_topics} topics of {sizes.bulk_partitions}; start-up is the median of {sizes.starts}\n"
    )
    print(table(rows(sizes), *figures))


def _quorum(folder: Path) -> None:
    """three controllers."""
    sizes = QuorumSizes()
    figures = _both("three", folder, lambda kind, tools: measure_quorum(kind, folder, tools, sizes))
    print(f"\nthree controllers; medians of {sizes.failovers} failovers as a client sees them\n")
    print(table(quorum_rows(), *figures))


def _large(folder: Path) -> None:
    """three controllers with very many partitions."""
    sizes = LargeSizes()
    print(f"making a log of {sizes.partitions:,} partitions ...", flush=True)
    with ToolServer(folder / "tools.log") as tools:
        log = make_large_log(
            folder / "log",
            tools,
            topics=sizes.topics,
            tail_topics=sizes.tail_topics,
            partitions_a_topic=sizes.partitions_a_topic,
        )
    figures = _both("three", folder, lambda kind, tools: measure_large(kind, log, folder, tools, sizes))
    print(
        f"\nthree controllers with {log.partitions:,} partitions, in a snapshot of "
        f"{log.snapshot_bytes / 1e6:.0f} MB and {log.tail_bytes / 1e6:.0f} MB of log behind it; medians of "
        f"{sizes.failovers} failovers; Java with {JAVA_HEAP}\n"
    )
    print(table(large_rows(), *figures))


def _damage(folder: Path) -> None:
    """a flipped bit in one of three logs."""
    figures = _both("three", folder, lambda kind, tools: measure_damage(kind, folder, tools))
    print(
        f"\nA and B commit {TOPICS} topics while C is down, and stop; one bit of B's log flips; B and C "
        "start, then A:\nhow many of the topics all three logs hold in the end\n"
    )
    print(table(damage_rows(), *figures))


PARTS: dict[str, Callable[[Path], None]] = {
    "alone": _alone,
    "quorum": _quorum,
    "large": _large,
    "damage": _damage,
}


def _both(count: str, folder: Path, measure: Callable[[ControllerKind, ToolServer], F]) -> tuple[F, F]:
    """Ours, then Java's."""
    names: dict[ControllerKind, str] = {"ours": "ours", "java": JAVA_NAME}
    figures = []
    for kind, name in names.items():
        print(f"measuring {count} of {name} ...", flush=True)
        with ToolServer(folder / "tools.log") as tools:
            figures.append(measure(kind, tools))
    ours, java = figures
    return ours, java


if __name__ == "__main__":
    sys.exit(main())
