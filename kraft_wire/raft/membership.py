"""Who belongs to the quorum: what a node must be to start, and what a leader writes of the voters
(KIP-853)."""

from __future__ import annotations

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.raft.config import DurableState, RaftConfig
from kraft_wire.raft.errors import CannotStart
from kraft_wire.raft.history import VoterSetHistory
from kraft_wire.raft.quorum import Quorum

BOOTSTRAP_OFFSET = -1
"""Where the voter set of the 0-0 checkpoint stands."""


def load_history(config: RaftConfig, durable: DurableState) -> VoterSetHistory:
    """The voter sets of the log. Raises CannotStart where nobody is known to vote, nor could be found."""
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
            f"with kraft.version {history.kraft_version} controller.quorum.voters doesn't count, and neither"
            " the log nor a snapshot names the voters: set controller.quorum.bootstrap.servers instead, to"
            " observe the quorum that is there"
        )
    if _can_never_lead(config, history):
        raise CannotStart(
            f"node {config.replica_key} is not one of the voters ({voters}): check node.id, and whether this"
            " folder is the one that was formatted for this quorum"
        )


def _can_never_lead(config: RaftConfig, history: VoterSetHistory) -> bool:
    """Whether this node is shut out of its quorum for good. One that isn't may join it later (KIP-853)."""
    voters = history.voters
    return voters.ids == (config.node_id,) and not voters.is_voter(config.replica_key)


def start_of_epoch_records(quorum: Quorum, granting_voters: frozenset[int]) -> list[Message]:
    """What a new leader writes first: who leads, and the voters where the log doesn't have them yet.

    The 0-0 checkpoint is never replicated, so the first leader copies its voters into the log; so does a
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
