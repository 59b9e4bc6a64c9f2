"""This node's own entry among the voters, and the request that corrects it."""

from __future__ import annotations

from kraft_wire.protocol.messages import update_raft_voter_request
from kraft_wire.protocol.messages.update_raft_voter_request import KRaftVersionFeature, UpdateRaftVoterRequest
from kraft_wire.raft.quorum_state import QuorumState


def is_stale(quorum: QuorumState) -> bool:
    """Whether the log has an entry of this voter that is out of date. With kraft.version 0 it has none."""
    return quorum.history.kraft_version >= 1 and quorum.history.voters.needs_update(quorum.config.voter)


def update_request(quorum: QuorumState, leader_epoch: int) -> UpdateRaftVoterRequest:
    """Return the request to the leader of this epoch."""
    config, versions = quorum.config, quorum.config.voter.kraft_versions
    return UpdateRaftVoterRequest(
        cluster_id=config.cluster_id,
        current_leader_epoch=leader_epoch,
        voter_id=config.node_id,
        voter_directory_id=config.directory_id,
        listeners=[
            update_raft_voter_request.Listener(name=each.listener, host=each.host, port=each.port)
            for each in config.endpoints
        ],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=versions.min_version, max_supported_version=versions.max_version
        ),
    )
