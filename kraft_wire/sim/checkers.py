"""What has to hold, whatever happens: an invariant a class, each by itself, fed by what nodes do.

A checker implements the hooks that it needs; ``Checkers`` calls those and no others. Names are Kafka's
(RaftEventSimulationTest) or those of the TLA+ specification of KRaft where they have one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.majority import majority_of
from kraft_wire.raft.roles import Role
from kraft_wire.raft.voters import ReplicaKey, voters_of_record
from kraft_wire.sim.disk import Disk
from kraft_wire.sim.snapshot_file import SnapshotFile
from kraft_wire.sim.violations import Violation


class Checked(Protocol):
    """A node, as checkers see it. ``raft`` is its running core, None while it is down."""

    @property
    def id(self) -> int: ...
    @property
    def config(self) -> RaftConfig: ...
    @property
    def life(self) -> int: ...
    @property
    def disk(self) -> Disk: ...
    @property
    def raft(self) -> RaftCore: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def leading(self) -> tuple[int, int] | None: ...
    def request_of(self, token: int) -> Message | None: ...


class Checker:
    """Hooks; what a checker doesn't override isn't called."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        self.nodes = nodes

    def fail(self, node: Checked, seen: str) -> None:
        raise Violation(type(self).__name__, f"node {node.id}: {seen}")

    def started(self, node: Checked) -> None:
        """A process is up again, and has taken its first step."""

    def stepped(self, node: Checked) -> None:
        """A step, and all its effects, are done."""

    def persisted(self, node: Checked, state: ElectionState) -> None:
        """quorum-state was written."""

    def sending(self, node: Checked, request: Message) -> None:
        """A request leaves."""

    def answering(self, node: Checked, token: int, response: Message) -> None:
        """A response leaves."""

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        """A batch was written, not yet flushed."""

    def truncated(self, node: Checked, gone: Sequence[AppendBatch], end_offset: int) -> None:
        """The log was cut."""

    def trimmed(self, node: Checked) -> None:
        """The log begins later, or anew."""

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        """A fetched snapshot took the log's place."""

    def led(self, node: Checked, epoch: int) -> None:
        """A node became leader."""

    def advanced(self, node: Checked, high_watermark: int) -> None:
        """A node says that more is committed."""

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        """A node's state machine has taken a committed batch in."""

    def acknowledged(self, node: Checked, batch: AppendBatch) -> None:
        """A client was told that its records are committed."""


# Elections.


class SingleLeader(Checker):
    """One leader an epoch (ElectionSafety); who is started again leads no epoch of its former life
    (KAFKA-10527)."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._leaders: dict[int, tuple[int, int]] = {}

    def led(self, node: Checked, epoch: int) -> None:
        leader, life = self._leaders.setdefault(epoch, (node.id, node.life))
        if (leader, life) != (node.id, node.life):
            self.fail(node, f"leads epoch {epoch}, and so does node {leader}")

    def started(self, node: Checked) -> None:
        if node.raft.role is Role.LEADER:
            self.fail(node, f"is leader of epoch {node.raft.epoch} before its first step")


class OneVote(Checker):
    """One vote a voter and epoch, ever, by what is on its disk and by what it says. Another directory of an
    id is another replica, as a voter and as a candidate (KAFKA-16526); where quorum-state has no room for
    directories, an id is all that is known of whom it names."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}

    def persisted(self, node: Checked, state: ElectionState) -> None:
        if state.has_voted:
            self._note(node, state.leader_epoch, ReplicaKey(state.voted_id, state.voted_directory_id))
        elif state.leader_id == node.id:
            self._note(node, state.leader_epoch, node.config.replica_key)

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if isinstance(response, VoteResponse):
            asked = vote_granted(node, token, response)
            if asked is not None and not asked.pre_vote:
                candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
                self._note(node, asked.replica_epoch, candidate)

    def _note(self, node: Checked, epoch: int, candidate: ReplicaKey) -> None:
        vote = node.config.replica_key, epoch
        known = self._votes.setdefault(vote, candidate)
        if not known.matches(candidate) and not candidate.matches(known):
            self.fail(node, f"voted for {known} and for {candidate} in epoch {epoch}")
        if candidate.directory_id:
            self._votes[vote] = candidate


class VoteIsDurable(Checker):
    """A vote is on stable storage before it is given, or asked for on the strength of one's own."""

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if isinstance(response, VoteResponse):
            asked = vote_granted(node, token, response)
            if asked is not None and not asked.pre_vote:
                self._look(node, asked.replica_epoch, asked.replica_id)

    def sending(self, node: Checked, request: Message) -> None:
        if isinstance(request, VoteRequest):
            asked = request.topics[0].partitions[0]
            if not asked.pre_vote:
                self._look(node, asked.replica_epoch, node.id)

    def _look(self, node: Checked, epoch: int, candidate: int) -> None:
        state = node.disk.election
        if state is None or (state.leader_epoch, state.voted_id) != (epoch, candidate):
            self.fail(node, f"votes for {candidate} in epoch {epoch}, quorum-state says {state}")


