"""Log what clients and peers do wrong, but not each time: those who try again and again, or have us try, must
not fill the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from kraft_wire.server.logging import get_logger

log = get_logger(__name__)

REPORT_REST_S: Final = 5.0
REFUSAL_INTERVAL_S: Final = 10.0
MISTAKE_INTERVAL_S: Final = 1.0
MOST_MISTAKES: Final = 20
"""The mistakes that are logged in an interval."""


class WarningLimit:
    """Counts what happens, and says when to log it: at most so many times in an interval."""

    def __init__(self, interval_s: float, most: int = 1) -> None:
        self._interval_s = interval_s
        self._most = most
        self._unlogged = 0
        self._logged = 0
        self._interval_ends_s = float("-inf")

    def add(self, now_s: float) -> int:
        """Count once more. Returns the number since the last time it was logged; 0 to log nothing now."""
        self._unlogged += 1
        if now_s >= self._interval_ends_s:
            self._interval_ends_s, self._logged = now_s + self._interval_s, 0
        if self._logged == self._most:
            return 0
        self._logged += 1
        return self._take()

    def rest(self, now_s: float) -> int:
        """Return the number since the last time, if the interval is over: nothing may come that tells it."""
        return self._take() if now_s >= self._interval_ends_s else 0

    def _take(self) -> int:
        count, self._unlogged = self._unlogged, 0
        return count


class Refusals:
    """The connections that were refused. One warning has the count of all since the one before."""

    def __init__(self) -> None:
        self._limit = WarningLimit(REFUSAL_INTERVAL_S)
        self._last = ("", "")

    def add(self, listener: str, reason: str, open_count: int) -> None:
        """Count a refused connection, and log the count if it is time."""
        self._last = listener, reason
        if count := self._limit.add(trio.current_time()):
            log.warning(
                "connections refused", listener=listener, reason=reason, refused=count, open=open_count
            )

    def report_rest(self) -> None:
        """Log the count of those since the last warning, if it is time."""
        if count := self._limit.rest(trio.current_time()):
            listener, reason = self._last
            log.warning("connections refused", listener=listener, reason=reason, refused=count)


class _Limited:
    """Logs some of what happens. ``left_out`` is the number of those before it that weren't logged."""

    def __init__(self) -> None:
        self._limit = WarningLimit(MISTAKE_INTERVAL_S, MOST_MISTAKES)

    def _add(self, write: Callable[..., None], event: str, **fields: object) -> None:
        """Count an event, and log it if it is time."""
        if count := self._limit.add(trio.current_time()):
            left_out = {"left_out": count - 1} if count > 1 else {}
            write(event, **fields, **left_out)


class Mistakes(_Limited):
    """The connections that were closed for requests that aren't Kafka's, or because they held too many bytes,
    and the requests that were refused. A warning names one of them."""

    def add(self, peer: str, error: str) -> None:
        """Count a mistake, and log it if it is time."""
        self._add(log.warning, "connection dropped", peer=peer, reason="bad request", error=error)

    def refused(self, peer: str, client_id: str, reason: str) -> None:
        """Count a request that was refused before it was decoded, and log it if it is time."""
        self._add(log.warning, "request refused", peer=peer, client_id=client_id, reason=reason)

    def held(self, peer: str, client_id: str, reason: str, held_bytes: int) -> None:
        """Count a connection that was closed because it held too many bytes, and log it if it is time."""
        self._add(
            log.warning, "connection dropped", peer=peer, client_id=client_id, reason=reason, bytes=held_bytes
        )

    def report_rest(self) -> None:
        """Log the number of those since the last warning, if it is time."""
        if count := self._limit.rest(trio.current_time()):
            log.warning("warnings left out", left_out=count)


class PeerLosses(_Limited):
    """The connections to other controllers that were lost, or dropped for a bad response. Anybody can have a
    leader ask at an address, so there may be many."""

    def lost(self, peer: str, error: str) -> None:
        """Count a connection that was lost, and log it if it is time."""
        self._add(log.info, "peer connection lost", peer=peer, error=error)

    def dropped(self, peer: str, api: str, error: str) -> None:
        """Count a connection that was dropped for a bad response, and log it if it is time."""
        self._add(
            log.warning, "peer connection dropped", peer=peer, reason="bad response", api=api, error=error
        )
