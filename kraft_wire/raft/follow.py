"""Following a leader: fetching what it appends, byte for byte, and finding it in the first place.

A Fetch acknowledges everything below its offset, so that it isn't sent before all of that is flushed.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.log.errors import LogError
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kraft_wire.protocol.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from kraft_wire.raft import elections, install
from kraft_wire.raft.checks import METADATA_PARTITION
from kraft_wire.raft.effects import AppendBatch, TruncateLog
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Failure
from kraft_wire.raft.fetched import fetched_batches
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import discovery_peers, peer_at, take_in, told
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.refusals import keep_committed, refuse
from kraft_wire.raft.roles import Follower
from kraft_wire.raft.voters import Peer

MAX_WAIT_MS: Final = 500
"""How long the leader may keep a Fetch that it has nothing for (KafkaRaftClient)."""


# Asking.


def fetch(quorum: Quorum, state: Follower) -> None:
    """Keep one Fetch or FetchSnapshot under way: to the leader, or, while that one doesn't answer, to whoever
    may know a newer one."""
    if not _may_fetch(quorum):
        return
    snapshot = state.following.snapshot
    leader = peer_at(quorum, state.leader_id, state.leader_endpoints)
    if leader is None or quorum.outgoing.is_resting(leader, quorum.now.monotonic_ms):
        discover(quorum, besides=leader)
    elif snapshot is None:
        quorum.send(leader, _fetch_request(quorum))
    else:
        request = install.next_request(quorum, snapshot)
        if request is not None:
            quorum.send(leader, request)


def discover(quorum: Quorum, besides: Peer | None = None) -> None:
    """Ask anybody: a node that doesn't lead answers who does."""
    if not _may_fetch(quorum):
        return
    now_ms = quorum.now.monotonic_ms
    ready = [
        peer
        for peer in discovery_peers(quorum)
        if (besides is None or peer[1:] != besides[1:])
        and quorum.outgoing.is_ready(peer, FetchRequest, now_ms)
    ]
    if ready:
        quorum.send(quorum.pick(ready), _fetch_request(quorum))


def _may_fetch(quorum: Quorum) -> bool:
    return not quorum.outgoing.is_fetching() and quorum.log.flushed_offset == quorum.log.end_offset


def _fetch_request(quorum: Quorum) -> FetchRequest:
    config, log = quorum.config, quorum.log
    high_watermark = quorum.high_watermark
    return FetchRequest(
        cluster_id=config.cluster_id,
        replica_state=ReplicaState(replica_id=config.node_id),
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=0,
        max_bytes=config.fetch_max_bytes,
        topics=[
            FetchTopic(
                topic=CLUSTER_METADATA,
                topic_id=CLUSTER_METADATA_TOPIC_ID,
                partitions=[
                    FetchPartition(
                        partition=METADATA_PARTITION,
                        current_leader_epoch=quorum.epoch,
                        fetch_offset=log.end_offset,
                        last_fetched_epoch=log.last_epoch,
                        replica_directory_id=config.directory_id,
                        high_watermark=-1 if high_watermark is None else high_watermark,
                    )
                ],
            )
        ],
    )


# Answers.


def handle_fetch_response(quorum: Quorum, call: Call, response: FetchResponse) -> None:
    """Take what the leader has: records, a place to go back to, or a snapshot to begin with."""
    answer = _only_partition(response)
    if response.error_code != ErrorCode.NONE or answer is None:
        quorum.leave_alone(call)
        return
    leader = answer.current_leader
    said = told(quorum, answer.error_code, leader.leader_epoch, leader.leader_id, response.node_endpoints)
    if take_in(quorum, call, said):
        _take_contents(quorum, call, answer)
    else:
        notice_refusal(quorum, call, said.error)


def notice_refusal(quorum: Quorum, call: Call, error: ErrorCode) -> None:
    """Our leader answers that it leads no more: it has resigned, or restarted, in this very epoch."""
    state = quorum.state
    if (
        isinstance(state, Follower)
        and call.epoch == state.epoch
        and call.peer.id == state.leader_id
        and error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE)
    ):
        elections.note_leader_gone(quorum, state)


