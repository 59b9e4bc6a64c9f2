"""Announce a new leader with BeginQuorumEpoch and a resigned one with EndQuorumEpoch."""

from __future__ import annotations

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.messages import end_quorum_epoch_request
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest, ReplicaInfo
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.raft.door.request_checks import METADATA_PARTITION, only_partition
from kraft_wire.raft.events import Failure
from kraft_wire.raft.leader.announcement import begin_request, is_from_addressee
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader_claims import learn_from_voter
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import ready_voter
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Resigned
from kraft_wire.wire.address import Address

# BeginQuorumEpoch.


def send_begin_quorum_epoch(quorum: QuorumState, leadership: Leadership) -> None:
    """Announce the leader: to all voters at first, later to the voters that don't fetch, are said to be
    ahead, or were asked in vain where they are."""
    now_ms = quorum.now.monotonic_ms
    interval_ms = quorum.config.fetch_timeout_ms // 2
    for voter_id, due_ms in leadership.begin_epoch_due_ms.items():
        if due_ms > now_ms:
            continue
        progress = leadership.voters[voter_id]
        fetches = progress.end_offset is not None and now_ms < progress.last_contact_ms + interval_ms
        must_answer = voter_id in leadership.said_to_be_ahead or leadership.silences.is_silent(voter_id)
        if fetches and not must_answer:
            leadership.begin_epoch_due_ms[voter_id] = progress.last_contact_ms + interval_ms
            continue
        peer = ready_voter(quorum, voter_id, BeginQuorumEpochRequest)
        if peer is not None:
            leadership.begin_epoch_due_ms[voter_id] = now_ms + interval_ms
            leadership.said_to_be_ahead.discard(voter_id)
            quorum.send(peer, begin_request(quorum, progress.key))


def next_begin_epoch_ms(quorum: QuorumState, leadership: Leadership) -> int | None:
    """Return when the next announcement is due; None if none is.

    ``Outgoing`` has the deadlines of voters that can't be asked yet.
    """
    later = [due_ms for due_ms in leadership.begin_epoch_due_ms.values() if due_ms > quorum.now.monotonic_ms]
    return min(later, default=None)


def handle_begin_response(quorum: QuorumState, call: Call, response: BeginQuorumEpochResponse) -> None:
    """Announce again if the voter's answer was an error, unless it made this node resign."""
    if quorum.leadership is not None and is_from_addressee(response):
        quorum.leadership.silences.answered(call.peer.id, Address(call.peer.host, call.peer.port))
    if _asks_itself(quorum, response):
        return
    if learn_from_voter(quorum, call, response) is None:
        _send_begin_again(quorum, call)


def _asks_itself(quorum: QuorumState, response: BeginQuorumEpochResponse) -> bool:
    """Whether the voter took the announcement as a hint: it knows no leader of our epoch until this node has
    answered its Fetch."""
    answer = only_partition(response.topics)
    if response.error_code or answer is None or answer.error_code:
        return False
    return answer.leader_epoch < quorum.epoch or answer.leader_id != quorum.config.node_id


def handle_begin_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Announce again to a voter that couldn't be reached."""
    quorum.back_off(call)
    _send_begin_again(quorum, call)


def _send_begin_again(quorum: QuorumState, call: Call) -> None:
    """Announce again as soon as the voter may be asked again."""
    leadership = quorum.leadership
    if leadership is not None and call.peer.id in leadership.begin_epoch_due_ms:  # it may be removed by now
        leadership.begin_epoch_due_ms[call.peer.id] = quorum.now.monotonic_ms


# EndQuorumEpoch.


def send_end_quorum_epoch(quorum: QuorumState, state: Resigned) -> None:
    """Notify every voter that hasn't acknowledged it that this node has resigned, and name its successors."""
    for voter_id in sorted(state.resignation.unacknowledged):
        peer = ready_voter(quorum, voter_id, EndQuorumEpochRequest)
        if peer is not None:
            quorum.send(peer, _end_request(quorum, state))


def _end_request(quorum: QuorumState, state: Resigned) -> EndQuorumEpochRequest:
    successors = state.resignation.successors
    return EndQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        topics=[
            end_quorum_epoch_request.TopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[
                    end_quorum_epoch_request.PartitionData(
                        partition_index=METADATA_PARTITION,
                        leader_id=quorum.config.node_id,
                        leader_epoch=quorum.epoch,
                        preferred_successors=tuple(key.id for key in successors),
                        preferred_candidates=[
                            ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
                            for key in successors
                        ],
                    )
                ],
            )
        ],
        leader_endpoints=[
            end_quorum_epoch_request.LeaderEndpoint(
                name=endpoint.listener, host=endpoint.host, port=endpoint.port
            )
            for endpoint in quorum.config.endpoints
        ],
    )


def handle_end_response(quorum: QuorumState, call: Call, response: EndQuorumEpochResponse) -> None:
    """Note that a voter knows of the resignation, or that another node leads already."""
    if learn_from_voter(quorum, call, response) is not None and isinstance(quorum.state, Resigned):
        quorum.state.resignation.unacknowledged.discard(call.peer.id)


def handle_end_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Back off from a voter that couldn't be reached; it is asked again later."""
    quorum.back_off(call)
