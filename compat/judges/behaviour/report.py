"""Write what the judge has found: a summary, and the table in the documentation."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from compat.benches.machine import this_machine
from compat.judges.behaviour.played import Difference
from compat.judges.behaviour.rules import RULES
from compat.judges.behaviour.tally import TABLE, Tally, table_of
from kraft_wire import __version__
from kraft_wire.cli.sim import commit

_BEGIN, _END = "<!-- table: begin -->", "<!-- table: end -->"


def result_text(
    options: argparse.Namespace, tally: Tally, differences: Sequence[tuple[str, Difference]], took_s: float
) -> str:
    """Return the summary of a campaign."""
    machine = this_machine()
    lines = [
        f"ended                     {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, after {took_s / 60:.0f} minutes",
        f"version                   kraft-wire {__version__}, commit {commit()}, {machine.python}",
        f"scripts                   {options.scripts:,} of {options.steps} steps, first seed {options.seed}",
        f"steps played              {tally.played:,} of {tally.steps:,} ({tally.played / tally.steps:.1%})",
        f"steps set aside           {tally.set_aside.total():,}",
        *_by_reason(tally.set_aside),
        f"scripts that ended early  {tally.ended.total():,}",
        *_by_reason(tally.ended),
        f"answers                   {sum(row.ours for row in tally.rows()):,}",
        f"pairs of API and error    {len(tally.rows())}",
        f"versions not asked        {', '.join(tally.not_asked()) or 'none'}",
        f"rules                     {', '.join(rule.name for rule in RULES)}",
        f"differences               {len(differences)}",
        *(f"  {name}: {difference.kind}" for name, difference in differences),
    ]
    return "\n".join(lines) + "\n"


def _by_reason(counts: Mapping[str, int]) -> list[str]:
    return [f"  {count:,}: {reason}" for reason, count in sorted(counts.items())]


def write_table(tally: Tally, options: argparse.Namespace) -> None:
    """Put the counts between the marks in docs/behaviour.md."""
    text = TABLE.read_text()
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    heading = f"{options.scripts:,} scripts of {options.steps} steps, from seed {options.seed} on:"
    TABLE.write_text(f"{before}{_BEGIN}\n{heading}\n\n{table_of(tally)}{_END}{after}")
