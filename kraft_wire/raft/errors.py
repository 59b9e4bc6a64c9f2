"""What raft refuses to do, and what it cannot go on after."""

from __future__ import annotations


class RaftError(Exception):
    """The base of this package's exceptions."""


class CannotStart(RaftError):
    """This node must not take part in the quorum as it is configured and stored; says what to do about it."""


class NotLeader(RaftError):
    """Only the leader appends, and this node isn't (any longer). Nothing was appended."""

    def __init__(self, epoch: int, leader_id: int | None) -> None:
        super().__init__(epoch, leader_id)
        self.epoch = epoch
        self.leader_id = leader_id

    def __str__(self) -> str:
        leader = "nobody is known to" if self.leader_id is None else f"node {self.leader_id} does"
        return f"this node does not lead epoch {self.epoch}; {leader}"


class InvariantViolated(RaftError):
    """Something happened that the protocol rules out. The node must stop before it answers anybody."""


class IllegalTransition(InvariantViolated):
    """A change of role that the protocol does not know."""