def handle_fetch_failed(quorum: Quorum, call: Call, failure: Failure) -> None:
    """The leader, or who should know it, can't be reached."""
    quorum.leave_alone(call)
    state = quorum.state
    if isinstance(state, Follower) and call.peer.id == state.leader_id and failure is Failure.LOST:
        elections.note_leader_gone(quorum, state)


def _only_partition(response: FetchResponse) -> PartitionData | None:
    if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return None
    partition = response.responses[0].partitions[0]
    return partition if partition.partition_index == METADATA_PARTITION else None


def _take_contents(quorum: Quorum, call: Call, answer: PartitionData) -> None:
    state = quorum.state
    if not isinstance(state, Follower):
        quorum.leave_alone(call)
        return
    if answer.diverging_epoch.epoch >= 0:
        if not _go_back(quorum, call, answer.diverging_epoch):
            return
    elif answer.snapshot_id.epoch >= 0 and answer.snapshot_id.end_offset >= 0:
        wanted = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        if not install.begin(quorum, call, state, wanted):
            return
    elif not _append(quorum, call, answer):
        return
    elections.note_leader_alive(quorum)


def _append(quorum: Quorum, call: Call, answer: PartitionData) -> bool:
    """Append the leader's batches as they are. What can't be its log is refused as a whole (KAFKA-18723), and
    doesn't count as a sign of life, so that a leader with a bad disk is left in time."""
    log = quorum.log
    data = bytes(answer.records or b"")
    try:
        batches = fetched_batches(data, log.end_offset, log.last_epoch, quorum.epoch)
    except LogError as error:
        refuse(quorum, call, str(error))
        return False
    for batch, control in batches:
        header = batch.header
        log.appended(header.leader_epoch, header.next_offset, len(batch.data))
        quorum.emit(AppendBatch(batch.data, header.base_offset, header.last_offset, header.leader_epoch))
        for offset, message in enumerate(control, header.base_offset):
            quorum.history.apply(offset, message)
    quorum.follow_high_watermark(answer.high_watermark)
    return True


def _go_back(quorum: Quorum, call: Call, leaders: EpochEndOffset) -> bool:
    """Our log parts from the leader's: cut it. False where that can't be, or something committed would go."""
    end_offset = _cut_offset(quorum, leaders)
    reason = _why_no_cut(quorum, leaders, end_offset)
    if reason is not None:
        refuse(quorum, call, reason)
        return False
    if end_offset < quorum.committed_offset:
        keep_committed(quorum, call, end_offset)
        return False
    _truncate(quorum, end_offset)
    return True


def _cut_offset(quorum: Quorum, leaders: EpochEndOffset) -> int:
    """Where our log has to end: where both end the epoch that they can have in common."""
    own = quorum.log.end_for_epoch(leaders.epoch)
    return min(own.end_offset, leaders.end_offset) if own.epoch == leaders.epoch else own.end_offset


def _why_no_cut(quorum: Quorum, leaders: EpochEndOffset, end_offset: int) -> str | None:
    """Why a leader of our epoch can't say this of its log and ours; None if it can."""
    said = f"it ends epoch {leaders.epoch} at offset {leaders.end_offset}"
    if leaders.end_offset < 0:
        return f"{said}, which is none"
    if leaders.epoch > quorum.epoch:
        return f"{said}, and has none of epoch {leaders.epoch}: it leads {quorum.epoch}"
    if end_offset >= quorum.log.end_offset:
        return f"{said}, which leaves nothing to cut of our log"
    return None


def _truncate(quorum: Quorum, end_offset: int) -> None:
    _forget_from(quorum, end_offset)
    quorum.emit(TruncateLog(end_offset))


def truncated(quorum: Quorum, end_offset: int) -> None:
    """The log was cut. A leader that cuts within a batch isn't of the kind that wrote it, but logs hold whole
    batches only. Raises InvariantViolated where that cost something committed."""
    if end_offset < quorum.committed_offset:
        committed = quorum.committed_offset
        raise InvariantViolated(f"the log was cut at offset {end_offset}, and is committed up to {committed}")
    if end_offset < quorum.log.end_offset:
        _forget_from(quorum, end_offset)


def _forget_from(quorum: Quorum, end_offset: int) -> None:
    quorum.log.truncate_to(end_offset)
    quorum.history.truncate_from_end(end_offset)
