"""Kill, stop, pause and cut off controllers with exporters of all kinds, under load, with webhooks that fail,
hang and are away all the time. The result goes to compat/campaigns/exporters.txt.

No sink may miss a record, or get one that wasn't committed. A record may come again only if it was
acknowledged shortly before a fault, or after it. No controller may have a position that is higher than what
the sink has acknowledged. Needs root, for hosts and disks of their own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from compat.benches.machine import this_machine
from compat.campaigns.exporters.report import describe
from compat.campaigns.exporters.trial import run
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.paths import MissingComponent
from compat.harness.processes import Workspace
from kraft_wire import __version__
from kraft_wire.cli.sim import commit

RESULT = Path(__file__).parents[1] / "exporters.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return the exit code: 1 if a rule was violated."""
    raise_on_signals()
    options = _options(arguments)
    header = _header(options)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="kraft-wire-exporters-") as folder,
            ToolServer(Path(folder) / "tools.log") as tools,
            Workspace(Path(folder) / "cluster") as workspace,
        ):
            interval_s = options.minutes * 60 / options.faults
            outcome = run(tools, workspace, options.faults, interval_s, options.seed)
    except KeyboardInterrupt:
        print("interrupted; all processes are stopped and the folder is removed", file=sys.stderr)
        return 130
    except MissingComponent as missing:
        print(f"failed: {missing}", file=sys.stderr)
        return 1
    ended = ("ended", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    text = describe(outcome, [*header, ended])
    options.result.write_text(text)
    print(text, end="")
    return 1 if outcome.violations else 0


def _header(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the first lines of the result, as they are at the start: the checkout may change meanwhile."""
    machine = this_machine()
    return [
        ("began", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("version", f"kraft-wire {__version__}, commit {commit()}, {machine.python}"),
        ("options", f"--faults {options.faults} --minutes {options.minutes:g} --seed {options.seed}"),
        ("machine", f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f} at the start"),
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compat.campaigns.exporters",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--faults", type=int, default=100, help="how many faults (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="in how many minutes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the faults (%(default)s)")
    parser.add_argument("--result", type=Path, default=RESULT, help="the file for the result (%(default)s)")
    options = parser.parse_args(arguments)
    for name in ("faults", "minutes"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be above 0, not {getattr(options, name):g}")
    return options


if __name__ == "__main__":
    sys.exit(main())
