"""Say what this node answers those with who fetch its log: in which epoch, from whom, and up to where.

A leader serves its whole log to replicas, and to readers, which have no replica id. A node that only observes
serves readers, too, as a leader of theirs: up to what it knows to be committed, in the epoch of the last
committed record. To that epoch and offset its log never changes, so readers need no leader, and a failover
doesn't disturb them. All other nodes, and all replicas, are sent to the leader.
"""

from __future__ import annotations

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.membership.voters import endpoint_at
from kraft_wire.raft.named_leader import NamedLeader, named_leader
from kraft_wire.raft.quorum_state import QuorumState


class Serving(msgspec.Struct, frozen=True, gc=False):
    """The log as one client may have it. ``is_served`` is false if it has to ask another node.

    ``high_watermark`` is None until it is known. Offsets below ``end_offset`` are served.
    """

    epoch: int
    is_served: bool
    high_watermark: int | None
    end_offset: int

    def error(self, epoch: int) -> ErrorCode:
        """Return the error for a request of this epoch; NONE if it is served."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.is_served else ErrorCode.NOT_LEADER_OR_FOLLOWER


def serving(quorum: QuorumState, replica_id: int) -> Serving:
    """Return what a client is served; a reader's replica id is negative."""
    if _reads_here(quorum, replica_id):
        end_offset = quorum.committed_offset
        return Serving(
            committed_epoch(quorum), is_served=True, high_watermark=end_offset, end_offset=end_offset
        )
    leadership = quorum.leadership
    return Serving(
        quorum.epoch,
        is_served=leadership is not None,
        high_watermark=None if leadership is None else leadership.high_watermark,
        end_offset=quorum.log.end_offset,
    )


def leader_for(quorum: QuorumState, replica_id: int, listener: str, *, has_endpoints: bool) -> NamedLeader:
    """Return the node that a client is to fetch from: the leader, or this node for readers of an observer."""
    if not _reads_here(quorum, replica_id):
        return named_leader(quorum, listener, has_endpoints=has_endpoints)
    own = endpoint_at(quorum.config.endpoints, listener) if has_endpoints else None
    return NamedLeader(quorum.config.node_id, own)


def committed_epoch(quorum: QuorumState) -> int:
    """Return the epoch of the last record that is known to be committed; 0 if there is none."""
    offset = quorum.committed_offset
    return quorum.log.epoch_at(offset - 1) if offset else 0


def _reads_here(quorum: QuorumState, replica_id: int) -> bool:
    return quorum.config.is_observer_only and replica_id < 0
