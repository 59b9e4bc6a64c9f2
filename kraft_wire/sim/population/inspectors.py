"""Simulate ``quorum status --digest``: ask controllers for digests of their state, and compare these with the
committed log."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from kraft_wire.metadata.digest import digest_of
from kraft_wire.metadata.errors import UnwritableMetadata
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.protocol.own_messages.state_digest_response import StateDigestResponse
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.network.connections import CLUSTER_ID
from kraft_wire.sim.population.brokers import BrokerWorld
from kraft_wire.sim.scheduler import MS

INSPECTOR: Final = 201
INTERVAL_US: Final = 3_000 * MS
LEADS: Final = (0, 0, 1, 2, 5, 20)


class Inspector:
    """A client that asks all controllers at once. ``found`` are the digests by the offset of the state."""

    def __init__(self, world: BrokerWorld, chance: random.Random) -> None:
        self.found: dict[int, bytes] = {}
        self._world = world
        self._chance = chance
        self._controllers: Sequence[int] = sorted(world.nodes)
        self._is_over = False

    def start(self) -> None:
        self._world.scheduler.after(INTERVAL_US, self._ask)

    def stop(self) -> None:
        self._is_over = True

    def _ask(self) -> None:
        if self._is_over:
            return
        self._world.scheduler.after(1 + self._chance.randrange(INTERVAL_US), self._ask)
        offset = max(1, self._world.committed.end_offset + self._chance.choice(LEADS))
        request = StateDigestRequest(CLUSTER_ID, offset)
        for controller in self._controllers:
            self._world.clients.ask(INSPECTOR, controller, request, 0, self._take)

    def _take(self, response: Message | None) -> None:
        if not isinstance(response, StateDigestResponse) or response.error_code != ErrorCode.NONE:
            return
        at, digest = response.end_offset, bytes(response.digest)
        if self.found.setdefault(at, digest) != digest:
            raise Violation("EqualDigest", f"node {response.node_id} has another state at offset {at}")

    # The end of a run.

    def check_log(self, records: Sequence[tuple[int, Message]]) -> None:
        """Check that the digests are those of the committed records."""
        state = MetadataState()
        replayed = iter(records)
        next_record = next(replayed, None)
        for at in sorted(self.found):
            while next_record is not None and next_record[0] < at:
                state.replay(next_record[1], next_record[0])
                next_record = next(replayed, None)
            if _digest(state) != self.found[at]:
                raise Violation("EqualDigest", f"the log makes another state at offset {at}")


def _digest(state: MetadataState) -> bytes | None:
    try:
        return digest_of(state).digest
    except UnwritableMetadata:
        return None
