"""``kraft-wire sim``: run seeds in the simulator."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from kraft_wire.sim.options import Options
    from kraft_wire.sim.simulation import Result

DEFAULT_SECONDS: Final = 120
LEGEND: Final = """\
# TIME NODE EVENT -> EPOCH ROLE START FLUSHED END HIGH_WATERMARK EFFECTS [takes N]
#   TIME            simulated microseconds since the start
#   NODE            the id of the node that takes the event
#   EVENT           asked: a request arrives; told: a response arrives; failed: a request of the node fails;
#                   propose: a client appends records; flushed: the log is on stable storage up to an offset;
#                   Tick: a deadline is reached; Start: the node starts. END/EPOCH are those of a node's log
#   after the arrow the node's state then: its epoch and role, log start offset, flushed offset,
#                   log end offset, high watermark, and the number of effects to execute
#   takes N         the step takes so many microseconds. Its effects come after them
# TIME NODE killed, TIME NODE lost ...: the node's process ends
# TIME broker ID ...: what a broker does (with --controllers)
# TIME fault #N ...: a fault starts; TIME healed NODES: these nodes have no faults any more
# TIME operator: ...: a majority is lost, or recovered (with --voters-change)
"""


def sim(
    *,
    seed: Annotated[int | None, Parameter(show_default="1")] = None,
    seeds: int = 1,
    seconds: Annotated[int | None, Parameter(show_default=str(DEFAULT_SECONDS))] = None,
    controllers: bool = False,
    voters_change: bool = False,
    rolling_upgrade: bool = False,
    exporters: bool = False,
    options: str | None = None,
    minimise: bool = False,
    trace: bool = False,
) -> int:
    """Run a quorum in the deterministic simulator, under the faults that a seed stands for.

    Prints the events, the simulated seconds and the hash of the trace of each run. A seed that fails also
    prints the commit and its options, which replay the run.

    For example:

        kraft-wire sim --seeds 10
        kraft-wire sim --controllers --seed 7 --seconds 30 --trace

    Parameters
    ----------
    seed
        The first seed.
    seeds
        The number of seeds to run, one after the other.
    seconds
        The simulated time with faults. Some time without faults follows, in which everything must recover.
    controllers
        Run whole controllers, with brokers and an administrator around them, instead of raft cores alone.
    voters_change
        Add, remove, move and replace voters while the raft cores run, let strangers ask them, and lose and
        recover majorities.
    rolling_upgrade
        Run whole controllers of two releases, and upgrade and downgrade them while they run.
    exporters
        Let the leader export what is committed, to a sink that is away now and then.
    options
        Run these options instead, as a failed run printed them.
    minimise
        Shrink a run that fails: fewer faults, less time.
    trace
        Print every event, after a legend.
    """
    kinds = {
        "--controllers": controllers,
        "--voters-change": voters_change,
        "--rolling-upgrade": rolling_upgrade,
        "--exporters": exporters,
    }
    if options is not None and ((seed, seeds, seconds) != (None, 1, None) or any(kinds.values())):
        others = ", ".join(("--seed", "--seeds", "--seconds", *kinds))
        raise UsageError(f"--options describes the whole run: leave out {others}")
    runs = _runs(kinds, seed, seeds, seconds) if options is None else [_parse(options)]
    if trace:
        print(LEGEND, end="")
    return _report([run.seed for run in runs if not _run(run, minimise=minimise, trace=trace)], len(runs))


def _report(failed: list[int], count: int) -> int:
    print(_summary(count, failed))
    return EXIT_FAILED if failed else EXIT_OK


def _summary(count: int, failed: list[int]) -> str:
    unit = "seed" if count == 1 else "seeds"
    if not failed:
        return f"{count} {unit} passed"
    return f"{len(failed)} of {count} {unit} failed: {', '.join(map(str, failed))}"


def _drawing(kinds: Mapping[str, bool]) -> Callable[[int, int], Options]:
    from kraft_wire.sim.swarm import controllers_of, exporting_of, membership_of, options_of, rolling_of

    chosen = [option for option, is_chosen in kinds.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} are different runs: choose one of them")
    drawings = {
        "--controllers": controllers_of,
        "--voters-change": membership_of,
        "--rolling-upgrade": rolling_of,
        "--exporters": exporting_of,
    }
    return drawings[chosen[0]] if chosen else options_of


def _runs(kinds: Mapping[str, bool], seed: int | None, seeds: int, seconds: int | None) -> list[Options]:
    """Return the runs that the seeds stand for. Raises UsageError."""
    first = 1 if seed is None else seed
    length_s = DEFAULT_SECONDS if seconds is None else seconds
    draw = _drawing(kinds)
    if length_s < 1 or seeds < 1:
        raise UsageError("--seconds and --seeds must be at least 1")
    return [draw(each, length_s) for each in range(first, first + seeds)]


def _parse(text: str) -> Options:
    import msgspec

    from kraft_wire.sim.options import Options

    try:
        return msgspec.json.decode(text, type=Options)
    except msgspec.MsgspecError as error:
        raise UsageError(f"--options isn't what a failed run printed: {error}") from None


def _run(options: Options, *, minimise: bool, trace: bool) -> bool:
    from kraft_wire.sim.minimise import Minimiser
    from kraft_wire.sim.simulation import simulate

    result = simulate(options, print if trace else None)
    print_result(result)
    if result.violation is not None and minimise:
        print("minimising")
        print_result(Minimiser(result, report=print).minimise())
    return result.violation is None


def print_result(result: Result) -> None:
    """Print a line about the run; for a failed one also what is wrong, its faults, and how to replay it."""
    print(
        f"seed {result.options.seed}: {result.events} events, {result.simulated_seconds:.3f} simulated"
        f" seconds, {result.acknowledged} acknowledged, trace {result.hash}"
    )
    if result.violation is None:
        return
    import msgspec

    from kraft_wire.sim.swarm import schedule_of

    print(result.details, end="")
    print(f"commit {commit()}")
    for fault in schedule_of(result.options):
        print(f"  {fault}")
    replay = msgspec.json.encode(result.options).decode()
    print(f"replay with: kraft-wire sim --trace --options {shlex.quote(replay)}")


def commit() -> str:
    """Return the commit of this checkout, or else the installed version."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if described.returncode == 0:
        return described.stdout.strip()
    try:
        return f"unknown, version {version('kraft-wire')}"
    except PackageNotFoundError:
        return "unknown, not installed"
