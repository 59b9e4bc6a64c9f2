"""A leader that the test plays: it answers what the node that follows it asks, when the test wants it to."""

from __future__ import annotations

from typing import TypeVar

from kraft_wire.log.control import encode_control_batch
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.membership.voters import VoterSet
from tests.raft.core_quorum import QuorumNode
from tests.raft.election.claimed_leaders import fetch_answer, fetches, follow

EPOCH = 4
ANSWERED_EVERY_MS = 500
M = TypeVar("M", bound=Message)


class PlayedLeader:
    """The leader of epoch 4. ``node`` starts, follows it and hears nobody else."""

    def __init__(self, node: QuorumNode, leader_id: int = 2) -> None:
        self.node = node
        self.id = leader_id
        self.epoch = EPOCH
        node.quorum.isolate(node.id)
        node.start()
        follow(node, leader_id, self.epoch)

    def elected_again(self) -> None:
        """Begin the next epoch."""
        self.epoch += 1
        follow(self.node, self.id, self.epoch)

    # Fetches.

    def answer_fetch(self, records: bytes = b"") -> None:
        """Answer the Fetch that is open."""
        asked = fetches(self.node.effects)[-1]
        assert asked.peer.id == self.id
        answer = fetch_answer(self.id, self.epoch, high_watermark=self.node.high_watermark)
        answer.responses[0].partitions[0].records = records
        self.node.step(ResponseReceived(asked.request_id, answer))

    def change_voters(self, voters: VoterSet) -> None:
        """Answer the Fetch that is open with the first batch of this epoch, and other voters in it."""
        records = [LeaderChangeMessage(leader_id=self.id), voters.to_record()]
        self.answer_fetch(encode_control_batch(self.node.end_offset, self.epoch, 0, records))
        self.node.quorum.run_for(10)

    def lead_for(self, ms: int) -> None:
        """Let time pass, and answer the Fetches of that time without records."""
        while ms > 0:
            self.node.quorum.run_for(min(ms, ANSWERED_EVERY_MS))
            self.answer_fetch()
            ms -= ANSWERED_EVERY_MS

    def lead_for_a_fetch_timeout(self) -> None:
        """Let the time pass after which a follower asks for a change of its entry."""
        self.lead_for(self.node.config.fetch_timeout_ms)

    # Other requests.

    def asked(self, kind: type[M]) -> list[M]:
        """Return the requests of this kind that the node has sent. All went to this leader."""
        sent = self._sent(kind)
        assert {each.peer.id for each in sent} <= {self.id}
        return [each.request for each in sent if isinstance(each.request, kind)]

    def answer(self, kind: type[Message], response: Message) -> None:
        """Answer the newest request of this kind."""
        self.node.step(ResponseReceived(self._sent(kind)[-1].request_id, response))

    def _sent(self, kind: type[Message]) -> list[SendRequest]:
        sent = [effect for effect in self.node.effects if isinstance(effect, SendRequest)]
        return [each for each in sent if isinstance(each.request, kind)]