class LeadershipIsDurable(Checker):
    """Who calls itself leader has written so."""

    def sending(self, node: Checked, request: Message) -> None:
        if isinstance(request, BeginQuorumEpochRequest):
            epoch = request.topics[0].partitions[0].leader_epoch
            state = node.disk.election
            if state is None or (state.leader_epoch, state.leader_id) != (epoch, node.id):
                self.fail(node, f"says that it leads epoch {epoch}, quorum-state says {state}")


class VoteGoesToTheUpToDate(Checker):
    """Nobody votes for a log that ends before its own, and nobody at all who lost part of it. A vote that was
    given already may be repeated, whatever the log has become since."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._given: set[tuple[int, int]] = set()

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if not isinstance(response, VoteResponse):
            return
        asked = vote_granted(node, token, response)
        if asked is None or (node.id, asked.replica_epoch) in self._given:
            return
        if not asked.pre_vote:
            self._given.add((node.id, asked.replica_epoch))
        own = node.disk.last_epoch, node.disk.end_offset
        if (asked.last_offset_epoch, asked.last_offset) < own:
            seen = f"votes for a log that ends with {asked.last_offset_epoch, asked.last_offset}, has {own}"
            self.fail(node, seen)
        if node.disk.lost_below is not None:
            self.fail(node, f"votes though its log lost records below {node.disk.lost_below}")


class MonotonicEpoch(Checker):
    """Epochs rise only, over restarts too, and the disk says what memory says. A node that lost quorum-state
    begins again with what its log says."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._epochs: dict[int, int] = {}

    def stepped(self, node: Checked) -> None:
        epoch = node.raft.epoch
        known = self._epochs.get(node.id, 0)
        if epoch == known:
            return
        if epoch < known:
            self.fail(node, f"was in epoch {known}, is in {epoch}")
        state = node.disk.election
        if state is None or state.leader_epoch != epoch:
            self.fail(node, f"is in epoch {epoch}, quorum-state says {state}")
        self._epochs[node.id] = epoch

    def started(self, node: Checked) -> None:
        if node.disk.election is None:
            self._epochs.pop(node.id, None)


class LeaderCompleteness(Checker):
    """A leader has everything that leaders of earlier epochs committed (Durability)."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._last_committed: dict[int, AppendBatch] = {}

    def advanced(self, node: Checked, high_watermark: int) -> None:
        if node.leading is not None:
            batch = node.disk.batch_before(high_watermark)
            if batch is not None:
                self._last_committed[node.leading[0]] = batch

    def led(self, node: Checked, epoch: int) -> None:
        earlier = [batch for of, batch in self._last_committed.items() if of < epoch]
        if not earlier:
            return
        last = max(earlier, key=lambda batch: batch.last_offset)
        if last.last_offset < node.disk.start_offset:
            return
        own = node.disk.batch_before(last.last_offset + 1)
        if own is None or own.data != last.data:
            self.fail(node, f"leads epoch {epoch} without what is committed at offset {last.base_offset}")


# Replication.


class LogMatching(Checker):
    """Two batches of one offset and epoch are the same."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._written: dict[tuple[int, int], bytes] = {}

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        known = self._written.setdefault((batch.base_offset, batch.epoch), batch.data)
        if known is not batch.data and known != batch.data:
            self.fail(node, f"has another batch at offset {batch.base_offset} of epoch {batch.epoch}")


class ConsistentCommittedData(Checker):
    """State machines that have taken in as much are in the same state, however they came to it."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._digests: dict[int, bytes] = {}

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        if self._digests.setdefault(batch.last_offset + 1, digest) != digest:
            self.fail(node, f"another committed batch than others have ends at offset {batch.last_offset}")

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        if self._digests.setdefault(snapshot.id.end_offset, node.digest) != node.digest:
            self.fail(node, f"snapshot {snapshot.id} holds another state than others have")

    def digest_at(self, end_offset: int) -> bytes:
        """What everybody has there."""
        return self._digests[end_offset]


class EqualState(Checker):
    """Equal state at an equal offset, live or from a snapshot and what follows it."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._hashes: dict[int, bytes] = {}

    def check(self, node: Checked, end_offset: int, state_hash: bytes) -> None:
        if self._hashes.setdefault(end_offset, state_hash) != state_hash:
            self.fail(node, f"another state at offset {end_offset} than others have, or it had itself")


