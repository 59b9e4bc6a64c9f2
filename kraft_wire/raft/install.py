"""Beginning anew from a leader's snapshot, which is fetched in pieces (KIP-630).

The pieces go to a temporary file. When all are there the file is verified and flushed, which takes a while;
only then the log is dropped for it. Meanwhile the last byte is asked for again, now and then: that
acknowledges nothing, and leader and follower know of each other that they live. A leader that goes meanwhile
takes the pieces with it: another's snapshot of the same id may have other bytes. A piece that doesn't come is
asked for again.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import fetch_snapshot_request
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest, TopicSnapshot
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot
from kraft_wire.raft import elections
from kraft_wire.raft.checks import METADATA_PARTITION
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.effects import (
    AbandonSnapshot,
    AppendSnapshotBytes,
    BadFetch,
    DeleteSnapshot,
    InstallSnapshot,
    VerifySnapshot,
)
from kraft_wire.raft.events import SnapshotRejected, SnapshotVerified
from kraft_wire.raft.following import FetchingSnapshot
from kraft_wire.raft.history import why_unsupported
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import take_in, told
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.refusals import keep_committed, refuse
from kraft_wire.raft.roles import Follower

SIGNS_A_FETCH_TIMEOUT: Final = 4


def begin(quorum: Quorum, call: Call, state: Follower, wanted: SnapshotId) -> bool:
    """The leader no longer has what we ask for: begin with its snapshot. False for one that can't be."""
    if wanted.end_offset < quorum.committed_offset:
        keep_committed(quorum, call, wanted.end_offset)
        return False
    reason = _why_impossible(quorum, wanted)
    if reason is not None:
        refuse(quorum, call, reason)
        return False
    under_way = state.following.snapshot
    if under_way is None or under_way.id != wanted:
        state.following.snapshot = FetchingSnapshot(wanted)
    return True


def _why_impossible(quorum: Quorum, wanted: SnapshotId) -> str | None:
    """Why a leader of our epoch can't want us to begin with this snapshot; None if it can. A leader has all
    that is committed, and none of a later epoch."""
    log = quorum.log
    if wanted.end_offset < quorum.committed_offset:
        return f"its snapshot {wanted} ends below what is committed, {quorum.committed_offset}"
    if wanted.epoch > quorum.epoch:
        return f"its snapshot {wanted} is of epoch {wanted.epoch}, it leads {quorum.epoch}"
    if (wanted.epoch, wanted.end_offset) <= (log.last_epoch, log.end_offset):
        return f"its snapshot {wanted} is not ahead of the log, whose last epoch is {log.last_epoch}"
    return None


def next_request(quorum: Quorum, snapshot: FetchingSnapshot) -> FetchSnapshotRequest | None:
    """Ask for the next piece. Where there is none, ask for the last byte once more when a sign of life is due
    (None while it isn't)."""
    if not snapshot.is_complete:
        return _request(quorum, snapshot, snapshot.position, quorum.config.fetch_snapshot_max_bytes)
    if quorum.now.monotonic_ms < snapshot.next_sign_ms:
        return None
    _put_off_sign(quorum, snapshot)
    return _request(quorum, snapshot, snapshot.position - 1, max_bytes=1)


def _put_off_sign(quorum: Quorum, snapshot: FetchingSnapshot) -> None:
    snapshot.next_sign_ms = quorum.now.monotonic_ms + quorum.config.fetch_timeout_ms // SIGNS_A_FETCH_TIMEOUT


def next_sign_ms(quorum: Quorum, state: Follower) -> int | None:
    """When the leader has to hear of us although there is nothing to fetch. None where that is already due:
    what it waits for has a time of its own."""
    snapshot = state.following.snapshot
    if snapshot is None or not snapshot.is_complete or snapshot.next_sign_ms <= quorum.now.monotonic_ms:
        return None
    return snapshot.next_sign_ms


