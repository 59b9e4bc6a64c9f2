"""Count the bytes of a connection's responses until they are sent, and keep those that are on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kraft_wire.wire.shared_bytes import Part, SharedBytes, size_of


class Unsent:
    """The bytes of responses that aren't sent.

    ``size_bytes`` is the number of those to send. ``own_bytes`` are in memory for this connection alone,
    ``shared`` may be part of other connections' responses, too. Bytes are in memory until the last one of
    their part is sent.
    """

    def __init__(self) -> None:
        self.size_bytes = 0
        self.own_bytes = 0
        self.shared: deque[SharedBytes] = deque()
        self._following: deque[Part] = deque()
        self._taken: Part = b""
        self._taken_left_bytes = 0

    def add(self, size_bytes: int, rest: Iterable[Part] = ()) -> None:
        """Count a response: its beginning or, if below 0, what was counted too much; and what follows it."""
        self.size_bytes += size_bytes
        self.own_bytes += size_bytes
        for part in rest:
            self.size_bytes += size_of(part)
            if isinstance(part, SharedBytes):
                self.shared.append(part)
                part.uses += 1
            else:
                self.own_bytes += len(part)

    def follow(self, parts: Iterable[Part]) -> None:
        """Let these parts leave after what was taken."""
        self._following.extend(parts)

    @property
    def has_following(self) -> bool:
        """Whether there are parts to be taken before any other response."""
        return bool(self._following)

    def take_following(self) -> bytes:
        """Take the next part."""
        return self.take(self._following.popleft())

    def take(self, part: Part) -> bytes:
        """Take a part, and return its bytes. Nothing else may be taken until they are ``sent``."""
        self._taken = part
        self._taken_left_bytes = size_of(part)
        return part.data if isinstance(part, SharedBytes) else part

    def close(self) -> None:
        """Use no shared bytes any more: nothing will be sent."""
        for part in self.shared:
            part.uses -= 1
        self.shared.clear()

    def sent(self, size_bytes: int) -> None:
        """Count bytes that were taken as sent."""
        self.size_bytes -= size_bytes
        self._taken_left_bytes -= size_bytes
        if self._taken_left_bytes:
            return
        if isinstance(self._taken, SharedBytes):
            self.shared.popleft().uses -= 1
        else:
            self.own_bytes -= len(self._taken)
        self._taken = b""
