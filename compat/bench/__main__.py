"""``python -m compat.bench``: measure both controllers one after the other, alone and as quorums of three."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from compat.bench.measure import JAVA_NAME, Figures, Sizes, measure
from compat.bench.quorum import QuorumFigures, QuorumSizes, measure_quorum
from compat.bench.table import quorum_rows, rows, table
from compat.harness.cluster import ControllerKind
from compat.harness.interrupts import raise_on_signals
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import WaitTimeout


def main() -> int:
    raise_on_signals()
    sizes = Sizes()
    try:
        with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-") as folder:
            ours = _measure("ours", "our controller", Path(folder), sizes)
            java = _measure("java", JAVA_NAME, Path(folder), sizes)
            our_quorum = _measure_quorum("ours", "three of our controllers", Path(folder))
            java_quorum = _measure_quorum("java", f"three of {JAVA_NAME}", Path(folder))
    except KeyboardInterrupt:
        print("\ninterrupted; everything is stopped and removed")
        return 130
    except (MissingComponent, ProcessFailed, WaitTimeout) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    print(
        f"\n{sizes.partitions_a_topic} partitions a topic, replication factor 3; a bulk request has "
        f"{sizes.bulk_topics} topics of {sizes.bulk_partitions}; start-up is the median of {sizes.starts}\n"
    )
    print(table(rows(sizes), ours, java))
    print(f"\nthree controllers; medians of {QuorumSizes().failovers} failovers as a client sees them\n")
    print(table(quorum_rows(), our_quorum, java_quorum))
    return 0


def _measure(kind: ControllerKind, name: str, folder: Path, sizes: Sizes) -> Figures:
    print(f"measuring {name} ...", flush=True)
    with ToolServer(folder / "tools.log") as tools:
        return measure(kind, folder, tools, sizes)


def _measure_quorum(kind: ControllerKind, name: str, folder: Path) -> QuorumFigures:
    print(f"measuring {name} ...", flush=True)
    with ToolServer(folder / "tools.log") as tools:
        return measure_quorum(kind, folder, tools, QuorumSizes())


if __name__ == "__main__":
    sys.exit(main())
