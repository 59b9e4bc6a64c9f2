"""Measure controllers with very many partitions, ours and Java's: ``python -m compat.benches.scale``."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from compat.benches.machine import this_machine
from compat.benches.scale.abuse import measure_abuse
from compat.benches.scale.ends import EndFigures, EndSizes, measure_ends
from compat.benches.scale.growth import Grown, measure_growth
from compat.benches.scale.known import KnownSizes, measure_known
from compat.benches.scale.observers import ObserverSizes, measure_observers
from compat.benches.scale.plots import plot_growth
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import WaitTimeout

GROWTH = (10_000, 40_000, 160_000, 640_000, 2_000_000)
KINDS: tuple[ControllerKind, ...] = ("ours", "java")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit code; a missed goal is not a failure."""
    raise_on_signals()
    options = _parser().parse_args(arguments)
    machine = this_machine()
    print(f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f}")
    try:
        _run(options)
    except KeyboardInterrupt:
        print("\ninterrupted; all processes are stopped and the folder is removed")
        return 130
    except (MissingComponent, ProcessFailed, WaitTimeout) as failure:
        print(f"bench-scale failed: {failure}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.observers:
        for version in options.fetch_versions:
            for kind in options.kinds:
                _show_observers(kind, ObserverSizes(version, options.observers))
    elif options.known:
        for kind in options.kinds:
            for answer_ms in (0, 1000) if kind == "ours" else (0,):
                _show_known(kind, answer_ms)
    elif options.abuse:
        for kind in options.kinds:
            _show_abuse(kind)
    elif options.growth:
        _plot_growth(options)
    else:
        _run_ends(options)


def _run_ends(options: argparse.Namespace) -> None:
    for partitions in options.partitions or [640_000]:
        for controllers in options.controllers:
            sizes = EndSizes(controllers, options.brokers, partitions)
            for kind in options.kinds:
                print(f"\n{kind}: {controllers} controllers, {partitions:,} partitions ...", flush=True)
                _show(_ends(kind, sizes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compat.benches.scale", description=__doc__)
    parser.add_argument(
        "--partitions", type=_at_least(1), nargs="+", help="the sizes of the clusters (default: 640,000)"
    )
    parser.add_argument(
        "--brokers",
        type=_at_least(3),
        default=4,
        help="pretend brokers, at least 3 (default: 4)",
    )
    parser.add_argument(
        "--controllers", type=int, nargs="+", choices=(1, 3), default=[1, 3], help="(default: 1 and 3)"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--abuse", action="store_true", help="let one client ask for too much instead")
    sizes = ", ".join(f"{size:,}" for size in GROWTH)
    growth = f"plot the costs of clusters of other sizes ({sizes}) into this SVG file instead"
    instead.add_argument("--growth", type=_new_file, metavar="FILE", help=growth)
    instead.add_argument("--known", action="store_true", help="see when real brokers know new topics instead")
    many = "let so many pretend brokers (1000) follow the log instead"
    instead.add_argument("--observers", type=_at_least(1), nargs="?", const=1000, help=many)
    versions = "of the Fetches of --observers (default: both)"
    parser.add_argument(
        "--fetch-versions", type=int, nargs="+", choices=(17, 18), default=(17, 18), help=versions
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="(default: both)")
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        return value

    return number


def _new_file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def _ends(kind: ControllerKind, sizes: EndSizes) -> EndFigures:
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-bench-scale-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        return measure_ends(kind, Path(folder), tools, sizes)


def _show_abuse(kind: ControllerKind) -> None:
    print(f"\n{kind}: one client asks for too much")
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-bench-scale-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        for abused in measure_abuse(kind, Path(folder), tools):
            waited = f"longest heartbeat {abused.longest_heartbeat_ms:7,.0f} ms"
            memory = f"memory {abused.more_bytes / 2**20:+,.0f} MiB"
            print(f"{abused.name:<62} {abused.took_s:6.2f} s, {waited}, {memory}", flush=True)
            for failure in abused.failures:
                print(f"  {failure}")


def _plot_growth(options: argparse.Namespace) -> None:
    sizes = [
        EndSizes(brokers=options.brokers, partitions=partitions)
        for partitions in options.partitions or GROWTH
    ]
    grown: list[Grown] = []
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-bench-scale-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        for kind in options.kinds:
            for each in measure_growth(kind, sizes, Path(folder), tools):
                grown.append(each)
                print(each, flush=True)
    options.growth.write_text(plot_growth(grown), encoding="utf-8")


def _show_observers(kind: ControllerKind, sizes: ObserverSizes) -> None:
    who = f"{sizes.brokers:,} brokers with Fetch {sizes.fetch_version}"
    what = f"{sizes.changes_a_second} changes a second for {sizes.seconds:g} s"
    print(f"\n{kind}: {who}, {what}; load {os.getloadavg()[0]:.1f}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-bench-scale-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        figures = measure_observers(kind, Path(folder), tools, sizes)
    print(
        f"controller {figures.controller_share:.0%} of a core, client {figures.client_share:.0%}; "
        f"{figures.fetches_a_second:,.0f} fetches/s"
        + (f"; {figures.unknown} changes weren't known to all in the end" if figures.unknown else "")
    )
    for name, took_ms in (
        ("change answered", figures.answered_ms),
        ("all have a change", figures.had_ms),
        ("all know its commit", figures.known_ms),
        ("heartbeat answered", figures.heartbeats_ms),
    ):
        _print_times(name, took_ms)


def _show_known(kind: ControllerKind, answer_ms: int) -> None:
    sizes = KnownSizes()
    settings = {"kraft.wire.answer.when.known.ms": str(answer_ms)} if answer_ms else {}
    print(
        f"\n{kind}{f', answers wait up to {answer_ms} ms until brokers know' if answer_ms else ''}: "
        f"{sizes.topics} topics, {sizes.brokers} brokers; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-bench-scale-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
    ):
        figures = measure_known(kind, Path(folder), tools, sizes, settings)
    _print_times("request to answer", figures.answered_ms)
    _print_times("answer to known", figures.known_after_answer_ms)
    _print_times("request to known", figures.known_ms)


def _print_times(name: str, took_ms: list[float]) -> None:
    half, most, longest = (_percentile(took_ms, percent) for percent in (50, 99, 100))
    print(f"{name:<20} p50 {half:6.1f} ms, p99 {most:6.1f} ms, longest {longest:6.1f} ms", flush=True)


def _percentile(values: list[float], percent: int) -> float:
    """Return a percentile by nearest rank; not a number if there are no values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _show(figures: EndFigures) -> None:
    print(f"created {figures.created_per_s:,.0f}/s, resident {figures.resident_bytes / 2**20:,.0f} MiB")
    for name, ended in (("stopped", figures.stopped), ("crashed", figures.crashed)):
        print(
            f"a broker {name}: {ended.took_s:.2f} s, longest heartbeat {ended.longest_heartbeat_ms:,.0f} ms, "
            f"{ended.changes_of_leader} changes of leader, memory +{ended.more_bytes / 2**20:,.0f} MiB"
            + "".join(f"\n  {failure}" for failure in ended.failures)
        )


if __name__ == "__main__":
    sys.exit(main())
