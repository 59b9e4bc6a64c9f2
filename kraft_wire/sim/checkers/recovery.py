"""Check recoveries of a lost majority, by what docs/recovery.md promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kraft_wire.log.recovery import EPOCHS_WITHOUT_TRACE
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.recovery.plan import Plan
from kraft_wire.sim.checkers.checker import Checked, Checker, Recovered, holds, vote_granted
from kraft_wire.sim.machines.disk import Disk


class _Acknowledgements(Checker):
    """Follows the batches whose commitment was acknowledged, for the checkers below."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._acknowledged: dict[int, AppendBatch] = {}

    def acknowledged(self, node: Checked, batch: AppendBatch) -> None:
        self._acknowledged[batch.base_offset] = batch

    def recovered(self, recovery: Recovered) -> None:
        lost = [batch for batch in self._acknowledged.values() if not holds(recovery.kept, batch)]
        for batch in lost:
            self.lost(recovery, batch)
            del self._acknowledged[batch.base_offset]

    def lost(self, recovery: Recovered, batch: AppendBatch) -> None:
        """Check an acknowledged batch that the kept log lacks."""


class RecoveryKeepsTheNewestLog(_Acknowledgements):
    """A record that was acknowledged, and that any survivor has, is in the log that goes on, unless the
    operator chose another log. When a survivor has all of them, nothing is lost."""

    def lost(self, recovery: Recovered, batch: AppendBatch) -> None:
        if recovery.is_best and any(holds(disk, batch) for disk in recovery.left):
            leader = recovery.plan.leader_id
            self.fail(self.nodes[leader], f"goes on without offset {batch.base_offset}, which a survivor has")


class RecoveryLosesWhatItSays(_Acknowledgements):
    """An acknowledged record is lost only if the plan says that it may be: from the kept log's end on, or, in
    a later epoch, from where the kept log isn't known to be committed."""

    def lost(self, recovery: Recovered, batch: AppendBatch) -> None:
        plan, loss = recovery.plan, recovery.plan.loss
        is_replaced = batch.last_offset >= loss.replaced_from and batch.epoch > plan.last_epoch
        if batch.last_offset < loss.unknown_from and not is_replaced:
            seen = f"lacks offset {batch.base_offset} of epoch {batch.epoch}, the plan says {loss}"
            self.fail(self.nodes[plan.leader_id], seen)


class RecoveryEpochIsNew(Checker):
    """A plan's epoch is above all that a survivor knows, with room for those that only lost voters led."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._led: set[int] = set()

    def led(self, node: Checked, epoch: int) -> None:
        self._led.add(epoch)

    def recovered(self, recovery: Recovered) -> None:
        room = range(recovery.plan.epoch, recovery.known_epoch + EPOCHS_WITHOUT_TRACE)
        used = sorted(epoch for epoch in self._led if epoch in room or epoch == recovery.plan.epoch)
        if recovery.plan.epoch <= recovery.known_epoch or used:
            seen = f"gets epoch {recovery.plan.epoch}; known is {recovery.known_epoch}, led were {used}"
            self.fail(self.nodes[recovery.plan.leader_id], seen)


class NewQuorumLeads(Checker):
    """After a recovery only the new quorum leads, and none of its nodes votes for a log of the old quorum. A
    node that holds committed records which are lost now stands still: it leads nothing, appends and commits
    nothing, and gives none of them up until it is formatted again, or starts over with a snapshot."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._plan: Plan | None = None

    def recovered(self, recovery: Recovered) -> None:
        self._plan = recovery.plan

    def led(self, node: Checked, epoch: int) -> None:
        if self._plan is not None and epoch <= self._plan.epoch:
            self.fail(node, f"leads epoch {epoch}, the recovery was in {self._plan.epoch}")

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if self._plan is None or not isinstance(response, VoteResponse):
            return
        asked = vote_granted(node, token, response)
        if asked is not None and self._is_of_old_log(asked) and not self._is_old(node.disk):
            self.fail(node, f"votes for node {asked.replica_id}, whose log is of the old quorum")

    def _is_of_old_log(self, asked: Any) -> bool:
        """Whether a node asks for votes with a log of the old quorum. Strangers may claim any log."""
        candidate = self.nodes.get(asked.replica_id)
        if candidate is None or candidate.config.directory_id != asked.replica_directory_id:
            return False
        own = candidate.disk.last_epoch, candidate.disk.end_offset
        return self._is_old(candidate.disk) and own == (asked.last_offset_epoch, asked.last_offset)

    def _is_old(self, disk: Disk) -> bool:
        """Whether a disk has only records of the old quorum. One that was formatted since has none."""
        return self._plan is not None and 0 < disk.last_epoch < self._plan.epoch

    def advanced(self, node: Checked, high_watermark: int) -> None:
        if node.disk.is_estranged:
            self.fail(node, f"takes {high_watermark} for committed, and holds records that were given up")

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        if node.disk.is_estranged:
            self.fail(node, f"appends offset {batch.base_offset}, and holds records that were given up")

    def truncated(self, node: Checked, removed: Sequence[AppendBatch], end_offset: int) -> None:
        keeps_below = node.disk.keeps_below
        if keeps_below is not None and end_offset < keeps_below:
            self.fail(node, f"cuts its log at {end_offset}, and all below {keeps_below} was committed")
