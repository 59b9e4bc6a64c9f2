"""Ask a voter whether it is where the leader knows it, before an UpdateRaftVoter in its name counts.

The question is BeginQuorumEpoch, which names the node id and the directory id: anybody else answers
INVALID_VOTER_KEY, or nobody answers.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

import msgspec

from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey, Voter


class VoterQuestion(msgspec.Struct):
    """An UpdateRaftVoter that waits for the voter's answer. ``rpc`` is None once the one who sent it is
    gone."""

    voter: Voter
    rpc: RpcRequest | None


class VoterQuestions:
    """The questions that are open, one for each voter at most."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, VoterQuestion] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, voter_id: object) -> bool:
        return voter_id in self._open

    def begin(self, question: VoterQuestion) -> None:
        """Note a question to a voter that is asked nothing yet."""
        self._open[question.voter.key.id] = question

    def key_of(self, voter_id: int) -> ReplicaKey | None:
        """Return the key that a voter is asked for; None if it is asked nothing."""
        question = self._open.get(voter_id)
        return None if question is None else question.voter.key

    def end(self, key: ReplicaKey) -> VoterQuestion | None:
        """Remove and return the question to this voter; None if it wasn't asked for this key."""
        question = self._open.get(key.id)
        return self._open.pop(key.id) if question is not None and question.voter.key == key else None

    def end_others(self, voter_ids: Collection[int]) -> list[VoterQuestion]:
        """Remove and return the questions to nodes that aren't among these voters."""
        gone = [voter_id for voter_id in self._open if voter_id not in voter_ids]
        return [self._open.pop(voter_id) for voter_id in gone]

    def end_all(self) -> list[VoterQuestion]:
        """Remove and return all questions."""
        questions, self._open = list(self._open.values()), {}
        return questions

    def abandon(self, token: Hashable) -> None:
        """Note that the one who has sent an UpdateRaftVoter is gone. The voter's answer still counts."""
        for question in self._open.values():
            if question.rpc is not None and question.rpc.token == token:
                question.rpc = None
