"""Fetch a leader's snapshot in pieces and restart the log from it (KIP-630).

The pieces go to a temporary file. When it is complete, it is verified and flushed, which takes time; only
then does it replace the log. Meanwhile the follower fetches the last byte again at intervals: this
acknowledges nothing, but leader and follower hear from each other. If the leader changes, the pieces are
dropped, because another leader's snapshot of the same id may have other bytes. A piece that doesn't come is
requested again.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import fetch_snapshot_request
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest, TopicSnapshot
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.door.request_checks import METADATA_PARTITION
from kraft_wire.raft.effects import (
    AbandonSnapshot,
    AppendSnapshotBytes,
    BadFetch,
    DeleteSnapshot,
    InstallSnapshot,
    VerifySnapshot,
)
from kraft_wire.raft.election import known_leader
from kraft_wire.raft.events import SnapshotRejected, SnapshotVerified
from kraft_wire.raft.follower.rejected_answers import reject_answer, reject_truncation
from kraft_wire.raft.leader_claims import learn, read_claim
from kraft_wire.raft.membership.voter_history import unsupported_reason
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import FetchingSnapshot, Follower

KEEPALIVES_PER_TIMEOUT: Final = 4


def start_fetching(quorum: QuorumState, call: Call, state: Follower, wanted: SnapshotId) -> bool:
    """Start to fetch the leader's snapshot. Returns False if the leader can't want us to."""
    if wanted.end_offset < quorum.committed_offset:
        reject_truncation(quorum, call, wanted.end_offset)
        return False
    reason = _impossible_reason(quorum, wanted)
    if reason is not None:
        reject_answer(quorum, call, reason)
        return False
    under_way = state.following.snapshot
    if under_way is None or under_way.id != wanted:
        state.following.snapshot = FetchingSnapshot(wanted)
    return True


def _impossible_reason(quorum: QuorumState, wanted: SnapshotId) -> str | None:
    """Return why a leader of our epoch can't want us to start with this snapshot; None if it can.

    A leader has everything that is committed, and nothing of a later epoch.
    """
    log = quorum.log
    if wanted.end_offset < quorum.committed_offset:
        return f"its snapshot {wanted} ends below the committed offset {quorum.committed_offset}"
    if wanted.epoch > quorum.epoch:
        return f"its snapshot {wanted} is of epoch {wanted.epoch}, but it leads epoch {quorum.epoch}"
    if (wanted.epoch, wanted.end_offset) <= (log.last_epoch, log.end_offset):
        return f"its snapshot {wanted} is not ahead of the log, whose last epoch is {log.last_epoch}"
    return None


def next_request(quorum: QuorumState, snapshot: FetchingSnapshot) -> FetchSnapshotRequest | None:
    """Return the request for the next piece.

    If the snapshot is complete, return a request for its last byte if a keepalive is due, else None.
    """
    if not snapshot.is_complete:
        return _request(quorum, snapshot, snapshot.position, quorum.config.fetch_snapshot_max_bytes)
    if quorum.now.monotonic_ms < snapshot.next_keepalive_ms:
        return None
    _schedule_keepalive(quorum, snapshot)
    return _request(quorum, snapshot, snapshot.position - 1, max_bytes=1)


def _schedule_keepalive(quorum: QuorumState, snapshot: FetchingSnapshot) -> None:
    snapshot.next_keepalive_ms = (
        quorum.now.monotonic_ms + quorum.config.fetch_timeout_ms // KEEPALIVES_PER_TIMEOUT
    )


def next_keepalive_ms(quorum: QuorumState, state: Follower) -> int | None:
    """Return when the leader has to hear from us although there is nothing to fetch.

    None if that is already due: the request that it waits for has a deadline of its own.
    """
    snapshot = state.following.snapshot
    if snapshot is None or not snapshot.is_complete or snapshot.next_keepalive_ms <= quorum.now.monotonic_ms:
        return None
    return snapshot.next_keepalive_ms


def _request(
    quorum: QuorumState, snapshot: FetchingSnapshot, position: int, max_bytes: int
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


def handle_snapshot_response(quorum: QuorumState, call: Call, response: FetchSnapshotResponse) -> None:
    """Handle a response with a piece of the snapshot."""
    answer = _only_partition(response)
    if response.error_code != ErrorCode.NONE or answer is None:
        quorum.back_off(call)
        return
    leader = answer.current_leader
    state = quorum.state
    if (
        answer.error_code == ErrorCode.SNAPSHOT_NOT_FOUND
        and isinstance(state, Follower)
        and leader.leader_epoch == quorum.epoch
    ):
        _handle_not_found(quorum, state)
        return
    claim = read_claim(
        quorum, answer.error_code, leader.leader_epoch, leader.leader_id, response.node_endpoints
    )
    if not learn(quorum, call, claim):
        known_leader.note_not_leader(quorum, call, claim.error)
        return
    state = quorum.state
    if isinstance(state, Follower) and state.following.snapshot is not None:
        if state.following.snapshot.is_complete:
            known_leader.note_leader_alive(quorum)
        else:
            _append_piece(quorum, call, state.following.snapshot, answer)


def _only_partition(response: FetchSnapshotResponse) -> PartitionSnapshot | None:
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return None
    return response.topics[0].partitions[0]


def _append_piece(
    quorum: QuorumState, call: Call, snapshot: FetchingSnapshot, answer: PartitionSnapshot
) -> None:
    data = bytes(answer.unaligned_records or b"")
    sent = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    end = snapshot.position + len(data)
    if sent != snapshot.id or answer.position != snapshot.position or not data or end > answer.size:
        reason = (
            f"snapshot {snapshot.id} was requested from byte {snapshot.position}, but the answer has"
            f" {len(data)} bytes of {sent} from byte {answer.position}, of {answer.size}"
        )
        reject_answer(quorum, call, reason)
        return
    quorum.emit(AppendSnapshotBytes(snapshot.id, snapshot.position, data))
    snapshot.position = end
    known_leader.note_leader_alive(quorum)
    if end == answer.size:
        snapshot.is_complete = True
        _schedule_keepalive(quorum, snapshot)
        quorum.emit(VerifySnapshot(snapshot.id))


def _handle_not_found(quorum: QuorumState, state: Follower) -> None:
    """Drop the incomplete snapshot, because the leader has a newer one by now.

    The answer to the next Fetch names the newer one.
    """
    snapshot = state.following.snapshot
    if snapshot is None:
        return
    if snapshot.is_complete:
        known_leader.note_leader_alive(quorum)
        return
    state.following.snapshot = None
    quorum.emit(AbandonSnapshot(snapshot.id))


def handle_snapshot_verified(quorum: QuorumState, event: SnapshotVerified) -> None:
    """Install the snapshot if it is still wanted.

    This node may have followed another leader meanwhile, or may be fetching the same snapshot again.
    """
    state = quorum.state
    awaited = state.following.snapshot if isinstance(state, Follower) else None
    if not isinstance(state, Follower) or awaited is None or awaited.id != event.snapshot_id:
        quorum.emit(AbandonSnapshot(event.snapshot_id))
        return
    if not awaited.is_complete:
        return
    state.following.snapshot = None
    reason = _impossible_reason(quorum, event.snapshot_id) or unsupported_reason(event.control_records)
    if reason is not None:
        quorum.emit(AbandonSnapshot(event.snapshot_id))
        quorum.emit(BadFetch(state.leader_id, quorum.log.end_offset, reason))
        return
    info = SnapshotInfo(event.snapshot_id, event.size_bytes, event.last_contained_log_timestamp_ms)
    forgotten = quorum.log.reset_to_snapshot(info)
    quorum.history.reset_to_snapshot(event.snapshot_id.end_offset - 1, event.control_records)
    quorum.emit(InstallSnapshot(event.snapshot_id))
    for snapshot_id in forgotten:
        quorum.emit(DeleteSnapshot(snapshot_id))
    quorum.check_loss_made_good()
    quorum.follow_high_watermark(event.snapshot_id.end_offset)


def handle_snapshot_rejected(quorum: QuorumState, event: SnapshotRejected) -> None:
    """Drop the fetched file, which wasn't a snapshot, and fetch again later. It doesn't count as hearing from
    the leader."""
    state = quorum.state
    if not isinstance(state, Follower):
        return
    awaited = state.following.snapshot
    if awaited is not None and awaited.id == event.snapshot_id:
        state.following.snapshot = None
        quorum.emit(BadFetch(state.leader_id, quorum.log.end_offset, event.reason))
