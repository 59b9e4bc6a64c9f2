"""A raft core on a simulated disk.

The disk executes effects in order and separates flushed data from unflushed data. A crash loses the unflushed
data; the core restarts from the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

from kraft_wire.log.batch import Batch, frame_values, iter_records
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID, ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kraft_wire.protocol.messages.fetch_response import FetchResponse, PartitionData
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState, RaftConfig, SnapshotInfo
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import (
    Effect,
    Reply,
    ReplyAlike,
    ReplyRecords,
    ReplySnapshotBytes,
)
from kraft_wire.raft.events import (
    Event,
    Flushed,
    LogTrimmed,
    Now,
    Propose,
    RpcRequest,
    SnapshotWritten,
    Start,
    Tick,
)
from kraft_wire.raft.executor import execute_all
from kraft_wire.raft.membership.voters import (
    ReplicaKey,
    Voter,
    VoterSet,
    endpoints_of,
    static_voters,
    voter_set,
)
from tests.raft.lone_ports import LonePorts

CLUSTER_ID = "1Db5QLSqSZieL3rJBUUegA"
LISTENER = "CONTROLLER"
DIRECTORY = Uuid(bytes(range(16)))
OTHER_DIRECTORY = Uuid(bytes(range(1, 17)))
ENDPOINTS = endpoints_of([(LISTENER, "controller.example", 9093)])
OWN_VOTER = Voter(ReplicaKey(1, DIRECTORY), ENDPOINTS)
NO_HIGH_WATERMARK_KNOWN = 2**63 - 1

E = TypeVar("E")


class FixedRandomness:
    """A source of randomness that always returns the same number."""

    def __init__(self, answer: int = 0) -> None:
        self._answer = answer

    def below(self, bound: int) -> int:
        return min(self._answer, bound - 1)


def config(
    *, endpoints: tuple[tuple[str, str, int], ...] = (), static: VoterSet | None = None, **settings: Any
) -> RaftConfig:
    """Return the configuration of node 1, the only voter in controller.quorum.voters unless the log names
    others."""
    alone = static_voters(LISTENER, {1: ("controller.example", 9093)})
    return RaftConfig(
        node_id=1,
        directory_id=DIRECTORY,
        cluster_id=CLUSTER_ID,
        endpoints=endpoints_of(endpoints) if endpoints else ENDPOINTS,
        static_voters=alone if static is None else static,
        **settings,
    )


def formatted_standalone(*voters: Voter) -> DurableState:
    """Return the state after ``storage format --standalone``: a 0-0 checkpoint with kraft.version 1 and the
    voters."""
    return DurableState(
        snapshots=[SnapshotInfo(SnapshotId(0, 0), 494, 0)],
        control_records=[
            (-1, KRaftVersionRecord(kraft_version=1)),
            (-1, voter_set(voters or [OWN_VOTER]).to_record()),
        ],
    )


def fetch(
    offset: int,
    last_epoch: int,
    *,
    epoch: int,
    replica: int = 7,
    directory: Uuid = OTHER_DIRECTORY,
    high_watermark: int = NO_HIGH_WATERMARK_KNOWN,
    max_wait_ms: int = 500,
    max_bytes: int = 1 << 20,
    cluster_id: str | None = CLUSTER_ID,
) -> FetchRequest:
    """Return the Fetch of an observer."""
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(replica_id=replica),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[
            FetchTopic(
                topic=CLUSTER_METADATA,
                topic_id=CLUSTER_METADATA_TOPIC_ID,
                partitions=[
                    FetchPartition(
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last_epoch,
                        replica_directory_id=directory,
                        high_watermark=high_watermark,
                    )
                ],
            )
        ],
    )


def only(response: Message) -> PartitionData:
    """Return the only partition of a Fetch response."""
    assert isinstance(response, FetchResponse)
    assert response.error_code == 0
    assert len(response.responses) == 1
    assert len(response.responses[0].partitions) == 1
    return response.responses[0].partitions[0]


def of_type(effects: Iterable[Effect], kind: type[E]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


Answer = Reply | ReplyAlike | ReplyRecords | ReplySnapshotBytes
ANSWERS = (Reply, ReplyAlike, ReplyRecords, ReplySnapshotBytes)


def answered_tokens(answer: Answer) -> tuple[Hashable, ...]:
    return answer.tokens if isinstance(answer, ReplyAlike | ReplyRecords) else (answer.token,)


class LoneNode:
    """Node 1 and its disk. ``answers`` are the effects that answer requests, by token; ``high_watermarks``
    are all that were announced."""

    def __init__(
        self, raft_config: RaftConfig | None = None, durable: DurableState | None = None, start: bool = True
    ) -> None:
        self.config = raft_config or config()
        self.now = Now(monotonic_ms=1_000, wall_ms=1_700_000_000_000)
        self.durable = durable or DurableState()
        self.election = self.durable.election
        self.log_start_offset = self.durable.log_start_offset
        self.batches: list[Batch] = []
        self.flushed_batches = 0
        self.snapshots = list(self.durable.snapshots)
        self.trims: list[int] = []
        self.answers: dict[Hashable, Answer] = {}
        self.high_watermarks: list[int] = []
        self.has_lost_records = self.durable.lost_below_offset is not None
        self._ports = LonePorts(self)
        self.core = RaftCore(self.config, self.durable, FixedRandomness())
        if start:
            self.step(Start())

    # Events.

    def step(self, event: Event) -> list[Effect]:
        effects = self.core.step(event, self.now)
        for effect in effects:
            if isinstance(effect, ANSWERS):
                for token in answered_tokens(effect):
                    assert token not in self.answers, "answered twice"
                    self.answers[token] = effect
        execute_all(effects, self._ports)
        return effects

    def pass_ms(self, ms: int) -> list[Effect]:
        """Let time pass, then tick."""
        self.now = Now(self.now.monotonic_ms + ms, self.now.wall_ms + ms)
        return self.step(Tick())

    def propose(self, *values: bytes) -> list[Effect]:
        return self.step(Propose(frame_values(values or (b"record",))))

    def flush(self, batches: int | None = None) -> list[Effect]:
        """Flush everything, or only the next ``batches``."""
        end = len(self.batches) if batches is None else self.flushed_batches + batches
        self.flushed_batches = min(end, len(self.batches))
        return self.step(Flushed(self.flushed_end_offset))

    def ask(
        self, request: Message, version: int, token: Hashable = "token", listener: str = LISTENER
    ) -> list[Effect]:
        return self.step(RpcRequest(token, request, version, listener))

    def has_lost_leader(self) -> None:
        """Let the node be one that has heard a leader since its start, and hears none."""
        self.core._quorum.has_heard_leader = True

    def answer_to(self, request: Message, version: int, listener: str = LISTENER) -> Message:
        """Send a request that is answered at once, and return the answer."""
        self.ask(request, version, token="at once", listener=listener)
        return self.answers.pop("at once").response

    def write_snapshot(self, size_bytes: int = 1_000, timestamp_ms: int | None = None) -> list[Effect]:
        """Write a snapshot of everything that is committed."""
        end_offset = self.core.high_watermark
        assert end_offset is not None
        snapshot_id = SnapshotId(end_offset, self.core.epoch_at(end_offset - 1))
        contained = self.now.wall_ms if timestamp_ms is None else timestamp_ms
        self.snapshots.append(SnapshotInfo(snapshot_id, size_bytes, contained))
        return self.step(SnapshotWritten(snapshot_id, size_bytes, contained))

    def log_trimmed(self, deleted_bytes: int = 0) -> list[Effect]:
        return self.step(LogTrimmed(deleted_bytes))

    # The disk.

    @property
    def flushed_end_offset(self) -> int:
        flushed = self.batches[: self.flushed_batches]
        return flushed[-1].header.next_offset if flushed else self.durable.log_end_offset

    def crash(self) -> None:
        """Lose what isn't flushed, and everything in memory."""
        del self.batches[self.flushed_batches :]

    def restart(self, raft_config: RaftConfig | None = None) -> list[Effect]:
        """Start again from the disk. Requests that were open are never answered."""
        self.config = raft_config or self.config
        kept = [batch for batch in self.batches if batch.header.next_offset > self.log_start_offset]
        snapshot = max((info.id for info in self.snapshots), default=SnapshotId(0, 0))
        self.durable = DurableState(
            election=self.election,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.flushed_end_offset,
            log_size_bytes=sum(batch.header.size_bytes for batch in kept),
            epochs=EpochCache(_epochs(kept, self.log_start_offset)),
            snapshots=list(self.snapshots),
            control_records=_voter_records(self.durable.control_records, self.batches, snapshot),
        )
        self.answers.clear()
        self._ports = LonePorts(self)
        self.core = RaftCore(self.config, self.durable, FixedRandomness())
        return self.step(Start())

    # The log's contents.

    def control_messages(self, batch_index: int) -> list[Message]:
        return decode_control_batch(self.batches[batch_index])

    def values(self) -> list[bytes]:
        return [
            record.value
            for batch in self.batches
            if not batch.header.is_control
            for record in iter_records(batch)
        ]


def _epochs(batches: Sequence[Batch], log_start_offset: int) -> list[tuple[int, int]]:
    starts: dict[int, int] = {}
    for batch in batches:
        starts.setdefault(batch.header.leader_epoch, max(batch.header.base_offset, log_start_offset))
    return sorted(starts.items())


def _voter_records(
    known: Sequence[tuple[int, Message]], batches: Sequence[Batch], snapshot: SnapshotId
) -> list[tuple[int, Message]]:
    """Return the voter records: the newest one below the snapshot's end, and all after it."""
    records = [(offset, message) for offset, message in known if offset == -1]
    for batch in batches:
        if batch.header.is_control:
            for offset, message in enumerate(decode_control_batch(batch), batch.header.base_offset):
                if isinstance(message, KRaftVersionRecord | VotersRecord):
                    records.append((offset, message))
    below = {type(message): message for offset, message in records if offset < snapshot.end_offset}
    return [(snapshot.end_offset - 1, message) for message in below.values()] + [
        (offset, message) for offset, message in records if offset >= snapshot.end_offset
    ]


def election(leader_id: int, epoch: int) -> ElectionState:
    return ElectionState(leader_id=leader_id, leader_epoch=epoch)
