"""``python -m compat.bench_codec [MESSAGE ...]``: measure the codecs in turn, print the tables."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from compat.bench_codec import tiers
from compat.bench_codec.imports import measure_imports
from compat.bench_codec.machine import this_machine
from compat.bench_codec.measure import FULL, QUICK, measure
from compat.bench_codec.payloads import Payload, payloads
from compat.bench_codec.table import Report, markdown, plain
from compat.bench_codec.workers import ALL_CODECS, codecs
from compat.harness.interrupts import raise_on_signals
from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code; a goal that is missed is no failure."""
    raise_on_signals()
    options = _parser().parse_args(arguments)
    try:
        report = _measure(options)
    except KeyboardInterrupt:
        print("\ninterrupted; everything is stopped", file=sys.stderr)
        return 130
    except (MissingComponent, ProcessFailed) as failure:
        print(f"bench-codec: {failure}", file=sys.stderr)
        return 1
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report.to_json()), indent=2).decode())
    else:
        print(markdown(report) if options.markdown else plain(report))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compat.bench_codec", description=__doc__)
    parser.add_argument(
        "messages", nargs="*", metavar="MESSAGE", help="a part of the names of the messages to measure"
    )
    parser.add_argument("--quick", action="store_true", help="a few seconds, rough figures, no imports")
    parser.add_argument("--other-ids", action="store_true", help="decode ids never met before, though quick")
    parser.add_argument("--codecs", nargs="+", choices=ALL_CODECS, default=ALL_CODECS, metavar="CODEC")
    parser.add_argument(
        "--compiled",
        type=Path,
        metavar="DIR",
        help="a folder with kraft_wire_compiled, where it isn't installed",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="every figure")
    form.add_argument("--markdown", action="store_true", help="the tables of the README")
    return parser


def _measure(options: argparse.Namespace) -> Report:
    effort = msgspec.structs.replace(QUICK, other_ids=options.other_ids) if options.quick else FULL
    machine = this_machine()
    compiled = tiers.compiled(options.compiled)
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
        raise SystemExit(f"bench-codec: no message is called like {', '.join(names)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
