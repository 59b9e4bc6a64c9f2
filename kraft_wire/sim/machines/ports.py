"""Execute effects on a simulated machine: its disk, its clock, the network."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import BecameLeader, LeaderLacksCommitted, LostLeadership, Notice, ReadyToStop
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.log_port import SimLog
from kraft_wire.sim.machines.snapshot_port import SimSnapshots

if TYPE_CHECKING:
    from kraft_wire.sim.machines.node import SimNode


class SimPorts:
    """The ports of a machine on which a core runs (``Ports``)."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self.log = SimLog(node)
        self.snapshots = SimSnapshots(node)
        self.election = self
        self.peers = self

    def reset(self) -> None:
        """Forget what the former process had in flight."""
        self.log.reset()
        self.snapshots.reset()

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Iterable[int]
    ) -> None:
        node = self._node
        if not kraft_version:
            state = msgspec.structs.replace(state, voted_directory_id=Uuid.ZERO)  # as the file's version 0
        node.disk.write_election_state(state)
        for check in node.world.checkers.persisted:
            check(node, state)

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        node = self._node
        for check in node.world.checkers.sending:
            check(node, request)
        node.world.network.send(node, request_id, peer, request)

    def cancel(self, request_id: int) -> None:
        self._node.world.network.cancel(self._node, request_id)

    def reply(self, token: Hashable, response: Message) -> None:
        self._node.answer(token, response)

    def reply_alike(self, tokens: Sequence[Hashable], response: Message) -> None:
        for token in tokens:
            self._node.answer(token, response)

    def notice(self, notice: Notice) -> None:
        match notice:
            case BecameLeader(epoch, epoch_start_offset):
                self._node.become_leader(epoch, epoch_start_offset)
            case LostLeadership():
                self._node.lose_leadership()
            case ReadyToStop():
                self._node.after(0, self._node.kill)
            case LeaderLacksCommitted() if not self._node.disk.is_estranged:
                raise Violation("LeaderCompleteness", self._lost_records(notice))
            case _:
                pass  # for operators to read

    def _lost_records(self, notice: LeaderLacksCommitted) -> str:
        return (
            f"node {self._node.id} keeps its log, of which all below offset {notice.committed_offset} is"
            f" committed: node {notice.leader_id}, which leads epoch {notice.epoch}, has it end at"
            f" {notice.end_offset}"
        )
