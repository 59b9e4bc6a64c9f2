"""Whether a controller can be restarted without harm, and in which order. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kraft_wire.cli.quorum.migrate.commands import our_tool
from kraft_wire.cli.quorum.migrate.facts import CLUSTER, Controller, Finding, Quorum, in_the_way, note

MAX_LAG: Final = 100
"""A voter that lags by more records doesn't count as one that keeps up."""
FEWEST_FOR_RESTARTS: Final = 3
"""With fewer voters every one is needed for a majority."""

StartLine = Callable[[Controller], str]


def readiness(quorum: Quorum, start: StartLine) -> Iterator[Finding]:
    """Find the voters that are missing. A migration goes on only while all voters keep up: then one of three
    or more can be stopped. ``start`` is the line that starts a controller, "" if it mustn't start yet."""
    for voter in quorum.voters:
        if not voter.fetches and voter.problem:
            line = start(voter)
            yield in_the_way(voter.name, _missing(voter), _do(quorum, voter, line), _command(line))
        elif not voter.fetches:
            yield in_the_way(
                voter.name,
                "it answers, and doesn't fetch from the leader",
                "see its log; if it has just started, ask again",
            )
        elif voter.lag is None or voter.lag > MAX_LAG:
            lag = "an unknown number of" if voter.lag is None else voter.lag
            yield in_the_way(
                voter.name, f"it lags by {lag} records", "wait until it keeps up, then ask again"
            )


def _missing(voter: Controller) -> str:
    return f"it doesn't fetch from the leader, and doesn't answer: {voter.problem}"


def _do(quorum: Quorum, voter: Controller, line: str) -> str:
    if not line:
        return "first clear what else is in its way"
    start_it = "start it, and wait until it fetches"
    if quorum.kraft_version == 0 or len(quorum.voters) == 1:
        return start_it
    remove = our_tool(quorum, "quorum", "remove", str(voter.id))
    return f"{start_it}; if it is gone for good: {remove}"


def _command(line: str) -> str:
    return "" if line.startswith("#") else line


def restart_note(quorum: Quorum) -> Iterator[Finding]:
    """Tell that a restart leaves no majority, if it does."""
    if len(quorum.voters) < FEWEST_FOR_RESTARTS:
        yield note(
            CLUSTER,
            f"with {len(quorum.voters)} voter{'' if len(quorum.voters) == 1 else 's'} a restart leaves no "
            "majority: the metadata can't change until the voter is back; clients go on meanwhile",
        )


def in_order(quorum: Quorum) -> list[Controller]:
    """Return the controllers in the order in which they are restarted: observers, followers, the leader.
    Those that are only registered, and don't run, come last."""
    return sorted(quorum.controllers, key=_rank)


def _rank(controller: Controller) -> tuple[bool, bool, bool, int]:
    gone = not controller.is_voter and not controller.fetches
    return gone, controller.is_leader, controller.is_voter, controller.id
