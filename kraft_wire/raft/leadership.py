"""What a leader knows while it leads: how far every replica is, and what is therefore committed
(LeaderState)."""

from __future__ import annotations

import msgspec

from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Now
from kraft_wire.raft.majority import committed_end, contact_of_enough_ms, majority_of
from kraft_wire.raft.voters import ReplicaKey, VoterSet


class ReplicaProgress(msgspec.Struct):
    """How far a replica is, by its fetches. Wall-clock times are told to administrators, -1 for never.

    ``last_contact_ms`` (monotonic) is that of its last Fetch or FetchSnapshot, the leader's first moment
    where there was none.
    """

    key: ReplicaKey
    end_offset: int | None = None
    last_contact_ms: int = 0
    last_fetch_wall_ms: int = -1
    last_caught_up_wall_ms: int = -1
    leader_end_at_last_fetch: int = -1

    def fetched(self, fetch_offset: int, log_end_offset: int, now: Now) -> None:
        """The replica asked for ``fetch_offset``: it has everything below.

        It is caught up now when it asks for the log's end; it was caught up when it asked before, if it now
        has everything that the leader had then.
        """
        if fetch_offset >= log_end_offset:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, now.wall_ms)
        elif 0 < self.leader_end_at_last_fetch <= fetch_offset:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, self.last_fetch_wall_ms)
        self.leader_end_at_last_fetch = log_end_offset
        self.last_contact_ms = now.monotonic_ms
        self.last_fetch_wall_ms = max(self.last_fetch_wall_ms, now.wall_ms)
        self.end_offset = fetch_offset


class Leadership:
    """The progress of voters and observers, and the high watermark that follows from it.

    The high watermark is unknown until a majority holds a record of the leader's own epoch (KAFKA-12619), and
    never goes back. The leader itself counts with what is flushed.
    """

    __slots__ = (
        "_own_id",
        "epoch_start_offset",
        "high_watermark",
        "introduction_due_ms",
        "observers",
        "voters",
    )

    def __init__(self, own_id: int, epoch_start_offset: int, voters: VoterSet, now_ms: int) -> None:
        self._own_id = own_id
        self.epoch_start_offset = epoch_start_offset
        self.high_watermark: int | None = None
        self.voters = {
            key.id: ReplicaProgress(key, last_contact_ms=now_ms)
            for key in (voter.key for voter in voters.voters)
        }
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        self.introduction_due_ms = {voter_id: now_ms for voter_id in self.voters if voter_id != own_id}
        """When each of the other voters is to be told, or told again, who leads."""

    @property
    def others(self) -> list[ReplicaProgress]:
        """The other voters."""
        return [progress for voter_id, progress in self.voters.items() if voter_id != self._own_id]

    def majority_contact_ms(self) -> int | None:
        """When a majority was last heard of (monotonic); None where the leader is one by itself
        (KAFKA-15489, KAFKA-16144). A leader is always in contact with itself, which counts if it votes."""
        others_needed = majority_of(len(self.voters)) - (self._own_id in self.voters)
        if not others_needed:
            return None
        return contact_of_enough_ms([progress.last_contact_ms for progress in self.others], others_needed)

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, those with the most of the log first."""
        ranked = sorted(self.others, key=lambda progress: progress.end_offset or 0, reverse=True)
        return tuple(progress.key for progress in ranked)

    def in_contact(self, key: ReplicaKey, now_ms: int) -> None:
        """A replica asked for a piece of a snapshot: it is alive."""
        progress = self.voters.get(key.id) or self.observers.get(key)
        if progress is not None and progress.key.matches(key):
            progress.last_contact_ms = now_ms

    def flushed(self, end_offset: int) -> bool:
        """The leader's own log is on stable storage up to ``end_offset``; tells whether more is committed."""
        own = self.voters.get(self._own_id)
        if own is not None:
            own.end_offset = end_offset
        return self._advance()

    def fetched(self, key: ReplicaKey, fetch_offset: int, log_end_offset: int, now: Now) -> bool:
        """A replica asked for ``fetch_offset``; tells whether more is committed. Raises InvariantViolated for
        the leader's own id."""
        if key.id == self._own_id:
            raise InvariantViolated(f"replica {key} has the leader's own id")
        voter = self.voters.get(key.id)
        if voter is not None and voter.key.matches(key):
            voter.fetched(fetch_offset, log_end_offset, now)
            return self._advance()
        observer = self.observers.get(key)
        if observer is None:
            observer = self.observers[key] = ReplicaProgress(key)
        observer.fetched(fetch_offset, log_end_offset, now)
        return False

    def drop_silent_observers(self, fetched_since_ms: int) -> None:
        """Forget observers whose last fetch was before (monotonic) ``fetched_since_ms``."""
        silent = [
            key for key, progress in self.observers.items() if progress.last_contact_ms <= fetched_since_ms
        ]
        for key in silent:
            del self.observers[key]

    def _advance(self) -> bool:
        end = committed_end([progress.end_offset for progress in self.voters.values()])
        if end is None or end <= self.epoch_start_offset:
            return False
        if self.high_watermark is not None and end <= self.high_watermark:
            return False
        self.high_watermark = end
        return True
