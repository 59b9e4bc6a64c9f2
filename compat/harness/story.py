"""Telling what a demonstration does while it does it."""

from __future__ import annotations

import time


class Story:
    """Tells what happens, each line with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.2f} s  {text}", flush=True)


def ms_since(moment: float) -> str:
    """Since a time of the monotonic clock."""
    return f"{(time.monotonic() - moment) * 1000:,.0f} ms"
