"""The exceptions of the raft package."""

from __future__ import annotations


class RaftError(Exception):
    """The base class of this package's exceptions."""


class CannotStart(RaftError):
    """This node must not take part in the quorum with this configuration and storage. The text says what to
    do."""


class NotLeader(RaftError):
    """This node does not lead, or no longer, so it cannot append. Nothing was appended."""

    def __init__(self, epoch: int, leader_id: int | None) -> None:
        super().__init__(epoch, leader_id)
        self.epoch = epoch
        self.leader_id = leader_id

    def __str__(self) -> str:
        leader = "the leader is unknown" if self.leader_id is None else f"node {self.leader_id} does"
        return f"this node does not lead epoch {self.epoch}; {leader}"


class InvariantViolated(RaftError):
    """An event that the protocol rules out. The node must stop before it answers any request."""


class IllegalTransition(InvariantViolated):
    """A change of role that the protocol doesn't allow."""
