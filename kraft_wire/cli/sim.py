"""``kraft-wire sim``: run seeds in the simulator."""

from __future__ import annotations

import shlex
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from kraft_wire.cli.errors import EXIT_FAILED, EXIT_OK, CommandError

if TYPE_CHECKING:
    from kraft_wire.sim.options import Options
    from kraft_wire.sim.simulation import Result


def sim(
    *,
    seed: int | None = None,
    seeds: int = 1,
    seconds: int | None = None,
    controllers: bool = False,
    options: str | None = None,
    minimise: bool = False,
    trace: bool = False,
) -> int:
    """Run a quorum in the deterministic simulator, under whatever faults a seed stands for.

    Prints each run's events, simulated seconds and the hash of its trace. A seed that fails prints its
    options, which replay it bit for bit, and the commit.

    Parameters
    ----------
    seed
        The first seed; 1 where none is given.
    seeds
        How many of them, one after the other.
    seconds
        How much time to simulate under faults, 120 where nothing is said. Some time without them follows, in
        which everything has to come right.
    controllers
        Run whole controllers, with brokers and an administrator around them, instead of raft cores alone.
    options
        Run this instead: the options that a failed run printed.
    minimise
        Shrink a run that fails: fewer faults, less time.
    trace
        Print every event: its time in microseconds, and what happened to whom.
    """
    if options is None:
        runs = _drawn(1 if seed is None else seed, seeds, 120 if seconds is None else seconds, controllers)
    elif seed is not None or seeds != 1 or seconds is not None or controllers:
        raise CommandError("--options says all about a run: leave --seed, --seeds, --seconds, --controllers")
    else:
        runs = [_parse(options)]
    failed = [run for run in runs if not _run(run, minimise=minimise, trace=trace)]
    return EXIT_FAILED if failed else EXIT_OK


def _drawn(first: int, seeds: int, seconds: int, controllers: bool) -> list[Options]:
    if seconds < 1 or seeds < 1:
        raise CommandError("--seconds and --seeds are at least 1")
    from kraft_wire.sim.swarm import controllers_of, options_of

    draw = controllers_of if controllers else options_of
    return [draw(seed, seconds) for seed in range(first, first + seeds)]


def _parse(text: str) -> Options:
    import msgspec

    from kraft_wire.sim.options import Options

    try:
        return msgspec.json.decode(text, type=Options)
    except msgspec.MsgspecError as error:
        raise CommandError(f"--options isn't what a failed run printed: {error}") from None


def _run(options: Options, *, minimise: bool, trace: bool) -> bool:
    from kraft_wire.sim.minimise import Minimiser
    from kraft_wire.sim.simulation import simulate

    result = simulate(options, print if trace else None)
    tell(result)
    if result.violation is not None and minimise:
        print("minimising")
        tell(Minimiser(result, report=print).minimise())
    return result.violation is None


def tell(result: Result) -> None:
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
    """The commit that this runs from, or else the version."""
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
