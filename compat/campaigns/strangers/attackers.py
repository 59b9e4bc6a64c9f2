"""The process of the strangers: ``python -m compat.campaigns.strangers.attackers PLAN``, with a ``Plan`` in
JSON. It attacks until SIGTERM; the first line that it prints is ``ATTACKING``, the last one its ``Deeds``.

They are in a process of their own, so that they don't take the time of those who measure.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from typing import Final

import msgspec

from compat.campaigns.strangers.drawing import Drawn, Seen, Stranger
from compat.campaigns.strangers.fake_leader import fake_leader
from compat.campaigns.strangers.plan import ATTACKING, Deeds, Plan
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from tests.support.wire_client import WireClient

CONNECTIONS: Final = 4
"""The connections to each controller."""
BURST_CHANCE: Final = 0.005
NEW_CONNECTION_CHANCE: Final = 0.01
PATIENCE_S: Final = 10.0
BACK_OFF_S: Final = 0.2
LATE_S: Final = 1.0
"""A stranger that is later than that doesn't catch up."""


class Attacker:
    """One connection after the other to one controller, with one request or burst at a time."""

    def __init__(self, stranger: Stranger, pause_s: float, stop: threading.Event) -> None:
        self._stranger = stranger
        self._pause_s = pause_s
        self._stop = stop
        self.deeds = Deeds()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        chance, due_s = self._stranger.chance, time.monotonic()
        while not self._stop.is_set():
            try:
                with WireClient(self._stranger.target.port, timeout_s=PATIENCE_S) as client:
                    while chance.random() >= NEW_CONNECTION_CHANCE:
                        due_s = max(due_s, time.monotonic() - LATE_S)
                        if self._stop.wait(due_s - time.monotonic()):
                            return
                        due_s += self._pause_s * self._attack(client)
            except (OSError, ProtocolError):
                self.deeds.closed += 1
                self._stop.wait(BACK_OFF_S)

    def _attack(self, client: WireClient) -> int:
        """Send a request or a burst, take the answers, and return how many were sent."""
        stranger = self._stranger
        drawn = stranger.burst() if stranger.chance.random() < BURST_CHANCE else [stranger.request()]
        for request, version in drawn:
            client.send(request, version)
            self.deeds.sent += 1
            self.deeds.last_request_s = time.monotonic()
        for each in drawn:
            self._take(client.receive(Message), each)
        return len(drawn)

    def _take(self, response: Message, drawn: Drawn) -> None:
        self.deeds.answered += 1
        self._stranger.seen.learn(response)
        request, _ = drawn
        if isinstance(response, VoteResponse) and isinstance(request, VoteRequest):
            granted = sum(each.vote_granted for topic in response.topics for each in topic.partitions)
            if request.topics[0].partitions[0].pre_vote:
                self.deeds.granted_pre_votes += granted
            else:
                self.deeds.granted += granted


def attack(plan: Plan, stop: threading.Event) -> Deeds:
    """Attack as planned until ``stop`` is set."""
    connections = CONNECTIONS * len(plan.targets)
    node_ids = tuple(target.node_id for target in plan.targets)
    deeds = Deeds()
    with fake_leader(plan.seed, node_ids) as leader:
        attackers = [
            Attacker(
                Stranger(
                    plan,
                    target,
                    Seen(),
                    (leader.port, target.port),
                    random.Random(f"{plan.seed} {plan.kind} {target.node_id} {number}"),
                ),
                connections / plan.rate,
                stop,
            )
            for target in plan.targets
            for number in range(CONNECTIONS)
        ]
        print(ATTACKING, flush=True)
        for attacker in attackers:
            attacker.thread.join()
            deeds.add(attacker.deeds)
        deeds.visits, deeds.questions = leader.visits, leader.questions
    return deeds


def main(argument: str) -> None:
    """Attack until SIGTERM, and print what was done."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    deeds = attack(msgspec.json.decode(argument, type=Plan), stop)
    print(msgspec.json.encode(deeds).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
