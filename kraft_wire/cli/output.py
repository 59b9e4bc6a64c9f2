"""Print many lines fast, as they come, in UTF-8 whatever the encoding of the terminal is."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kraft_wire.cli.errors import CommandError
from kraft_wire.cli.printable import printable

LINES_AT_ONCE = 512


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout as they come, also those that come before an exception.

    Raises CommandError if stdout is closed.
    """
    if sys.stdout is None:
        raise CommandError("standard output is closed")
    stdout = sys.stdout.buffer
    pending: list[str] = []
    try:
        for line in lines:
            pending.append(line)
            if len(pending) == LINES_AT_ONCE:
                stdout.write(_encoded(pending))
                pending.clear()
    finally:
        stdout.write(_encoded(pending))
        stdout.flush()


def print_text(lines: Iterable[str]) -> None:
    """Write lines for people to stdout. What isn't printable is shown, as ``\\x1b``: names in a log may have
    been made to deceive whoever reads them on a terminal.

    Raises CommandError if stdout is closed.
    """
    print_lines(map(printable, lines))


def _encoded(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
