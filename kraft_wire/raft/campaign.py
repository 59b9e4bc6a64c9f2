"""Asking for votes and pre-votes, and counting them (KIP-595, KIP-996)."""

from __future__ import annotations

import msgspec

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft import elections
from kraft_wire.raft.checks import METADATA_PARTITION
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import ready_voter, take_in_voter
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Candidate, Prospective
from kraft_wire.raft.voters import ReplicaKey


def ask_for_votes(quorum: Quorum, state: Prospective | Candidate) -> None:
    """Ask every voter that hasn't answered and isn't being asked."""
    if state.tally.is_lost:
        return
    for voter_id in sorted(state.tally.outstanding):
        peer = ready_voter(quorum, voter_id, VoteRequest)
        voter = quorum.history.voters.get(voter_id)
        if peer is not None and voter is not None:
            quorum.send(peer, _vote_request(quorum, voter.key, is_pre_vote=isinstance(state, Prospective)))


def _vote_request(quorum: Quorum, voter: ReplicaKey, *, is_pre_vote: bool) -> VoteRequest:
    own = quorum.config.replica_key
    return VoteRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter.id,
        topics=[
            TopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[
                    PartitionData(
                        partition_index=METADATA_PARTITION,
                        replica_epoch=quorum.epoch,
                        replica_id=own.id,
                        replica_directory_id=own.directory_id,
                        voter_directory_id=voter.directory_id,
                        last_offset_epoch=quorum.log.last_epoch,
                        last_offset=quorum.log.end_offset,
                        pre_vote=is_pre_vote,
                    )
                ],
            )
        ],
    )


def handle_vote_response(quorum: Quorum, call: Call, response: VoteResponse) -> None:
    """Count a vote."""
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        handle_unsupported(quorum, call)
        return
    answer = take_in_voter(quorum, call, response)
    state = quorum.state
    if answer is None or not isinstance(state, Prospective | Candidate):
        return
    if call.peer.id in state.tally.voters:
        _count(quorum, state, state.tally.with_answer(call.peer.id, granted=answer.vote_granted))


def handle_unsupported(quorum: Quorum, call: Call) -> None:
    """A voter from before KIP-996 knows no pre-votes: do without."""
    if isinstance(quorum.state, Prospective):
        elections.campaign(quorum)
    else:
        quorum.leave_alone(call)


def handle_vote_failed(quorum: Quorum, call: Call) -> None:
    """A voter can't be reached."""
    quorum.leave_alone(call)
    state = quorum.state
    if isinstance(state, Prospective | Candidate):
        _count(quorum, state, state.tally.without(call.peer.id))


def _count(quorum: Quorum, state: Prospective | Candidate, tally: Tally) -> None:
    quorum.state = msgspec.structs.replace(state, tally=tally)  # not a transition: one answer more
    match state:
        case Prospective() if tally.is_won:
            elections.campaign(quorum)
        case Candidate() if tally.is_won:
            elections.lead(quorum, tally)
        case Prospective() if tally.is_lost:
            elections.give_up(quorum)
        case Candidate() if tally.is_lost:
            elections.try_again_soon(quorum)
        case Candidate() if tally.rejected:
            elections.try_again_soon(quorum, elections.CONTESTED_WAIT_MS)
