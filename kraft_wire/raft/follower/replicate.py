"""Find the leader, and fetch its log byte for byte.

A Fetch acknowledges everything below its offset, so it is sent only after all of that is flushed.
"""

from __future__ import annotations

from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import (
    FetchRequest,
)
from kraft_wire.protocol.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from kraft_wire.raft.door.request_checks import METADATA_PARTITION
from kraft_wire.raft.effects import AppendBatch, TruncateLog
from kraft_wire.raft.election import known_leader
from kraft_wire.raft.election.turns import longest_turn_ms
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Failure
from kraft_wire.raft.fetch_request import fetch_request
from kraft_wire.raft.follower import install_snapshot
from kraft_wire.raft.follower.check_fetched import fetched_batches
from kraft_wire.raft.follower.rejected_answers import reject_answer, reject_truncation
from kraft_wire.raft.leader_claims import learn, read_claim
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import bootstrap_peers, discovery_peers, is_claimed, peer_at, voter_peer
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower

# Requests.


def send_fetch(quorum: QuorumState, state: Follower) -> None:
    """Keep one Fetch or FetchSnapshot in flight.

    It goes to the leader. While the leader doesn't answer, it goes to another node that may know a newer
    leader.
    """
    if not _may_fetch(quorum):
        return
    snapshot = state.following.snapshot
    leader = peer_at(quorum, state.leader_id, state.leader_endpoints)
    if leader is None or quorum.outgoing.is_backing_off(leader, quorum.now.monotonic_ms):
        if not _stands_soon(quorum, state):
            find_leader(quorum, except_peer=leader)
    elif snapshot is None:
        quorum.send(leader, fetch_request(quorum))
    else:
        request = install_snapshot.next_request(quorum, snapshot)
        if request is not None:
            quorum.send(leader, request)


def _stands_soon(quorum: QuorumState, state: Follower) -> bool:
    """Whether this voter waits for its turn to stand. The voters that it then asks say who leads, so a search
    before that only keeps all of them busy."""
    wait_ms = state.deadline_ms - quorum.now.monotonic_ms
    has_turn = state.following.leader_is_gone and quorum.may_start_election
    return has_turn and wait_ms <= longest_turn_ms(quorum)


def find_leader(quorum: QuorumState, except_peer: Peer | None = None) -> None:
    """Send a Fetch to a node: one that doesn't lead answers who does. All are asked in turn, as many may be
    out of reach. A voter that has voted doesn't ask the others: its candidate leads soon if it wins."""
    if not _may_fetch(quorum):
        return
    now_ms = quorum.now.monotonic_ms
    ready = [
        peer
        for peer in _may_know_leader(quorum)
        if (except_peer is None or peer[1:] != except_peer[1:])
        and quorum.outgoing.is_ready(peer, FetchRequest, now_ms)
    ]
    if ready:
        quorum.send(quorum.pick(quorum.outgoing.longest_unasked(ready)), fetch_request(quorum))


def _may_know_leader(quorum: QuorumState) -> list[Peer]:
    candidate = _candidate_with_our_vote(quorum)
    if candidate is None or quorum.state.leader_id is not None or not quorum.may_start_election:
        return discovery_peers(quorum)
    return [candidate, *bootstrap_peers(quorum)]


def _candidate_with_our_vote(quorum: QuorumState) -> Peer | None:
    voted = quorum.state.voted
    if voted is None or voted.id == quorum.config.node_id:
        return None
    return voter_peer(quorum, voted.id)


def ask_bootstrap_servers(quorum: QuorumState) -> None:
    """Search the leader at the bootstrap servers while we stand for election.

    All voters that our log names may have been replaced while this node was away.
    """
    if not _may_fetch(quorum):
        return
    now_ms = quorum.now.monotonic_ms
    ready = [peer for peer in bootstrap_peers(quorum) if quorum.outgoing.is_ready(peer, FetchRequest, now_ms)]
    if ready:
        quorum.send(quorum.pick(quorum.outgoing.longest_unasked(ready)), fetch_request(quorum))


def _may_fetch(quorum: QuorumState) -> bool:
    return not quorum.outgoing.is_fetching() and quorum.log.flushed_offset == quorum.log.end_offset


# Answers.


def handle_fetch_response(quorum: QuorumState, call: Call, response: FetchResponse) -> None:
    """Handle the leader's answer: records, a diverging epoch, or a snapshot to start with."""
    answer = _only_partition(response)
    if is_claimed(call.peer):
        _learn_from_hint(quorum, call, answer, response)
        return
    if response.error_code != ErrorCode.NONE or answer is None:
        quorum.back_off(call)
        return
    leader = answer.current_leader
    claim = read_claim(
        quorum, answer.error_code, leader.leader_epoch, leader.leader_id, response.node_endpoints
    )
    if learn(quorum, call, claim):
        _apply_contents(quorum, call, answer)
    else:
        known_leader.note_not_leader(quorum, call, claim.error)


