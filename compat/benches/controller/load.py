"""Generate closed-loop load: each connection sends its next request when its last answer has come.

One thread serves all connections. Requests are encoded before the clock starts and answers decoded after it
stops, so that mostly the controller is measured.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import msgspec

from compat.harness.ports import HOST
from compat.harness.waiting import WaitTimeout
from kraft_wire.wire.framing import FrameReader

STALLED_AFTER_S = 60.0
RECEIVE_BYTES = 1 << 18
MAX_FRAME_BYTES = 100 * 1024 * 1024


class Measured(msgspec.Struct, frozen=True):
    """The latencies and the total time of a load, and the answers without their frames."""

    latencies_ms: list[float]
    elapsed_s: float
    answers: list[bytes]

    @property
    def per_second(self) -> float:
        return len(self.latencies_ms) / self.elapsed_s

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the latencies by nearest rank."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def run_closed_loop(port: int, connections: int, frames: Iterable[bytes]) -> Measured:
    """Keep one request in flight on each connection until all ``frames`` are answered."""
    remaining = iter(frames)
    latencies_ms: list[float] = []
    answers: list[bytes] = []
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        lanes = [_Lane(stack.enter_context(_connect(port))) for _ in range(connections)]
        began = time.perf_counter()
        for lane in lanes:
            selector.register(lane.socket, selectors.EVENT_READ, lane)
        busy = sum(lane.send_next(remaining) for lane in lanes)
        while busy:
            ready = selector.select(STALLED_AFTER_S)
            if not ready:
                raise WaitTimeout(f"no answer within {STALLED_AFTER_S:g} s")
            for key, _ in ready:
                lane = key.data
                if (answer := lane.receive()) is not None:
                    latencies_ms.append((time.perf_counter() - lane.sent_at) * 1000)
                    answers.append(answer)
                    busy -= not lane.send_next(remaining)
        elapsed_s = time.perf_counter() - began
    return Measured(latencies_ms, elapsed_s, answers)


def repeat_for(frames: list[bytes], seconds: float) -> Iterator[bytes]:
    """Yield these frames repeatedly, until ``seconds`` after the first one was taken."""
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        yield from frames


class _Lane:
    """One connection with at most one request in flight."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.sent_at = 0.0
        self._frames = FrameReader(MAX_FRAME_BYTES)

    def send_next(self, frames: Iterator[bytes]) -> bool:
        """Send the next frame; return whether there was one."""
        whole = next(frames, None)
        if whole is None:
            return False
        self.sent_at = time.perf_counter()
        self.socket.sendall(whole)
        return True

    def receive(self) -> bytes | None:
        """Return the answer if it is complete."""
        received = self.socket.recv(RECEIVE_BYTES)
        if not received:
            raise ConnectionError("the controller closed a connection under load")
        self._frames.feed(received)
        return self._frames.next_frame()


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection((HOST, port), timeout=STALLED_AFTER_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