def _request(
    quorum: Quorum, snapshot: FetchingSnapshot, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    config = quorum.config
    return FetchSnapshotRequest(
        cluster_id=config.cluster_id,
        replica_id=config.node_id,
        max_bytes=max_bytes,
        topics=[
            TopicSnapshot(
                name=CLUSTER_METADATA,
                partitions=[
                    fetch_snapshot_request.PartitionSnapshot(
                        partition=METADATA_PARTITION,
                        current_leader_epoch=quorum.epoch,
                        snapshot_id=fetch_snapshot_request.SnapshotId(
                            end_offset=snapshot.id.end_offset, epoch=snapshot.id.epoch
                        ),
                        position=position,
                        replica_directory_id=config.directory_id,
                    )
                ],
            )
        ],
    )


def handle_snapshot_response(quorum: Quorum, call: Call, response: FetchSnapshotResponse) -> None:
    """Take a piece."""
    answer = _only_partition(response)
    if response.error_code != ErrorCode.NONE or answer is None:
        quorum.leave_alone(call)
        return
    leader = answer.current_leader
    state = quorum.state
    if (
        answer.error_code == ErrorCode.SNAPSHOT_NOT_FOUND
        and isinstance(state, Follower)
        and leader.leader_epoch == quorum.epoch
    ):
        _not_found(quorum, state)
        return
    said = told(quorum, answer.error_code, leader.leader_epoch, leader.leader_id, response.node_endpoints)
    if not take_in(quorum, call, said):
        return
    state = quorum.state
    if isinstance(state, Follower) and state.following.snapshot is not None:
        if state.following.snapshot.is_complete:
            elections.note_leader_alive(quorum)
        else:
            _take_piece(quorum, call, state.following.snapshot, answer)


def _only_partition(response: FetchSnapshotResponse) -> PartitionSnapshot | None:
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return None
    return response.topics[0].partitions[0]


def _take_piece(quorum: Quorum, call: Call, snapshot: FetchingSnapshot, answer: PartitionSnapshot) -> None:
    data = bytes(answer.unaligned_records or b"")
    sent = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    end = snapshot.position + len(data)
    if sent != snapshot.id or answer.position != snapshot.position or not data or end > answer.size:
        reason = (
            f"asked for snapshot {snapshot.id} from byte {snapshot.position} on, got {len(data)} bytes of"
            f" {sent} from {answer.position} on, of {answer.size}"
        )
        refuse(quorum, call, reason)
        return
    quorum.emit(AppendSnapshotBytes(snapshot.id, snapshot.position, data))
    snapshot.position = end
    elections.note_leader_alive(quorum)
    if end == answer.size:
        snapshot.is_complete = True
        _put_off_sign(quorum, snapshot)
        quorum.emit(VerifySnapshot(snapshot.id))


def _not_found(quorum: Quorum, state: Follower) -> None:
    """The leader has a newer one by now. What isn't there yet is left: the next Fetch is told of the newer
    one."""
    snapshot = state.following.snapshot
    if snapshot is None:
        return
    if snapshot.is_complete:
        elections.note_leader_alive(quorum)
        return
    state.following.snapshot = None
    quorum.emit(AbandonSnapshot(snapshot.id))


def verified(quorum: Quorum, event: SnapshotVerified) -> None:
    """Install the snapshot, if it is still wanted: this node may have followed another leader meanwhile, or
    may be fetching the same one anew."""
    state = quorum.state
    awaited = state.following.snapshot if isinstance(state, Follower) else None
    if not isinstance(state, Follower) or awaited is None or awaited.id != event.snapshot_id:
        quorum.emit(AbandonSnapshot(event.snapshot_id))
        return
    if not awaited.is_complete:
        return
    state.following.snapshot = None
    reason = _why_impossible(quorum, event.snapshot_id) or why_unsupported(event.control_records)
    if reason is not None:
        quorum.emit(AbandonSnapshot(event.snapshot_id))
        quorum.emit(BadFetch(state.leader_id, quorum.log.end_offset, reason))
        return
    info = SnapshotInfo(event.snapshot_id, event.size_bytes, event.last_contained_log_timestamp_ms)
    forgotten = quorum.log.begin_at(info)
    quorum.history.begin_at(event.snapshot_id.end_offset - 1, event.control_records)
    quorum.emit(InstallSnapshot(event.snapshot_id))
    for snapshot_id in forgotten:
        quorum.emit(DeleteSnapshot(snapshot_id))
    quorum.look_whether_whole()
    quorum.follow_high_watermark(event.snapshot_id.end_offset)


def rejected(quorum: Quorum, event: SnapshotRejected) -> None:
    """What came was no snapshot: ask again, later. It isn't a sign of life."""
    state = quorum.state
    if not isinstance(state, Follower):
        return
    awaited = state.following.snapshot
    if awaited is not None and awaited.id == event.snapshot_id:
        state.following.snapshot = None
        quorum.emit(BadFetch(state.leader_id, quorum.log.end_offset, event.reason))