def _learn_from_hint(
    quorum: QuorumState, call: Call, answer: PartitionData | None, response: FetchResponse
) -> None:
    """Learn whether the node leads that was said to. Records wait for the next Fetch."""
    if answer is not None:
        leader = answer.current_leader
        claim = read_claim(
            quorum, answer.error_code, leader.leader_epoch, leader.leader_id, response.node_endpoints
        )
        learn(quorum, call, claim)


def handle_fetch_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Handle that the leader, or a node that may know it, couldn't be reached."""
    quorum.back_off(call)
    state = quorum.state
    if isinstance(state, Follower) and call.peer.id == state.leader_id and failure is Failure.LOST:
        known_leader.note_leader_gone(quorum, state)


def _only_partition(response: FetchResponse) -> PartitionData | None:
    if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return None
    partition = response.responses[0].partitions[0]
    return partition if partition.partition_index == METADATA_PARTITION else None


def _apply_contents(quorum: QuorumState, call: Call, answer: PartitionData) -> None:
    state = quorum.state
    if not isinstance(state, Follower):
        quorum.back_off(call)
        return
    if answer.diverging_epoch.epoch >= 0:
        if not _truncate_to_leader(quorum, call, answer.diverging_epoch):
            return
    elif answer.snapshot_id.epoch >= 0 and answer.snapshot_id.end_offset >= 0:
        wanted = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        if not install_snapshot.start_fetching(quorum, call, state, wanted):
            return
    elif not _append(quorum, call, answer):
        return
    known_leader.note_leader_alive(quorum)


def _append(quorum: QuorumState, call: Call, answer: PartitionData) -> bool:
    """Append the leader's batches unchanged.

    If one can't be part of its log, all are rejected (KAFKA-18723). This doesn't count as hearing from the
    leader, so that a leader with a bad disk is replaced in time.
    """
    log = quorum.log
    data = bytes(answer.records or b"")
    try:
        batches = fetched_batches(data, log.end_offset, log.last_epoch, quorum.epoch)
    except LogError as error:
        reject_answer(quorum, call, str(error))
        return False
    for batch, control in batches:
        header = batch.header
        log.note_append(header.leader_epoch, header.next_offset, len(batch.data))
        quorum.emit(AppendBatch(batch.data, header.base_offset, header.last_offset, header.leader_epoch))
        for offset, message in enumerate(control, header.base_offset):
            quorum.history.apply(offset, message)
    quorum.follow_high_watermark(answer.high_watermark)
    return True


def _truncate_to_leader(quorum: QuorumState, call: Call, diverging: EpochEndOffset) -> bool:
    """Truncate our log to where it diverges from the leader's.

    Returns False if that is impossible or would truncate committed records.
    """
    end_offset = _cut_offset(quorum, diverging)
    equal_end = _equal_end(quorum, diverging, end_offset)
    if 0 <= equal_end < quorum.committed_offset:
        reject_truncation(quorum, call, equal_end)
        return False
    reason = _impossible_cut_reason(quorum, diverging, end_offset)
    if reason is not None:
        reject_answer(quorum, call, reason)
        return False
    _truncate(quorum, end_offset)
    return True


def _cut_offset(quorum: QuorumState, diverging: EpochEndOffset) -> int:
    """Return the new end of our log: where both logs end the last epoch that they can have in common."""
    own = quorum.log.end_for_epoch(diverging.epoch)
    return min(own.end_offset, diverging.end_offset) if own.epoch == diverging.epoch else own.end_offset


def _equal_end(quorum: QuorumState, diverging: EpochEndOffset, end_offset: int) -> int:
    """Return up to where both logs can be equal at most, though ours may begin after that. From where the
    leader ends an epoch of ours, or an older one, it has only later ones."""
    is_ours = diverging.epoch <= quorum.log.last_epoch
    return min(end_offset, diverging.end_offset) if is_ours else end_offset


def _impossible_cut_reason(quorum: QuorumState, diverging: EpochEndOffset, end_offset: int) -> str | None:
    """Return why a leader of our epoch can't answer this; None if it can."""
    answer = f"it ends epoch {diverging.epoch} at offset {diverging.end_offset}"
    if diverging.end_offset < 0:
        return f"{answer}, which is not an offset"
    if diverging.epoch > quorum.epoch:
        return f"{answer}, but it leads epoch {quorum.epoch}"
    if end_offset >= quorum.log.end_offset:
        return f"{answer}, which leaves nothing to truncate of our log"
    return None


def _truncate(quorum: QuorumState, end_offset: int) -> None:
    _forget_from(quorum, end_offset)
    quorum.emit(TruncateLog(end_offset))


def handle_log_truncated(quorum: QuorumState, end_offset: int) -> None:
    """Handle the end of the log after a truncation.

    A leader that asks for a truncation within a batch did not write that batch, but logs hold whole batches
    only. Raises InvariantViolated if committed records were truncated.
    """
    if end_offset < quorum.committed_offset:
        committed = quorum.committed_offset
        raise InvariantViolated(
            f"the log was truncated at offset {end_offset}, below the committed offset {committed}"
        )
    if end_offset < quorum.log.end_offset:
        _forget_from(quorum, end_offset)


def _forget_from(quorum: QuorumState, end_offset: int) -> None:
    quorum.log.truncate_to(end_offset)
    quorum.history.truncate_from_end(end_offset)
