"""Keep the fetches of observers, and answer them at a bounded pace.

Brokers are observers, and there may be very many. A commit is news for all of them at once, and each asks
again as soon as it is answered. So only some are answered at once; the others have their turn a few
milliseconds later, in the order in which they came. Whoever waited for its turn gets everything that was
committed meanwhile: when much is changed, each is answered less often, and hardly later. Those that waited
for news up to their deadline have their turn, too: there may be as many of them.

Turns come with ticks. Where the processor is busy, ticks are late, and no turn makes up for another: other
requests are served in between, and the commit that the next turn tells of is not delayed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Final

from kraft_wire.raft.leader.parked_fetches import FetchCall, ParkedFetches

AT_ONCE: Final = 100
"""So many observers are answered at once, if none were answered just before."""
ANSWERS_PER_MS: Final = 12
"""So many more in each millisecond: a thousand within 80 ms."""
ANSWERS_PER_TURN: Final = 24
"""So many of those that wait are answered in one turn."""


class WaitingObservers:
    """The fetches of observers: those that wait for news, and those for which there is news.

    If those with news ``_are_dismissed``, they don't ask again, and so they have no pace.
    """

    __slots__ = ("_allowed", "_are_dismissed", "_due", "_seen_ms", "_waiting")

    def __init__(self) -> None:
        self._waiting = ParkedFetches()
        self._due: dict[Hashable, FetchCall] = {}
        self._are_dismissed = False
        self._allowed = AT_ONCE
        self._seen_ms = 0

    def park(self, call: FetchCall, deadline_ms: int) -> None:
        """Let a fetch wait for news, until the monotonic time ``deadline_ms`` at most."""
        self._waiting.park(call, deadline_ms)

    def may_go(self, now_ms: int) -> bool:
        """Whether a fetch for which there is news may be answered at once; it is counted as answered then."""
        if self._due or self._allowed_at(now_ms) < 1:
            return False
        self._allowed -= 1
        return True

    def line_up(self, call: FetchCall) -> None:
        """Let a fetch wait for its turn. There is news for it."""
        self._due[call.token] = call

    def have_news(self) -> None:
        """Take note that there is news for all."""
        for call in self._waiting.take_all():
            self._due[call.token] = call

    def dismiss(self) -> None:
        """Take note that all have to ask another node: they are answered soon."""
        self.have_news()
        self._are_dismissed = bool(self._due)

    def take_first(self, now_ms: int) -> list[FetchCall]:
        """Remove and return the fetches that are answered as soon as there is news."""
        return self._take_due(self._most_at(now_ms, AT_ONCE))

    def take_turn(self, now_ms: int) -> list[FetchCall]:
        """Remove and return the fetches whose turn it is now: those for which there is news, then those that
        waited for it up to their deadline."""
        most = self._most_at(now_ms, ANSWERS_PER_TURN)
        calls = self._take_due(most)
        expired = self._waiting.take_due(now_ms, most - len(calls))
        self._allowed = max(0, self._allowed - len(expired))
        return calls + expired

    def _most_at(self, now_ms: int, most: int) -> int:
        allowed = self._allowed_at(now_ms)
        return AT_ONCE if self._are_dismissed else min(most, allowed)

    def _take_due(self, most: int) -> list[FetchCall]:
        calls = list(islice(self._due.values(), most))
        for call in calls:
            del self._due[call.token]
        if not self._are_dismissed:
            self._allowed -= len(calls)
        self._are_dismissed &= bool(self._due)
        return calls

    def take_if(self, is_wanted: Callable[[FetchCall], bool]) -> list[FetchCall]:
        """Remove and return some of the fetches. Looks at all of them."""
        calls = [call for call in (*self._due.values(), *self._waiting) if is_wanted(call)]
        for call in calls:
            self.abandon(call.token)
        return calls

    def abandon(self, token: Hashable) -> None:
        """Drop a fetch whose client has disconnected."""
        self._due.pop(token, None)
        self._waiting.drop(token)

    def next_turn_ms(self) -> int | None:
        """Return the monotonic time of the next turn, None if nobody waits."""
        if self._are_dismissed:
            return self._seen_ms + 1
        if self._due:
            lacking = min(ANSWERS_PER_TURN, len(self._due)) - self._allowed
            return self._seen_ms + max(1, -(-lacking // ANSWERS_PER_MS))
        deadline_ms = self._waiting.next_due()
        return None if deadline_ms is None else max(deadline_ms, self._seen_ms + 1)

    def _allowed_at(self, now_ms: int) -> int:
        """Return how many may be answered now."""
        self._allowed = min(AT_ONCE, self._allowed + ANSWERS_PER_MS * (now_ms - self._seen_ms))
        self._seen_ms = now_ms
        return self._allowed
