"""Attack a quorum of three and a lone controller under load: Votes, pre-votes, BeginQuorumEpochs,
EndQuorumEpochs, Fetches, UpdateRaftVoters and fake leaders with any epoch, from outsiders and from claimants
of a voter's ids. The result goes to compat/campaigns/strangers.txt.

Neither outsiders nor claimants may change leader, epoch or a voter's address. While claimants go on, one
follower is killed and started again every three seconds, which may cost one change of leader in ten seconds;
then all nodes are, and while outsiders go on, all again and again. Within five seconds of the claimants' last
request, and of each start of all nodes, all must be well. No process may end, and every acknowledged topic
must be on every node.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from compat.benches.machine import this_machine
from compat.campaigns.strangers.phases import Trial, Trials, attacks_on, timed_violations
from compat.campaigns.strangers.report import describe
from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.paths import MissingComponent
from compat.harness.processes import Workspace
from kraft_wire import __version__
from kraft_wire.cli.sim import commit

RESULT = Path(__file__).parents[1] / "strangers.txt"
SYSTEMS = {"three controllers": 3, "a lone controller": 1}
ATTACKED_PHASES = sum(len(attacks_on(nodes)) for nodes in SYSTEMS.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return the exit code: 1 if a rule was violated."""
    raise_on_signals()
    options = _options(arguments)
    header, phase_s = _header(options), options.minutes * 60 / ATTACKED_PHASES
    trials: list[Trial] = []
    try:
        for name, nodes in SYSTEMS.items():
            trials.append(run(name, nodes, phase_s, options.rate, options.seed))
            ended = (
                "ended",
                f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {len(trials)} of {len(SYSTEMS)} systems",
            )
            text = describe(trials, [*header, ended])
            options.result.write_text(text)
    except KeyboardInterrupt:
        print("interrupted; all processes are stopped and the folder is removed", file=sys.stderr)
        return 130
    except MissingComponent as missing:
        print(f"failed: {missing}", file=sys.stderr)
        return 1
    print(text, end="")
    return 1 if any(trial.violations for trial in trials) else 0


def _header(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the first lines of the result, as they are at the start: the checkout may change meanwhile."""
    machine = this_machine()
    return [
        ("began", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("version", f"kraft-wire {__version__}, commit {commit()}, {machine.python}"),
        ("options", f"--minutes {options.minutes:g} --seed {options.seed} --rate {options.rate:g}"),
        ("machine", f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f} at the start"),
    ]


def run(name: str, nodes: int, phase_s: float, rate: float, seed: int) -> Trial:
    """Run the phases of so many controllers."""
    with tempfile.TemporaryDirectory(prefix="kraft-wire-strangers-") as folder:
        tools = ToolServer(Path(folder) / "tools.log")  # it starts no JVM for controllers of ours
        with Workspace(Path(folder) / "quorum") as workspace:
            quorum = ControllerQuorum(workspace, tools, ["ours"] * nodes)
            trial = Trials(quorum, name, phase_s, rate, seed).run()
    trial.violations += timed_violations(trial)
    return trial


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compat.campaigns.strangers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=60,
        help=f"minutes of attacks, split over {ATTACKED_PHASES} phases; two quiet ones of the same length "
        "come on top "
        "(%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, help="the seed of what strangers send (%(default)s)")
    parser.add_argument(
        "--rate", type=float, default=200, help="strangers' requests a second, in all (%(default)s)"
    )
    parser.add_argument("--result", type=Path, default=RESULT, help="the file for the result (%(default)s)")
    options = parser.parse_args(arguments)
    for name in ("minutes", "rate"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be above 0, not {getattr(options, name):g}")
    return options


if __name__ == "__main__":
    sys.exit(main())
