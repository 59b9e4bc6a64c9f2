"""A leader makes itself known (BeginQuorumEpoch), and says when it stops (EndQuorumEpoch)."""

from __future__ import annotations

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.messages import begin_quorum_epoch_request, end_quorum_epoch_request
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest, ReplicaInfo
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.raft.checks import METADATA_PARTITION
from kraft_wire.raft.leadership import Leadership
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import ready_voter, take_in_voter
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Resigned
from kraft_wire.raft.voters import ReplicaKey

# Beginning.


def introduce(quorum: Quorum, leadership: Leadership) -> None:
    """Tell voters who leads: all of them at first, then those that don't fetch."""
    now_ms = quorum.now.monotonic_ms
    interval_ms = quorum.config.fetch_timeout_ms // 2
    for voter_id, due_ms in leadership.introduction_due_ms.items():
        if due_ms > now_ms:
            continue
        progress = leadership.voters[voter_id]
        if progress.end_offset is not None and now_ms < progress.last_contact_ms + interval_ms:
            leadership.introduction_due_ms[voter_id] = progress.last_contact_ms + interval_ms
            continue
        peer = ready_voter(quorum, voter_id, BeginQuorumEpochRequest)
        if peer is not None:
            leadership.introduction_due_ms[voter_id] = now_ms + interval_ms
            quorum.send(peer, _begin_request(quorum, progress.key))


def next_introduction_ms(quorum: Quorum, leadership: Leadership) -> int | None:
    """When somebody is to be told next. Whoever can't be asked yet is waited for in ``Outgoing``."""
    later = [due_ms for due_ms in leadership.introduction_due_ms.values() if due_ms > quorum.now.monotonic_ms]
    return min(later, default=None)


def _begin_request(quorum: Quorum, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter.id,
        topics=[
            begin_quorum_epoch_request.TopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[
                    begin_quorum_epoch_request.PartitionData(
                        partition_index=METADATA_PARTITION,
                        voter_directory_id=voter.directory_id,
                        leader_id=quorum.config.node_id,
                        leader_epoch=quorum.epoch,
                    )
                ],
            )
        ],
        leader_endpoints=[
            begin_quorum_epoch_request.LeaderEndpoint(
                name=endpoint.listener, host=endpoint.host, port=endpoint.port
            )
            for endpoint in quorum.config.endpoints
        ],
    )


def handle_begin_response(quorum: Quorum, call: Call, response: BeginQuorumEpochResponse) -> None:
    """The voter knows, or knows better."""
    if take_in_voter(quorum, call, response) is None:
        _introduce_again(quorum, call)


def handle_begin_failed(quorum: Quorum, call: Call) -> None:
    """Nobody was told."""
    quorum.leave_alone(call)
    _introduce_again(quorum, call)


def _introduce_again(quorum: Quorum, call: Call) -> None:
    """As soon as the voter may be asked again."""
    if quorum.leadership is not None:
        quorum.leadership.introduction_due_ms[call.peer.id] = quorum.now.monotonic_ms


# Ending.


def say_goodbye(quorum: Quorum, state: Resigned) -> None:
    """Tell every voter that hasn't heard yet that nobody leads any more, and who should."""
    for voter_id in sorted(state.resignation.unacknowledged):
        peer = ready_voter(quorum, voter_id, EndQuorumEpochRequest)
        if peer is not None:
            quorum.send(peer, _end_request(quorum, state))


def _end_request(quorum: Quorum, state: Resigned) -> EndQuorumEpochRequest:
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


def handle_end_response(quorum: Quorum, call: Call, response: EndQuorumEpochResponse) -> None:
    """A voter knows that we have resigned, or that somebody leads already."""
    if take_in_voter(quorum, call, response) is not None and isinstance(quorum.state, Resigned):
        quorum.state.resignation.unacknowledged.discard(call.peer.id)
