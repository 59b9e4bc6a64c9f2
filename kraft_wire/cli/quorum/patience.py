"""Say on stderr what a command waits for, once that has taken a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import Final

from kraft_wire.cli.errors import complain
from kraft_wire.client.errors import problems_text
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.wire.address import Address

SAID_AFTER_S: Final = 1.0


@contextmanager
def said_if_slow(text: str) -> Iterator[None]:
    """Print the text if the block takes longer than a second."""
    timer = Timer(SAID_AFTER_S, complain, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def no_leader_yet(settings: QuorumSettings) -> Callable[[Mapping[Address, str]], None]:
    """Return what a client calls while no controller gives the wanted answer. The same is said once."""
    said: set[str] = set()

    def say(problems: Mapping[Address, str]) -> None:
        asked = problems_text(problems)
        if asked not in said:
            said.add(asked)
            complain(f"no leader yet, asking for up to {settings.api_timeout_ms / 1000:g} s: {asked}")

    return say
