"""Answer RemoveRaftVoter (81), version 0 (KIP-853; Kafka's RemoveVoterHandler).

A leader may be asked to remove itself. Then it leads until that is committed, without counting itself.
"""

from __future__ import annotations

from typing import cast

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader import voter_changes
from kraft_wire.raft.leader.pending_change import change_response
from kraft_wire.raft.membership.change import ChangeRefused
from kraft_wire.raft.membership.voters import VoterSet
from kraft_wire.raft.quorum_state import QuorumState


def handle_remove_voter(quorum: QuorumState, rpc: RpcRequest) -> None:
    """Append the voters without one. The client is answered when they are committed."""
    request = cast(RemoveRaftVoterRequest, rpc.request)
    try:
        voters = _check(quorum, request)
    except ChangeRefused as refused:
        quorum.emit(Reply(rpc.token, change_response(RemoveRaftVoterResponse, refused.error, refused.text)))
        return
    change = voter_changes.begin(quorum, rpc.token, RemoveRaftVoterResponse)
    voter_changes.append_voters(quorum, change, voters)


def _check(quorum: QuorumState, request: RemoveRaftVoterRequest) -> VoterSet:
    """Return the voters that are left. Raises ChangeRefused, after checks in Java's order."""
    key = voter_changes.check_asked(quorum, request.cluster_id, request.voter_id, request.voter_directory_id)
    voters = voter_changes.changeable_voters(quorum)
    try:
        return voters.without(key)
    except KeyError:
        raise ChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"{key} is not one of the voters ({voters})") from None
    except ValueError:
        raise ChangeRefused(
            ErrorCode.VOTER_NOT_FOUND, f"{key} is the last voter: a quorum needs at least one"
        ) from None
