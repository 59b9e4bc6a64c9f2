"""Ask the operator before something is changed."""

from __future__ import annotations

import sys
from typing import Final

from kraft_wire.cli.quorum import NotConfirmed

AGREED: Final = "yes"


def confirm() -> None:
    """Ask on the terminal. Raises NotConfirmed without one, or without agreement."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise NotConfirmed("nothing was changed: this command asks; run it on a terminal, or give --yes")
    if input(f"Type {AGREED} to go on: ").strip() != AGREED:
        raise NotConfirmed("nothing was changed: not confirmed")
