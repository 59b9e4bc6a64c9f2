"""Keep the fetches of observers, and answer them at a bounded pace.

Brokers are observers, and there may be very many. A commit is news for all of them at once, and each asks
again as soon as it is answered. So only some are answered at once; the others have their turn a few
milliseconds later, in the order in which they came. Whoever waited for its turn gets everything that was
committed meanwhile: when much is changed, each is answered less often, and hardly later.

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
    """The fetches of observers: those that wait for news, and those for which there is news."""

    __slots__ = ("_allowed", "_due", "_seen_ms", "_waiting")

    def __init__(self) -> None:
        self._waiting = ParkedFetches()
        self._due: dict[Hashable, FetchCall] = {}
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

    def take_first(self, now_ms: int) -> list[FetchCall]:
        """Remove and return the fetches that are answered as soon as there is news."""
        return self._take(now_ms, AT_ONCE)

    def take_turn(self, now_ms: int) -> list[FetchCall]:
        """Remove and return the fetches whose turn it is now."""
        return self._take(now_ms, ANSWERS_PER_TURN)

    def _take(self, now_ms: int, most: int) -> list[FetchCall]:
        if not self._due:
            return []
        taken = list(islice(self._due.values(), min(most, self._allowed_at(now_ms))))
        for call in taken:
            del self._due[call.token]
        self._allowed -= len(taken)
        return taken

    def take_expired(self, now_ms: int) -> list[FetchCall]:
        """Remove and return the fetches that waited for news up to their deadline."""
        return self._waiting.take_due(now_ms)

    def take_if(self, is_wanted: Callable[[FetchCall], bool]) -> list[FetchCall]:
        """Remove and return some of the fetches. Looks at all of them."""
        calls = [call for call in (*self._due.values(), *self._waiting) if is_wanted(call)]
        for call in calls:
            self.abandon(call.token)
        return calls

    def take_all(self) -> list[FetchCall]:
        """Remove and return all fetches."""
        calls = [*self._due.values(), *self._waiting.take_all()]
        self._due.clear()
        return calls

    def abandon(self, token: Hashable) -> None:
        """Drop a fetch whose client has disconnected."""
        self._due.pop(token, None)
        self._waiting.drop(token)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of those that wait for news, None if there are none."""
        return self._waiting.next_due()

    def next_turn_ms(self) -> int | None:
        """Return the monotonic time of the next turn, None if nobody waits for it."""
        if not self._due:
            return None
        lacking = min(ANSWERS_PER_TURN, len(self._due)) - self._allowed
        return self._seen_ms + max(1, -(-lacking // ANSWERS_PER_MS))

    def _allowed_at(self, now_ms: int) -> int:
        """Return how many may be answered now."""
        self._allowed = min(AT_ONCE, self._allowed + ANSWERS_PER_MS * (now_ms - self._seen_ms))
        self._seen_ms = now_ms
        return self._allowed