class AcknowledgedStays(Checker):
    """What a client was told is committed is what state machines have there."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self.count = 0
        self.end_offset = 0
        self._acknowledged: dict[int, bytes] = {}

    def acknowledged(self, node: Checked, batch: AppendBatch) -> None:
        self.count += 1
        self.end_offset = max(self.end_offset, batch.last_offset + 1)
        self._acknowledged[batch.base_offset] = batch.data

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        known = self._acknowledged.get(batch.base_offset)
        if known is not None and known is not batch.data and known != batch.data:
            self.fail(node, f"the acknowledged batch at offset {batch.base_offset} was replaced")


class MonotonicHighWatermark(Checker):
    """A process never takes back what it said is committed."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._known: dict[int, tuple[int, int]] = {}

    def advanced(self, node: Checked, high_watermark: int) -> None:
        life, known = self._known.get(node.id, (0, 0))
        if life == node.life and high_watermark < known:
            self.fail(node, f"the high watermark went from {known} to {high_watermark}")
        self._known[node.id] = node.life, high_watermark


class MajorityReachedHighWatermark(Checker):
    """What a leader says is committed is on the stable storage of a majority, its epoch's first record
    included; nobody knows of more."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self.end_offset = 0

    def advanced(self, node: Checked, high_watermark: int) -> None:
        if node.leading is None:
            if high_watermark > self.end_offset:
                self.fail(node, f"takes {high_watermark} for committed, only {self.end_offset} is")
            return
        epoch, epoch_start_offset = node.leading
        if high_watermark <= epoch_start_offset:
            self.fail(node, f"high watermark {high_watermark} is not of its own epoch {epoch}")
        last = node.disk.batch_before(high_watermark)
        voters = node.raft.voters.ids
        holders = [id for id in voters if last is not None and _holds(self.nodes[id].disk, last)]
        if len(holders) < majority_of(len(voters)):
            self.fail(node, f"high watermark {high_watermark}, but only voters {holders} have that flushed")
        self.end_offset = max(self.end_offset, high_watermark)

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        if batch.last_offset >= self.end_offset:
            self.fail(node, f"applies {batch.last_offset}, only what is below {self.end_offset} is committed")

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if isinstance(response, FetchResponse) and response.responses:
            told = response.responses[0].partitions[0].high_watermark
            if told > self.end_offset:
                self.fail(node, f"tells that {told} is committed, only {self.end_offset} is")


def _holds(disk: Disk, last: AppendBatch) -> bool:
    """Whether a disk has a batch, and all before it, flushed; or had, before it rotted or was replaced."""
    if disk.former is not None and _holds(disk.former, last):
        return True
    end_offset = last.last_offset + 1
    if disk.lost_below is not None and disk.lost_below >= end_offset:
        return True
    if disk.flushed_offset < end_offset:
        return False
    own = disk.batch_before(end_offset)
    return end_offset <= disk.start_offset if own is None else own.epoch == last.epoch


class FlushedBeforeFetch(Checker):
    """A Fetch acknowledges what is below its offset: all of that is flushed."""

    def sending(self, node: Checked, request: Message) -> None:
        if isinstance(request, FetchRequest):
            asked = request.topics[0].partitions[0]
            if asked.fetch_offset > node.disk.flushed_offset:
                self.fail(node, f"fetches {asked.fetch_offset}, only {node.disk.flushed_offset} is flushed")


class NoTruncationBelowHighWatermark(Checker):
    """What is committed is never cut off, and a leader cuts nothing."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._committed: dict[int, bytes] = {}

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        self._committed[batch.base_offset] = batch.data

    def truncated(self, node: Checked, gone: Sequence[AppendBatch], end_offset: int) -> None:
        if node.leading is not None:
            self.fail(node, f"cuts its log at {end_offset} as a leader")
        for batch in gone:
            if self._committed.get(batch.base_offset) == batch.data:
                self.fail(node, f"cuts its log at {end_offset}, below the committed {batch.base_offset}")


# Snapshots and voters.


class SnapshotAtLogStart(Checker):
    """A log that doesn't begin at 0 begins at the end of a snapshot that is there, or below it."""

    def trimmed(self, node: Checked) -> None:
        disk = node.disk
        start = disk.start_offset
        if start and not any(id.end_offset >= start for id in disk.snapshots):
            self.fail(node, f"the log begins at {start}, snapshots are {sorted(disk.snapshots)}")

    def stepped(self, node: Checked) -> None:
        if node.raft.log_start_offset > node.disk.start_offset:
            self.fail(node, f"begins at {node.raft.log_start_offset}, on disk at {node.disk.start_offset}")

    def started(self, node: Checked) -> None:
        self.trimmed(node)


