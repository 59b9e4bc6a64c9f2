"""An AddRaftVoter or RemoveRaftVoter that this leader has begun (Kafka's AddVoterHandlerState and
RemoveVoterHandlerState)."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kraft_wire.protocol.errors import ErrorCode, cut_message
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.raft.membership.voters import Endpoints, Peer, ReplicaKey

ChangeResponse = type[AddRaftVoterResponse] | type[RemoveRaftVoterResponse]


class Newcomer(msgspec.Struct, frozen=True):
    """A node that is to become a voter. Its leader asks it at ``peer`` which levels of kraft.version it
    supports."""

    key: ReplicaKey
    endpoints: Endpoints
    peer: Peer
    is_answered_when_committed: bool


class PendingChange(msgspec.Struct):
    """A change of the voters that a client has asked for, up to its commit.

    ``token`` is the client's request, None once it is answered or the client is gone. ``newcomer`` is None
    for a removal. ``end_offset`` is the end of the record with the changed voters, None before it is
    appended.
    """

    token: Hashable | None
    response: ChangeResponse
    epoch: int
    deadline_ms: int
    newcomer: Newcomer | None = None
    end_offset: int | None = None

    def is_committed(self, high_watermark: int | None) -> bool:
        """Whether the changed voters are committed."""
        return (
            self.end_offset is not None and high_watermark is not None and high_watermark >= self.end_offset
        )

    def is_awaiting_versions_of(self, peer: Peer) -> bool:
        """Whether this node's answer to ApiVersions is due."""
        return self.end_offset is None and self.newcomer is not None and self.newcomer.peer == peer


def change_response(
    response: ChangeResponse, error: ErrorCode, text: str | None = None
) -> AddRaftVoterResponse | RemoveRaftVoterResponse:
    """Return the answer to the client. The text may quote names and addresses of its request: it is cut."""
    return response(error_code=error, error_message=None if text is None else cut_message(text))
