"""Track the progress of all replicas, and what is committed because of it (LeaderState)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Now
from kraft_wire.raft.leader.voter_silences import VoterSilences
from kraft_wire.raft.majority import committed_end, majority_of, nth_latest_contact_ms
from kraft_wire.raft.membership.voters import ReplicaKey, VoterSet

MOST_OBSERVERS: Final = 2000
"""Anybody can fetch under any id. Further observers are served, but not remembered, unless others are
silent."""

OBSERVER_KEPT_MS: Final = 60 * 60 * 1000
"""An observer is known for this long after its last fetch, and may become a voter if it has caught up within
this time."""

OBSERVER_REPLACED_MS: Final = 10_000
"""An observer that has been silent for so long is forgotten for a new one, if there are too many."""

ASK_AGAIN_MS: Final = 100
"""The time between questions to a voter that is said to be ahead."""


class ReplicaProgress(msgspec.Struct):
    """The progress of a replica, as its fetches show it. Wall-clock times are reported to administrators, -1
    for never.

    ``last_contact_ms`` (monotonic) is the time of its last Fetch or FetchSnapshot, or the time at which the
    leader was elected if there was none. ``last_contact_wall_ms`` is -1 then.
    """

    key: ReplicaKey
    end_offset: int | None = None
    last_contact_ms: int = 0
    last_contact_wall_ms: int = -1
    last_fetch_wall_ms: int = -1
    last_caught_up_wall_ms: int = -1
    leader_end_at_last_fetch: int = -1
    told_high_watermark: int = -1

    def note_fetch(self, fetch_offset: int, log_end_offset: int, now: Now) -> None:
        """Note a Fetch of ``fetch_offset``: the replica has everything below it.

        It is caught up now if it asks for the log's end. It was caught up at its previous Fetch if it now has
        everything that the leader had then.
        """
        if fetch_offset >= log_end_offset:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, now.wall_ms)
        elif 0 < self.leader_end_at_last_fetch <= fetch_offset:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, self.last_fetch_wall_ms)
        self.leader_end_at_last_fetch = log_end_offset
        self.note_contact(now)
        self.last_fetch_wall_ms = max(self.last_fetch_wall_ms, now.wall_ms)
        self.end_offset = fetch_offset

    def note_contact(self, now: Now) -> None:
        """Note that the replica asked for records or for a piece of a snapshot."""
        self.last_contact_ms = now.monotonic_ms
        self.last_contact_wall_ms = max(self.last_contact_wall_ms, now.wall_ms)


class Leadership:
    """The progress of voters and observers, and the high watermark.

    The high watermark is unknown until a majority holds a record of the leader's own epoch (KAFKA-12619), and
    never decreases. The leader's own log counts up to the flushed offset.
    """

    __slots__ = (
        "_asked_ms",
        "_own_key",
        "begin_epoch_due_ms",
        "epoch_start_offset",
        "high_watermark",
        "known_ends",
        "observers",
        "own",
        "said_to_be_ahead",
        "silences",
        "static_voters",
        "voters",
    )

    def __init__(self, own_key: ReplicaKey, epoch_start_offset: int, voters: VoterSet, now_ms: int) -> None:
        self._own_key = own_key
        self.own = ReplicaProgress(own_key, last_contact_ms=now_ms)
        self.epoch_start_offset = epoch_start_offset
        self.high_watermark: int | None = None
        self.voters: dict[int, ReplicaProgress] = {}
        self.observers: OrderedDict[ReplicaKey, ReplicaProgress] = OrderedDict()
        """Those that have been silent longest come first."""
        self.known_ends: dict[int, int] = {}
        """Up to where a replica, by its id, has the log and knows that it is committed."""
        self.static_voters = voters
        """The voters as they described themselves to this leader. It is for kraft.version 0, whose log has no
        voters."""
        self.silences = VoterSilences()
        self.begin_epoch_due_ms: dict[int, int] = {}
        """The time at which BeginQuorumEpoch is due for each of the other voters."""
        self._asked_ms: dict[int, int] = {}
        self.said_to_be_ahead: set[int] = set()
        """The voters that get it even if they fetch: their answer has their epoch."""
        self.adopt(voters, now_ms)

    def adopt(self, voters: VoterSet, now_ms: int) -> None:
        """Count the replicas of this voter set from now on (KIP-853).

        Replicas keep their progress when they become voters or observers. A leader that isn't in the set any
        more leads until its removal is committed, but doesn't count.
        """
        known = [*self.others, *self.observers.values()]
        self.voters = {voter.key.id: self._progress_of(voter.key, known, now_ms) for voter in voters.voters}
        counted = {progress.key for progress in self.voters.values()}
        observers = [progress for progress in known if progress.key not in counted]
        observers.sort(key=lambda progress: progress.last_contact_ms)
        self.observers = OrderedDict((progress.key, progress) for progress in observers)
        self.begin_epoch_due_ms = {
            progress.key.id: self.begin_epoch_due_ms.get(progress.key.id, now_ms) for progress in self.others
        }
        self.silences.keep(voters.ids)

    def _progress_of(self, key: ReplicaKey, known: Iterable[ReplicaProgress], now_ms: int) -> ReplicaProgress:
        """Return the progress of a replica that is a voter now.

        It inherits nothing from an observer without a directory id, which may be any replica with that id.
        Only a static voter without one is the voter of its id.
        """
        if key.matches(self._own_key):
            self.own.key = key
            return self.own
        exact = (progress for progress in known if progress.key == key)
        static = (progress for progress in self.others if progress.key == ReplicaKey(key.id))
        progress = next(exact, None) or next(static, None) or ReplicaProgress(key, last_contact_ms=now_ms)
        progress.key = key
        return progress

    @property
    def leads_from_outside(self) -> bool:
        """Whether the leader isn't one of the voters: its removal isn't committed yet."""
        return self.voters.get(self._own_key.id) is not self.own

    @property
    def others(self) -> list[ReplicaProgress]:
        """The other voters."""
        return [progress for progress in self.voters.values() if progress is not self.own]

    def majority_contact_ms(self) -> int | None:
        """Return the monotonic time of the last contact with a majority (KAFKA-15489, KAFKA-16144).

        None if the leader is a majority by itself. A leader is always in contact with itself, which counts if
        it is a voter.
        """
        others_needed = majority_of(len(self.voters)) - (not self.leads_from_outside)
        if not others_needed:
            return None
        return nth_latest_contact_ms([progress.last_contact_ms for progress in self.others], others_needed)

    def silent_voter_ids(self, since_ms: int) -> tuple[int, ...]:
        """Return the other voters whose last contact was before (monotonic) ``since_ms``."""
        return tuple(progress.key.id for progress in self.others if progress.last_contact_ms < since_ms)

    def successors(self) -> tuple[ReplicaKey, ...]:
        """Return the other voters, those with the longest log first."""
        ranked = sorted(self.others, key=lambda progress: progress.end_offset or 0, reverse=True)
        return tuple(progress.key for progress in ranked)

    def note_contact(self, key: ReplicaKey, now: Now) -> None:
        """Note that a replica asked for a piece of a snapshot, so it is alive."""
        progress = self._progress(key)
        if progress is not None:
            progress.note_contact(now)
            if key in self.observers:
                self.observers.move_to_end(key)

    def ask(self, voter_id: int, now_ms: int) -> None:
        """Ask a voter soon which epoch it is in, because somebody has named a higher one in its name."""
        if voter_id in self.begin_epoch_due_ms and voter_id not in self.said_to_be_ahead:
            due_ms = max(now_ms, self._asked_ms.get(voter_id, 0) + ASK_AGAIN_MS)
            self._asked_ms[voter_id] = due_ms
            self.begin_epoch_due_ms[voter_id] = min(due_ms, self.begin_epoch_due_ms[voter_id])
            self.said_to_be_ahead.add(voter_id)

    def ask_silent(self, voter_id: int, now_ms: int) -> None:
        """Ask a voter soon that was asked in vain, even if somebody fetches in its name."""
        if voter_id in self.begin_epoch_due_ms:
            due_ms = min(now_ms + ASK_AGAIN_MS, self.begin_epoch_due_ms[voter_id])
            self.begin_epoch_due_ms[voter_id] = due_ms

    def note_flush(self, end_offset: int) -> bool:
        """Note that the leader's log is on stable storage up to ``end_offset``. Returns whether more is
        committed."""
        self.own.end_offset = end_offset
        return self._advance()

    def note_fetch(self, key: ReplicaKey, fetch_offset: int, log_end_offset: int, now: Now) -> bool:
        """Note that a replica asked for ``fetch_offset``. Returns whether more is committed.

        Raises InvariantViolated for the leader's own id.
        """
        if key.id == self._own_key.id:
            raise InvariantViolated(f"replica {key} has the leader's own id")
        voter = self.voters.get(key.id)
        if voter is not None and voter.key.matches(key):
            voter.note_fetch(fetch_offset, log_end_offset, now)
            return self._advance()
        observer = self.observers.get(key) or self._new_observer(key, now.monotonic_ms)
        if observer is not None:
            observer.note_fetch(fetch_offset, log_end_offset, now)
            self.observers.move_to_end(key)
        return False

    def _new_observer(self, key: ReplicaKey, now_ms: int) -> ReplicaProgress | None:
        """Return a new observer; None if there are too many, and all have fetched a short time ago."""
        if len(self.observers) >= MOST_OBSERVERS:
            first = next(iter(self.observers.values()))
            if first.last_contact_ms > now_ms - OBSERVER_REPLACED_MS:
                return None
            self._forget_observer(first.key)
        observer = self.observers[key] = ReplicaProgress(key)
        return observer

    def _forget_observer(self, key: ReplicaKey) -> None:
        del self.observers[key]
        self.known_ends.pop(key.id, None)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter: any other is an observer."""
        voter = self.voters.get(key.id)
        return voter is not None and voter.key.matches(key)

    def told(self, key: ReplicaKey) -> int | None:
        """Return the high watermark in the last answer to a replica, -1 for none; None for a replica that
        isn't tracked."""
        progress = self._progress(key)
        return None if progress is None else progress.told_high_watermark

    def note_known(self, key: ReplicaKey, known_high_watermark: int | None) -> None:
        """Note which high watermark a replica knew when it sent the Fetch that was noted last.

        None means the one that it was told last: it sends no Fetch before it has read the previous answer.
        """
        progress = self._progress(key)
        if progress is None or progress.end_offset is None:
            return
        known = progress.told_high_watermark if known_high_watermark is None else known_high_watermark
        self.known_ends[key.id] = min(progress.end_offset, known)

    def note_told(self, key: ReplicaKey, high_watermark: int) -> None:
        """Note that the answer to a replica's Fetch has this high watermark."""
        progress = self._progress(key)
        if progress is not None:
            progress.told_high_watermark = high_watermark

    def _progress(self, key: ReplicaKey) -> ReplicaProgress | None:
        voter = self.voters.get(key.id)
        if voter is not None and voter.key.matches(key):
            return voter
        return self.observers.get(key)

    def has_caught_up(self, key: ReplicaKey, since_wall_ms: int) -> bool:
        """Whether an observer has once had the whole log, and has fetched since then
        (LeaderState.isReplicaCaughtUp)."""
        observer = self.observers.get(key)
        if observer is None or observer.last_caught_up_wall_ms < 0:
            return False
        return observer.last_fetch_wall_ms > since_wall_ms

    def drop_silent_observers(self, now_ms: int) -> None:
        """Forget the observers that have not fetched for an hour (``now_ms`` is monotonic). Java forgets them
        after five minutes, when somebody asks for the quorum."""
        fetched_since_ms = now_ms - OBSERVER_KEPT_MS
        silent = [
            key for key, progress in self.observers.items() if progress.last_contact_ms <= fetched_since_ms
        ]
        for key in silent:
            self._forget_observer(key)

    def _advance(self) -> bool:
        end = committed_end([progress.end_offset for progress in self.voters.values()])
        if end is None or end <= self.epoch_start_offset:
            return False
        if self.high_watermark is not None and end <= self.high_watermark:
            return False
        self.high_watermark = end
        return True
