"""Read the voter set from the log at startup, and write it as a new leader (KIP-853)."""

from __future__ import annotations

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.raft.config import DurableState, RaftConfig
from kraft_wire.raft.errors import CannotStart
from kraft_wire.raft.membership.voter_history import VoterSetHistory
from kraft_wire.raft.quorum_state import QuorumState

BOOTSTRAP_OFFSET = -1
"""The offset of the voter set in the 0-0 checkpoint."""


def load_history(config: RaftConfig, durable: DurableState) -> VoterSetHistory:
    """Return the history of the voter set.

    Raises CannotStart if there are no voters and no way to find them, or if this node can never join them.
    """
    history = VoterSetHistory(config.static_voters)
    for offset, message in durable.control_records:
        history.apply(offset, message)
    _check_membership(config, history)
    return history


def _check_membership(config: RaftConfig, history: VoterSetHistory) -> None:
    voters = history.voters
    if not voters.voters and not config.bootstrap_servers:
        raise CannotStart(
            "there are no voters: format the folder with --standalone or --initial-controllers, or set"
            " controller.quorum.voters or controller.quorum.bootstrap.servers"
        )
    if history.kraft_version >= 1 and history.voters_offset is None and voters.voters:
        raise CannotStart(
            f"with kraft.version {history.kraft_version} controller.quorum.voters has no effect, and neither"
            " the log nor a snapshot names the voters: set controller.quorum.bootstrap.servers instead, to"
            " observe the existing quorum"
        )
    if _can_never_lead(config, history):
        raise CannotStart(
            f"node {config.replica_key} is not one of the voters ({voters}): check node.id, and whether this"
            " folder was formatted for this quorum"
        )


def _can_never_lead(config: RaftConfig, history: VoterSetHistory) -> bool:
    """Whether this node can never lead its quorum: the only voter has its id and another directory id, and
    there is no other node to ask.

    Its log may be the beginning of the quorum's, from before other voters joined. Any other node may join the
    quorum later (KIP-853).
    """
    voters = history.voters
    is_other_directory = voters.ids == (config.node_id,) and not voters.is_voter(config.replica_key)
    own = {(endpoint.host, endpoint.port) for endpoint in config.endpoints}
    return is_other_directory and own.issuperset(config.bootstrap_servers)


def start_of_epoch_records(quorum: QuorumState, granting_voters: frozenset[int]) -> list[Message]:
    """Return the first records of a new leader: the leader change, and the voters if the log doesn't have
    them yet.

    The 0-0 checkpoint is never replicated, so the first leader copies its voters into the log. So does a
    leader whose own endpoints have changed.
    """
    voters = quorum.history.voters
    records: list[Message] = [
        LeaderChangeMessage(
            leader_id=quorum.config.node_id,
            voters=[Voter(voter_id=voter_id) for voter_id in voters.ids],
            granting_voters=[Voter(voter_id=voter_id) for voter_id in sorted(granting_voters)],
        )
    ]
    if quorum.history.kraft_version >= 1:
        own = quorum.config.voter
        if quorum.history.voters_offset == BOOTSTRAP_OFFSET or voters.needs_update(own):
            records.append(KRaftVersionRecord(kraft_version=quorum.history.kraft_version))
            records.append(voters.with_updated(own).to_record())
    return records
