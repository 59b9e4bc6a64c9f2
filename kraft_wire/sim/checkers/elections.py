"""Check elections: votes, epochs and leaders."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.roles import Role
from kraft_wire.sim.checkers.checker import Checked, Checker, Recovered, vote_granted
from kraft_wire.sim.scheduler import MS


class SingleLeader(Checker):
    """There is at most one leader in an epoch (ElectionSafety). A restarted node leads no epoch of its former
    life (KAFKA-10527)."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._leaders: dict[int, tuple[int, int]] = {}

    def led(self, node: Checked, epoch: int) -> None:
        leader, life = self._leaders.setdefault(epoch, (node.id, node.life))
        if (leader, life) != (node.id, node.life):
            self.fail(node, f"leads epoch {epoch}, and so does node {leader}")

    def started(self, node: Checked) -> None:
        if node.raft.role is Role.LEADER:
            self.fail(node, f"is leader of epoch {node.raft.epoch} before its first step")


class StepWithinFetchTimeout(Checker):
    """A leader's step is shorter than the fetch timeout. Otherwise the other voters elect a new leader, and
    if that begins the same step, the quorum never gets past it."""

    def timed(self, node: Checked, took_us: int) -> None:
        timeout_ms = node.config.fetch_timeout_ms
        if node.leading is not None and took_us >= timeout_ms * MS:
            self.fail(node, f"a step takes {took_us // MS} ms, others wait {timeout_ms} ms for its leader")


class OneVote(Checker):
    """A voter votes at most once in an epoch, both on its disk and in its responses. The same node id with
    another directory id is another replica, as a voter and as a candidate (KAFKA-16526). Version 0 of
    quorum-state has no directory ids: there only the node ids are compared."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}

    def persisted(self, node: Checked, state: ElectionState) -> None:
        if state.has_voted:
            self._note(node, state.leader_epoch, ReplicaKey(state.voted_id, state.voted_directory_id))
        elif state.leader_id == node.id:
            self._note(node, state.leader_epoch, node.config.replica_key)

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if isinstance(response, VoteResponse):
            asked = vote_granted(node, token, response)
            if asked is not None and not asked.pre_vote:
                candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
                self._note(node, asked.replica_epoch, candidate)

    def _note(self, node: Checked, epoch: int, candidate: ReplicaKey) -> None:
        vote = node.config.replica_key, epoch
        known = self._votes.setdefault(vote, candidate)
        if not known.matches(candidate) and not candidate.matches(known):
            self.fail(node, f"voted for {known} and for {candidate} in epoch {epoch}")
        if candidate.directory_id:
            self._votes[vote] = candidate


class VoteIsDurable(Checker):
    """A vote is on stable storage before it is granted, and a candidate's own vote before it asks for
    others."""

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if isinstance(response, VoteResponse):
            asked = vote_granted(node, token, response)
            if asked is not None and not asked.pre_vote:
                self._look(node, asked.replica_epoch, asked.replica_id)

    def sending(self, node: Checked, request: Message) -> None:
        if isinstance(request, VoteRequest):
            asked = request.topics[0].partitions[0]
            if not asked.pre_vote:
                self._look(node, asked.replica_epoch, node.id)

    def _look(self, node: Checked, epoch: int, candidate: int) -> None:
        state = node.disk.election
        if state is None or (state.leader_epoch, state.voted_id) != (epoch, candidate):
            self.fail(node, f"votes for {candidate} in epoch {epoch}, quorum-state says {state}")


class LeadershipIsDurable(Checker):
    """A node writes to quorum-state that it is the leader before it tells other nodes."""

    def sending(self, node: Checked, request: Message) -> None:
        if isinstance(request, BeginQuorumEpochRequest):
            epoch = request.topics[0].partitions[0].leader_epoch
            state = node.disk.election
            if state is None or (state.leader_epoch, state.leader_id) != (epoch, node.id):
                self.fail(node, f"says that it leads epoch {epoch}, quorum-state says {state}")


class VoteGoesToTheUpToDate(Checker):
    """A node doesn't vote for a log that ends before its own, and doesn't vote at all if it lost part of its
    log. It may repeat a vote, whatever its log contains by then."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._given: set[tuple[int, int]] = set()

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if not isinstance(response, VoteResponse):
            return
        asked = vote_granted(node, token, response)
        if asked is None or (node.id, asked.replica_epoch) in self._given:
            return
        if not asked.pre_vote:
            self._given.add((node.id, asked.replica_epoch))
        own = node.disk.last_epoch, node.disk.end_offset
        if (asked.last_offset_epoch, asked.last_offset) < own:
            seen = f"votes for a log that ends with {asked.last_offset_epoch, asked.last_offset}, has {own}"
            self.fail(node, seen)
        if node.disk.lost_below is not None:
            self.fail(node, f"votes though its log lost records below {node.disk.lost_below}")


class MonotonicEpoch(Checker):
    """A node's epoch never falls, even over restarts, and quorum-state has the same epoch. A node that lost
    quorum-state starts with the epoch of its log."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._epochs: dict[int, int] = {}

    def stepped(self, node: Checked) -> None:
        epoch = node.raft.epoch
        known = self._epochs.get(node.id, 0)
        if epoch == known:
            return
        if epoch < known:
            self.fail(node, f"was in epoch {known}, is in {epoch}")
        state = node.disk.election
        if state is None or state.leader_epoch != epoch:
            self.fail(node, f"is in epoch {epoch}, quorum-state says {state}")
        self._epochs[node.id] = epoch

    def started(self, node: Checked) -> None:
        if node.disk.election is None:
            self._epochs.pop(node.id, None)


class LeaderCompleteness(Checker):
    """A leader has all records that leaders of earlier epochs committed (Durability)."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._last_committed: dict[int, AppendBatch] = {}

    def advanced(self, node: Checked, high_watermark: int) -> None:
        if node.leading is not None:
            batch = node.disk.batch_before(high_watermark)
            if batch is not None:
                self._last_committed[node.leading[0]] = batch

    def led(self, node: Checked, epoch: int) -> None:
        earlier = [batch for of, batch in self._last_committed.items() if of < epoch]
        if not earlier:
            return
        last = max(earlier, key=lambda batch: batch.last_offset)
        if last.last_offset < node.disk.start_offset:
            return
        own = node.disk.batch_before(last.last_offset + 1)
        if own is None or own.data != last.data:
            self.fail(node, f"leads epoch {epoch} without what is committed at offset {last.base_offset}")

    def recovered(self, recovery: Recovered) -> None:
        """All of the kept log is committed now."""
        self._last_committed = {recovery.plan.epoch: recovery.kept.batches[-1]}
