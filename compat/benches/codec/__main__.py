"""Measure the codecs in turn and print the tables: ``python -m compat.benches.codec [MESSAGE ...]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from compat.benches import tiers
from compat.benches.codec.imports import measure_imports
from compat.benches.codec.measure import FULL, QUICK, measure
from compat.benches.codec.payloads import Payload, payloads
from compat.benches.codec.table import Report, markdown, plain
from compat.benches.codec.workers import ALL_CODECS, codecs
from compat.benches.machine import this_machine
from compat.harness.interrupts import raise_on_signals
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit code; a missed goal is not a failure."""
    raise_on_signals()
    options = _parser().parse_args(arguments)
    try:
        report = _measure(options)
    except KeyboardInterrupt:
        print("\ninterrupted; all processes are stopped", file=sys.stderr)
        return 130
    except (MissingComponent, ProcessFailed) as failure:
        print(f"bench-codec failed: {failure}", file=sys.stderr)
        return 1
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report.to_json()), indent=2).decode())
    else:
        print(markdown(report) if options.markdown else plain(report))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compat.benches.codec", description=__doc__)
    parser.add_argument(
        "messages", nargs="*", metavar="MESSAGE", help="part of the name of a message (default: all messages)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure for a few seconds: rough figures, no imports"
    )
    parser.add_argument(
        "--other-ids", action="store_true", help="with --quick: also decode ids never seen before"
    )
    parser.add_argument(
        "--codecs",
        nargs="+",
        choices=ALL_CODECS,
        default=ALL_CODECS,
        metavar="CODEC",
        help=f"the codecs to measure (default: {' '.join(ALL_CODECS)})",
    )
    parser.add_argument(
        "--compiled",
        type=Path,
        metavar="DIR",
        help="a folder with the package kraft_wire_compiled (default: the installed package)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print every figure as JSON")
    form.add_argument("--markdown", action="store_true", help="print the tables of the documentation")
    return parser


def _measure(options: argparse.Namespace) -> Report:
    effort = msgspec.structs.replace(QUICK, other_ids=options.other_ids) if options.quick else FULL
    machine = this_machine()
    compiled = tiers.compiled(options.compiled) if options.compiled else tiers.compiled_if_installed()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-codec-") as folder:
        measured = measure(
            codecs(options.codecs, Path(folder), compiled),
            _selected(options.messages),
            effort,
            lambda title: print(f"measuring {title} ...", file=sys.stderr, flush=True),
        )
    imports = [] if options.quick or options.messages else measure_imports(effort.imports, compiled)
    return Report(machine, measured, imports, effort)


def _selected(names: Sequence[str]) -> list[Payload]:
    chosen = [
        payload
        for payload in payloads()
        if not names or any(name.lower() in payload.message.lower() for name in names)
    ]
    if not chosen:
        raise SystemExit(f"bench-codec: no message's name contains {' or '.join(names)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
