"""Find the steps that matter for a difference: leave out parts as long as it stays (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable

from compat.judges.behaviour.steps import Script


def shrink(script: Script, still_differs: Callable[[Script], bool], most_tries: int) -> Script:
    """Return a part of the script that still differs, in its order. Its last step is the one that differs.

    Tries ever smaller parts, at most so many.
    """
    size, tries = max(1, len(script) // 2), 0
    while size and tries < most_tries:
        start, has_shrunk = 0, False
        while start < len(script) - 1 and tries < most_tries:
            end = min(start + size, len(script) - 1)
            without = script[:start] + script[end:]
            tries += 1
            if still_differs(without):
                script, has_shrunk = without, True
            else:
                start = end
        if not has_shrunk or size > 1:
            size //= 2
    return script
