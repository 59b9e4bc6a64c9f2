"""Ask for votes and pre-votes, and count them (KIP-595, KIP-996)."""

from __future__ import annotations

from typing import cast

import msgspec

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.door.request_checks import METADATA_PARTITION, only_partition
from kraft_wire.raft.election import elections
from kraft_wire.raft.election.turns import yield_ms
from kraft_wire.raft.events import Failure
from kraft_wire.raft.leader_claims import learn_from_voter
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.membership.voters import Peer, ReplicaKey
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import is_bootstrap_server, other_bootstrap_servers, voter_peer
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Candidate, Prospective


def ask_for_votes(quorum: QuorumState, state: Prospective | Candidate) -> None:
    """Ask every voter that hasn't answered and has no Vote in flight."""
    if state.tally.is_lost:
        return
    for voter_id in sorted(state.tally.outstanding):
        peer = state.found.get(voter_id) or voter_peer(quorum, voter_id)
        voter = quorum.history.voters.get(voter_id)
        if voter is not None and peer is not None and _is_ready(quorum, peer):
            own = quorum.config.replica_key
            if isinstance(state, Candidate) and voter_id in state.asked_by_id:
                own = ReplicaKey(own.id)
            request = _vote_request(quorum, own, voter.key, is_pre_vote=isinstance(state, Prospective))
            quorum.send(peer, request)


def search_voters(quorum: QuorumState, state: Prospective) -> None:
    """Search the voters that haven't answered at the bootstrap servers, after a lost election.

    The addresses in the log may be wrong: of most voters, too, and only a leader can correct them. A Vote
    names the voter that it is for; any other node answers INVALID_VOTER_KEY. Only pre-votes search: a node
    that knows them reads that name. Java asks at the addresses of its log only.
    """
    if state.tally.is_lost or not quorum.lost_elections:
        return
    for server in other_bootstrap_servers(quorum):
        untried = [
            voter.key
            for voter in quorum.history.voters.voters
            if voter.key.id in state.tally.outstanding
            and (voter.key.id, server) not in state.tried
            and not _is_known_there(quorum, voter.key.id, server)
        ]
        if untried and _is_ready(quorum, server):
            voter_key = quorum.pick(untried)
            state = msgspec.structs.replace(state, tried=state.tried | {(voter_key.id, server)})
            quorum.state = state  # not a transition
            quorum.send(server, _vote_request(quorum, quorum.config.replica_key, voter_key, is_pre_vote=True))


def _is_known_there(quorum: QuorumState, voter_id: int, server: Peer) -> bool:
    """Whether a voter is asked at this address anyway. A second answer would count instead of the first."""
    known = voter_peer(quorum, voter_id)
    return known is not None and (known.host, known.port) == (server.host, server.port)


def _is_ready(quorum: QuorumState, peer: Peer) -> bool:
    return quorum.outgoing.is_ready(peer, VoteRequest, quorum.now.monotonic_ms)


def _vote_request(
    quorum: QuorumState, own: ReplicaKey, voter: ReplicaKey, *, is_pre_vote: bool
) -> VoteRequest:
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


def handle_vote_response(quorum: QuorumState, call: Call, response: VoteResponse) -> None:
    """Count a vote."""
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        _skip_pre_vote(quorum, call)
        return
    _note_unwanted_directory_id(quorum, call, response)
    answer = learn_from_voter(quorum, call, response)
    state, voter_id = quorum.state, _asked_voter(call)
    if answer is None or not isinstance(state, Prospective | Candidate):
        return
    if voter_id in state.tally.voters:
        if isinstance(state, Prospective) and is_bootstrap_server(call.peer):
            state = msgspec.structs.replace(state, found={**state.found, voter_id: call.peer})
        _count(quorum, state, state.tally.with_answer(voter_id, granted=answer.vote_granted))


def _asked_voter(call: Call) -> int:
    return cast(VoteRequest, call.request).voter_id


def _note_unwanted_directory_id(quorum: QuorumState, call: Call, response: VoteResponse) -> None:
    """Ask a voter by our id alone if it says that it can't use the directory id (KIP-853's draft)."""
    answer, state = only_partition(response.topics), quorum.state
    if answer is None or answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
        return
    if isinstance(state, Candidate):
        asked_by_id = state.asked_by_id | {_asked_voter(call)}
        quorum.state = msgspec.structs.replace(state, asked_by_id=asked_by_id)  # not a transition


def handle_vote_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Count a voter that couldn't be reached."""
    if failure is Failure.UNSUPPORTED:
        _skip_pre_vote(quorum, call)
        return
    quorum.back_off(call)
    state = quorum.state
    voter_id = _asked_voter(call)
    if not isinstance(state, Prospective | Candidate):
        return
    if not is_bootstrap_server(call.peer) or state.found.get(voter_id) == call.peer:
        _count(quorum, state, state.tally.with_unreachable(voter_id))


def _skip_pre_vote(quorum: QuorumState, call: Call) -> None:
    """Do without the pre-vote of a voter that doesn't know them: Kafka before KIP-996, or KIP-853's draft.

    A candidate without pre-votes ends a leader that is at work. So this counts as a granted pre-vote only
    when this node has heard of no leader for a while. A voter whose connection can't be opened isn't counted:
    a node that is cut off raises its epoch once, not again and again.
    """
    state, voter_id = quorum.state, call.peer.id
    quorum.back_off(call)
    if not isinstance(state, Prospective) or voter_id not in state.tally.voters:
        return
    state = msgspec.structs.replace(state, unaware=state.unaware | {voter_id})
    if elections.needs_no_pre_vote(quorum, state):
        tally = state.tally.with_answer(voter_id, granted=True)
    else:
        tally = state.tally.with_unreachable(voter_id)
    _count(quorum, state, tally)


def _count(quorum: QuorumState, state: Prospective | Candidate, tally: Tally) -> None:
    quorum.state = msgspec.structs.replace(state, tally=tally)  # not a transition: only the tally changes
    match state:
        case Prospective() if tally.is_won:
            elections.become_candidate(quorum)
        case Candidate() if tally.is_won:
            elections.become_leader(quorum, tally)
        case Prospective() if tally.is_lost:
            elections.abandon_pre_vote(quorum)
        case Prospective() if state.unaware and tally.is_out_of_reach:
            elections.wait_for_leader(quorum)
        case Candidate() if tally.is_rejected:
            elections.retry_election_soon(quorum, yield_ms(quorum))
        case Candidate() if tally.is_lost:
            elections.retry_election_soon(quorum)
        case Candidate() if tally.rejected:
            elections.retry_election_soon(quorum, elections.CONTESTED_ELECTION_WAIT_MS)
