"""Keep the UpdateRaftVoters that wait until their voter has answered at several addresses.

The leader asks which entry the voter wants (``membership/voter_entry``). If that API isn't served there, it
asks with BeginQuorumEpoch, which names the node id and the directory id: another node of this epoch answers
INVALID_VOTER_KEY. Nothing else is learned from the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Final, NamedTuple

import msgspec

from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import Peer, Voter
from kraft_wire.raft.outgoing import FIRST_QUESTIONED_ID
from kraft_wire.wire.address import Address

MOST_QUESTIONS: Final = 2
"""Of one voter at once. Requests for the same entry share one."""
MOST_WAITING: Final = 8
"""The requests that share a question."""


class VoterAnswer(NamedTuple):
    """Whether the voter is at an address where it was asked, and which entry it wants itself; None if it
    hasn't said that."""

    is_there: bool
    entry: Voter | None = None


class VoterQuestion(msgspec.Struct):
    """A voter's new entry, when the voter was asked (monotonic), the requests that wait for it, and what came
    from each of the addresses where the voter is asked; None before the answer."""

    voter: Voter
    asked_ms: int
    rpcs: list[RpcRequest]
    answers: dict[Peer, VoterAnswer | None]

    @property
    def is_answered(self) -> bool:
        return None not in self.answers.values()

    def is_for(self, address: Address) -> bool:
        """Whether the voter is asked at an address."""
        return any((peer.host, peer.port) == address for peer in self.answers)

    def answer_at(self, address: Address) -> VoterAnswer:
        """Return what came from an address where the voter was asked."""
        found = (each for peer, each in self.answers.items() if (peer.host, peer.port) == address)
        return next(found, None) or VoterAnswer(is_there=False)


class VoterQuestions:
    """The questions that are open."""

    __slots__ = ("_last_id", "_open")

    def __init__(self) -> None:
        self._open: list[VoterQuestion] = []
        self._last_id = FIRST_QUESTIONED_ID

    def __len__(self) -> int:
        return len(self._open)

    def find(self, voter: Voter) -> VoterQuestion | None:
        """Return the question because of this entry; None if there is none."""
        return next((question for question in self._open if question.voter == voter), None)

    def has_room(self, voter_id: int) -> bool:
        """Whether one more question can be asked because of a voter."""
        return sum(question.voter.key.id == voter_id for question in self._open) < MOST_QUESTIONS

    def begin(
        self, voter: Voter, rpc: RpcRequest, addresses: Iterable[Address], now_ms: int
    ) -> VoterQuestion:
        """Return a new question. The voter is to be asked at each of its peers, under ids of their own."""
        question = VoterQuestion(voter, now_ms, [rpc], {})
        for host, port in addresses:
            self._last_id -= 1
            question.answers[Peer(self._last_id, host, port)] = None
        self._open.append(question)
        return question

    def answered(self, peer: Peer, answer: VoterAnswer) -> VoterQuestion | None:
        """Note an answer, or that none came. Returns the question if it was the last one."""
        for question in self._open:
            if peer in question.answers:
                question.answers[peer] = answer
                if question.is_answered:
                    self._open.remove(question)
                    return question
        return None

    def release(self, asked_by_ms: int) -> list[RpcRequest]:
        """Return the requests that wait for voters who were asked by then. They don't wait any more; the
        questions stay open."""
        released = []
        for question in self._open:
            if question.asked_ms <= asked_by_ms:
                released += question.rpcs
                question.rpcs = []
        return released

    @property
    def oldest_ms(self) -> int | None:
        """When the first voter was asked for which a request waits (monotonic); None if none waits."""
        return min((question.asked_ms for question in self._open if question.rpcs), default=None)

    def end_others(self, voter_ids: Collection[int]) -> list[VoterQuestion]:
        """Remove and return the questions that aren't because of one of these voters."""
        ended = [question for question in self._open if question.voter.key.id not in voter_ids]
        self._open = [question for question in self._open if question.voter.key.id in voter_ids]
        return ended

    def abandon(self, token: Hashable) -> None:
        """Drop a request whose connection is gone. Its question stays open."""
        for question in self._open:
            question.rpcs = [rpc for rpc in question.rpcs if rpc.token != token]
