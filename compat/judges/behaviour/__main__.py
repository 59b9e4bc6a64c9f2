"""Judge scripts of random requests: play them to Java's controller and to ours, and compare.

Each seed is a script. The first step that differs ends its script, which is then made as short as possible
and printed; with --script it can be played again, and with its --seed if the controllers' files were special.
With --table the counts go to docs/behaviour.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.tool_server import ToolServer
from compat.judges.behaviour.played import Difference, Played
from compat.judges.behaviour.player import fresh_pair, play
from compat.judges.behaviour.report import result_text, write_table
from compat.judges.behaviour.script import Properties, draw, properties_of
from compat.judges.behaviour.shrink import shrink
from compat.judges.behaviour.steps import Script, script_of, text_of
from compat.judges.behaviour.tally import Tally


class Case(NamedTuple):
    """A script, drawn or read when its turn comes, and what the controllers have in their files."""

    name: str
    script: Callable[[], Script]
    properties: Properties


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the judge and return the exit code: 1 if anything differed."""
    raise_on_signals()
    options = _options(arguments)
    tally, differences, began_s = Tally(), [], time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kraft-wire-judge-")))
        idle: SimpleQueue[ToolServer] = SimpleQueue()
        for job in range(options.jobs):
            idle.put(stack.enter_context(ToolServer(folder / f"tools-{job}.log")))
        pool = ThreadPoolExecutor(options.jobs)
        stack.callback(pool.shutdown, cancel_futures=True)

        def play_case(case: Case) -> Played:
            tools = idle.get()
            try:
                return judge(tools, case.script(), case.properties)
            finally:
                idle.put(tools)

        cases = _cases(options)
        for case, played in zip(cases, pool.map(play_case, cases), strict=True):
            tally.add(played)
            difference = played.difference
            print(f"{case.name}: {'equal' if difference is None else difference.kind}", flush=True)
            if difference is not None:
                differences.append((case.name, difference))
                tools = idle.get()
                _explain(tools, case, difference, options.tries)
                idle.put(tools)
    if options.result:
        options.result.write_text(result_text(options, tally, differences, time.monotonic() - began_s))
    if options.table:
        write_table(tally, options)
    return 1 if differences else 0


def judge(tools: ToolServer, script: Script, properties: Properties) -> Played:
    """Play a script to two fresh controllers."""
    with fresh_pair(tools, properties=properties) as pair:
        return play(pair, script)


def _explain(tools: ToolServer, case: Case, difference: Difference, most_tries: int) -> None:
    """Print the difference, and the shortest script that was found for it."""
    print(difference)
    properties = case.properties

    def still_differs(part: Script) -> bool:
        found = judge(tools, part, properties).difference
        return found is not None and found.kind == difference.kind and found.number == len(part) - 1

    short = shrink(case.script()[: difference.number + 1], still_differs, most_tries)
    print(f"the shortest script that was found, {len(short)} steps:\n{text_of(short)}", flush=True)
    if properties:
        print(f"with {dict(properties)}", flush=True)


def _cases(options: argparse.Namespace) -> list[Case]:
    if options.script:
        script = script_of(options.script.read_text())
        return [Case(str(options.script), lambda: script, properties_of(options.seed))]
    seeds = range(options.seed, options.seed + options.scripts)
    return [Case(f"seed {seed}", partial(draw, seed, options.steps), properties_of(seed)) for seed in seeds]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m compat.judges.behaviour",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scripts", type=int, default=10, metavar="N", help="the number of scripts")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the first seed")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="the steps of a script")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="the scripts that are played at a time",
    )
    parser.add_argument("--tries", type=int, default=60, metavar="N", help="the tries to shorten a script")
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="play the steps of a file, as of the seed"
    )
    parser.add_argument("--result", type=Path, metavar="FILE", help="write a summary to this file")
    parser.add_argument("--table", action="store_true", help="write the table in docs/behaviour.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
