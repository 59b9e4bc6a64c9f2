"""Write down what became of the exporters. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from compat.campaigns.exporters.trial import Outcome

NAME: Final = 26
MOST_VIOLATIONS: Final = 50


def describe(outcome: Outcome, header: Sequence[tuple[str, str]]) -> str:
    """Return the result as text; ``header`` has the first lines, as names and values."""
    kinds = Counter(span.name.split(" ", 1)[1] for span in outcome.spans)
    lines = [
        *header,
        ("faults", f"{len(outcome.spans)}, {outcome.on_leaders} of them of the active controller"),
        *((f"  {kind}", str(count)) for kind, count in sorted(kinds.items())),
        ("changes acknowledged", f"{outcome.acknowledged_changes:,}"),
        ("records committed", f"{outcome.committed:,}, without NoOpRecords"),
        *(
            (f"  {sink}", f"{got:,} exported, {again:,} of them again")
            for sink, (got, again) in outcome.got.items()
        ),
        ("positions looked at", f"{outcome.looks:,}"),
        ("violations", f"{len(outcome.violations):,}"),
    ]
    text = "".join(f"{name:<{NAME}}{value}\n" for name, value in lines)
    shown = outcome.violations[:MOST_VIOLATIONS]
    if len(outcome.violations) > len(shown):
        shown.append(f"... and {len(outcome.violations) - len(shown):,} more")
    return text + "".join(f"{line}\n" for line in shown)
