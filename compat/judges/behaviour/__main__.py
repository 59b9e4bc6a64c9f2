"""Judge scripts of random requests: play them to Java's controller and to ours, and compare.

Each seed is a script. The first step that differs ends its script, which is then made as short as possible
and printed; with --script it can be played again, and with its --seed if the controllers' files were special.
With --table the counts go to docs/behaviour.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from compat.harness.interrupts import raise_on_signals
from compat.harness.kafka.tool_server import ToolServer
from compat.judges.behaviour.player import Answered, Difference, fresh_pair, play
from compat.judges.behaviour.report import result_text, write_table
from compat.judges.behaviour.script import Properties, draw, properties_of
from compat.judges.behaviour.shrink import shrink
from compat.judges.behaviour.steps import Script, script_of, text_of
from compat.judges.behaviour.tally import Tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the judge and return the exit code: 1 if anything differed."""
    raise_on_signals()
    options = _options(arguments)
    tally, differences, began_s = Tally(), [], time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kraft-wire-judge-"))
        tools = stack.enter_context(ToolServer(Path(folder) / "tools.log"))
        for name, script, properties in _scripts(options):
            difference = judge(tools, script, properties, tally)
            print(f"{name}: {'equal' if difference is None else difference.kind}", flush=True)
            if difference is not None:
                differences.append((name, difference))
                _explain(tools, script, properties, difference, options.tries)
    if options.result:
        options.result.write_text(result_text(options, tally, differences, time.monotonic() - began_s))
    if options.table:
        write_table(tally, options)
    return 1 if differences else 0


def judge(
    tools: ToolServer, script: Script, properties: Properties, tally: Tally | None = None
) -> Difference | None:
    """Play a script to two fresh controllers. Returns the first step that differs."""
    answered: list[tuple[Answered, Answered]] = []
    with fresh_pair(tools, properties=properties) as pair:
        difference = play(pair, script, answered)
    if tally is not None:
        tally.add(answered)
    return difference


def _explain(
    tools: ToolServer, script: Script, properties: Properties, difference: Difference, most_tries: int
) -> None:
    """Print the difference, and the shortest script that was found for it."""
    print(difference)

    def still_differs(part: Script) -> bool:
        found = judge(tools, part, properties)
        return found is not None and found.kind == difference.kind and found.number == len(part) - 1

    short = shrink(script[: difference.number + 1], still_differs, most_tries)
    print(f"the shortest script that was found, {len(short)} steps:\n{text_of(short)}", flush=True)
    if properties:
        print(f"with {dict(properties)}", flush=True)


def _scripts(options: argparse.Namespace) -> Iterator[tuple[str, Script, Properties]]:
    """Yield scripts, each with its name and with what the controllers have in their files."""
    if options.script:
        yield str(options.script), script_of(options.script.read_text()), properties_of(options.seed)
        return
    for seed in range(options.seed, options.seed + options.scripts):
        yield f"seed {seed}", draw(seed, options.steps), properties_of(seed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m compat.judges.behaviour",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scripts", type=int, default=10, metavar="N", help="the number of scripts")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the first seed")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="the steps of a script")
    parser.add_argument("--tries", type=int, default=60, metavar="N", help="the tries to shorten a script")
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="play the steps of a file, as of the seed"
    )
    parser.add_argument("--result", type=Path, metavar="FILE", help="write a summary to this file")
    parser.add_argument("--table", action="store_true", help="write the table in docs/behaviour.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
