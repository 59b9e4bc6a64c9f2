"""Send heartbeats of pretend brokers at a steady pace, and remember how long each answer took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

BEAT_EVERY_S = 0.01
PATIENCE_S = 120.0


class Pulse(msgspec.Struct):
    """The heartbeats of some brokers: the latency of each answer, and what went wrong."""

    latencies_ms: list[float] = []
    failures: list[str] = []

    @property
    def longest_ms(self) -> float:
        return max(self.latencies_ms, default=0.0)


@contextmanager
def feel_pulse(brokers: Iterable[PretendBroker], port: int) -> Iterator[Pulse]:
    """Send heartbeats for these brokers, one connection each, until the block ends."""
    pulse = Pulse()
    ended = threading.Event()
    threads = [
        threading.Thread(target=_beat, args=(each, port, pulse, ended), daemon=True) for each in brokers
    ]
    for thread in threads:
        thread.start()
    try:
        yield pulse
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _beat(broker: PretendBroker, port: int, pulse: Pulse, ended: threading.Event) -> None:
    try:
        with WireClient(port, client_id=f"pulse-{broker.node_id}", timeout_s=PATIENCE_S) as client:
            while not ended.wait(BEAT_EVERY_S):
                began = time.perf_counter()
                answer = client.call(broker.heartbeat(), 1, BrokerHeartbeatResponse)
                pulse.latencies_ms.append((time.perf_counter() - began) * 1000)
                if answer.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                    pulse.failures.append(f"{broker.node_id}: {ErrorCode(answer.error_code).name}")
                    return
    except OSError as error:
        pulse.failures.append(f"{broker.node_id}: {error}")