class LeaderNeverLoadsSnapshot(Checker):
    """A leader has everything; who installs a snapshot follows."""

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        if node.leading is not None:
            self.fail(node, f"installs snapshot {snapshot.id} as a leader")
        if snapshot.id == BOOTSTRAP_SNAPSHOT_ID:
            self.fail(node, "installs another's 0-0 checkpoint")


class SnapshotGoesForward(Checker):
    """A snapshot takes the place of a log that has less."""

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        if snapshot.id.end_offset < node.high_watermark:
            self.fail(node, f"goes back from {node.high_watermark} to snapshot {snapshot.id}")


class VotersAreThoseOfTheLog(Checker):
    """The voter set is the latest VotersRecord in the log or the snapshot below it, committed or not."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._is_due: set[int] = set()

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        if batch.data[22] & 0x20:
            self._is_due.add(node.id)

    def truncated(self, node: Checked, gone: Sequence[AppendBatch], end_offset: int) -> None:
        self._is_due.add(node.id)

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        self._is_due.add(node.id)

    def stepped(self, node: Checked) -> None:
        if node.id not in self._is_due:
            return
        self._is_due.discard(node.id)
        records = [m for m in node.disk.control_at(node.disk.end_offset) if isinstance(m, VotersRecord)]
        if records and voters_of_record(records[-1]) != node.raft.voters:
            self.fail(node, f"counts {node.raft.voters} as voters, its log {voters_of_record(records[-1])}")


ALL: Final[Sequence[type[Checker]]] = (
    SingleLeader,
    OneVote,
    VoteIsDurable,
    LeadershipIsDurable,
    VoteGoesToTheUpToDate,
    MonotonicEpoch,
    LeaderCompleteness,
    LogMatching,
    ConsistentCommittedData,
    AcknowledgedStays,
    MonotonicHighWatermark,
    MajorityReachedHighWatermark,
    FlushedBeforeFetch,
    NoTruncationBelowHighWatermark,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    SnapshotGoesForward,
    VotersAreThoseOfTheLog,
)

Hook = Callable[..., None]

HOOKS: Final = (
    "started",
    "stepped",
    "persisted",
    "sending",
    "answering",
    "appended",
    "truncated",
    "trimmed",
    "installed",
    "led",
    "advanced",
    "applied",
    "acknowledged",
)


class Checkers:
    """All of them, but those that a scenario breaks on purpose; each attribute holds what is to be called."""

    def __init__(self, nodes: Mapping[int, Checked], without: Sequence[type[Checker]] = ()) -> None:
        checkers = [kind(nodes) for kind in ALL if kind not in without]
        self.acknowledgements = AcknowledgedStays(nodes)
        self.majority = MajorityReachedHighWatermark(nodes)
        self.committed_data = ConsistentCommittedData(nodes)
        self.equal_state = EqualState(nodes)
        for checker in checkers:
            if isinstance(checker, AcknowledgedStays):
                self.acknowledgements = checker
            elif isinstance(checker, MajorityReachedHighWatermark):
                self.majority = checker
            elif isinstance(checker, ConsistentCommittedData):
                self.committed_data = checker
        self.started = _hooks(checkers, "started")
        self.stepped = _hooks(checkers, "stepped")
        self.persisted = _hooks(checkers, "persisted")
        self.sending = _hooks(checkers, "sending")
        self.answering = _hooks(checkers, "answering")
        self.appended = _hooks(checkers, "appended")
        self.truncated = _hooks(checkers, "truncated")
        self.trimmed = _hooks(checkers, "trimmed")
        self.installed = _hooks(checkers, "installed")
        self.led = _hooks(checkers, "led")
        self.advanced = _hooks(checkers, "advanced")
        self.applied = _hooks(checkers, "applied")
        self.acknowledged = _hooks(checkers, "acknowledged")

    def add(self, checker: Checker) -> None:
        """One more."""
        for name in HOOKS:
            getattr(self, name).extend(_hooks([checker], name))


def _hooks(checkers: Sequence[Checker], name: str) -> list[Hook]:
    return [getattr(c, name) for c in checkers if getattr(type(c), name) is not getattr(Checker, name)]


# What they share.


def vote_granted(node: Checked, token: int, response: VoteResponse) -> Any:
    """The request's only partition, where the answer to it is yes."""
    if not response.topics or not response.topics[0].partitions[0].vote_granted:
        return None
    request = node.request_of(token)
    return request.topics[0].partitions[0] if isinstance(request, VoteRequest) else None
