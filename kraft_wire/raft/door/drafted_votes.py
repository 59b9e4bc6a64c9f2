"""Check Votes by the rules of KIP-853's draft (Vote, Handling) that the released protocol doesn't have."""

from __future__ import annotations

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.quorum_state import QuorumState


def is_drafted(quorum: QuorumState, rpc: RpcRequest) -> bool:
    """Whether the request came on a listener that speaks the draft."""
    return rpc.listener in quorum.config.drafted_listeners


def not_for_us_error(quorum: QuorumState, rpc: RpcRequest) -> ErrorCode:
    """Return the error for a request whose voter id or directory id isn't ours."""
    return ErrorCode.INVALID_REQUEST if is_drafted(quorum, rpc) else ErrorCode.INVALID_VOTER_KEY


def candidate_uuid_error(quorum: QuorumState, rpc: RpcRequest, candidate_uuid: Uuid) -> ErrorCode:
    """Return the error for a candidate that gives its uuid to a voter whose kraft.version is 0. It may ask
    again without the uuid."""
    if is_drafted(quorum, rpc) and candidate_uuid != Uuid.ZERO and quorum.history.kraft_version == 0:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE
