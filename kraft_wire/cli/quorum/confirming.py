"""Ask the operator before something is changed, and say what an interruption leaves."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kraft_wire.cli.errors import Interrupted
from kraft_wire.cli.quorum import NotConfirmed

AGREED: Final = "yes"
NOTHING_CHANGED: Final = "interrupted: nothing was changed"
INTERRUPTED: Final = (
    "interrupted: it isn't known whether the change was made; `kraft-wire quorum status` shows what came of "
    "it"
)
"""For the time after a change was sent."""


def confirm() -> None:
    """Ask on the terminal. Raises NotConfirmed without one, or without agreement; Interrupted."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise NotConfirmed("nothing was changed: this command asks; run it on a terminal, or give --yes")
    print(f"Type {AGREED} to go on: ", end="", flush=True)
    try:
        _wait_for_input()
        answer = input()
    except EOFError:
        print()  # ends the line of the question
        answer = ""
    except KeyboardInterrupt:
        print()
        raise Interrupted(NOTHING_CHANGED) from None
    if answer.strip() != AGREED:
        raise NotConfirmed("nothing was changed: not confirmed")


def _wait_for_input() -> None:
    """Wait until something was typed. Otherwise an interruption that comes just before ``input`` reads would
    only be noticed after a line."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(wake)
    try:
        select.select([sys.stdin, woken], [], [])
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wake)


@contextmanager
def interruption_says(text: str) -> Iterator[None]:
    """Turn an interruption from the keyboard into an Interrupted with this text."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(text) from None
