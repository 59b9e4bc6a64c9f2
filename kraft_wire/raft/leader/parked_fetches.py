"""Keep the fetches that wait, until their deadline, for new or committed records (Kafka's purgatory)."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kraft_wire.protocol.messages.fetch_request import FetchPartition
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.waiting import Waiting


class FetchCall(msgspec.Struct, frozen=True):
    """The fields of a replica's Fetch that are needed to answer it now or later."""

    token: Hashable
    version: int
    listener: str
    replica: ReplicaKey
    asked: FetchPartition
    max_bytes: int

    @property
    def question(self) -> Hashable:
        """All that the answer depends on: calls with the same question get the same answer."""
        asked = self.asked
        return (
            asked.fetch_offset,
            asked.last_fetched_epoch,
            asked.current_leader_epoch,
            self.version,
            self.listener,
            self.max_bytes,
        )


class ParkedFetches(Waiting[FetchCall]):
    """Fetches that wait for the log to grow. All of them are answered together then."""

    __slots__ = ()

    def park(self, call: FetchCall, deadline_ms: int) -> None:
        """Let a fetch wait until the monotonic time ``deadline_ms`` at most."""
        self.add(call.token, call, deadline_ms)
