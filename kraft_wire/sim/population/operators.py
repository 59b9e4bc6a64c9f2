"""Simulate the operator who recovers a quorum whose majority is lost, by docs/recovery.md.

The operator stops the nodes that are left, collects what their folders say, plans, applies the plan and
verifies it, with the product's own decisions. The others come back as observers on empty disks, and are added
again. A lost disk may turn up, and its node be started on it by mistake; but never so many of them that they
could elect a leader, which the documentation forbids.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec

from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.recovery.applying import deviation, is_applied, write_plan
from kraft_wire.raft.recovery.evidence import FolderEvidence
from kraft_wire.raft.recovery.node_role import is_controller
from kraft_wire.raft.recovery.plan import Plan, RecoveryError
from kraft_wire.raft.recovery.planning import make_plan
from kraft_wire.raft.recovery.ranking import has_equal_log, problem_of, ranked
from kraft_wire.sim.checkers.checker import Recovered
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.stopped_folder import PlannedDisk, evidence_of
from kraft_wire.sim.population.disasters import LostDisk, voter_sets
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS

if TYPE_CHECKING:
    from kraft_wire.sim.machines.cluster import Cluster
    from kraft_wire.sim.machines.node import SimNode

WRITES: Final = 6
"""How many writes a plan takes."""

ADD_EVERY_US: Final = 1_000 * MS


class Interrupted(Exception):
    """The power fails while a plan is applied."""


class Operator:
    """An operator who keeps to the documentation, except for old disks."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chance = stream(cluster.options.seed, "operator")
        self._lost_from = 0

    def recover(self, lost: Mapping[int, LostDisk], chance: random.Random) -> None:
        """Stop the nodes that are left, collect, plan, apply, and bring all nodes back."""
        cluster = self._cluster
        self._chance = chance
        left = [node for node in cluster.nodes.values() if node.id not in lost]
        for node in left:
            if chance.random() < 0.5:
                node.lose_power(chance)
            cluster.keep_down(node)
        found = [evidence_of(node.config, node.disk) for node in left]
        keep = self._keep(found)
        try:
            plan = make_plan(found, ["collected"], left[0].clock.now().wall_ms, keep=keep)
        except RecoveryError as refusal:
            self._take_refusal(refusal, left, lost)
            return
        if plan.kind != "lost majority":
            raise Violation("RecoveryIsPossible", f"the plan's kind is {plan.kind}")
        self._carry_out(plan, found, is_best=not keep)
        self._bring_back(plan, found, lost)

    def _keep(self, found: Sequence[FolderEvidence]) -> list[int]:
        """Return the survivors that the operator chooses, none of an earlier quorum. Mostly the plan
        chooses."""
        nodes = self._cluster.nodes
        usable = [
            folder
            for folder in ranked(found)
            if not problem_of(folder, found) and not nodes[folder.node_id].disk.is_estranged
        ]
        if not usable or self._chance.random() < 0.75:
            return []
        first = self._chance.choice(usable)
        return [folder.node_id for folder in usable if has_equal_log(folder, first)]

    def _take_refusal(
        self, refusal: RecoveryError, left: Sequence[SimNode], lost: Mapping[int, LostDisk]
    ) -> None:
        """Start all nodes if the plan says that the quorum needs no recovery. The end of the run shows
        whether that is so."""
        if "majority" not in str(refusal):
            raise Violation("RecoveryIsPossible", str(refusal))
        self.note(f"no recovery: {refusal}")
        for node in (*left, *(self._cluster.nodes[id] for id in lost)):
            self._start_later(node)

    def _carry_out(self, plan: Plan, found: Sequence[FolderEvidence], *, is_best: bool) -> None:
        """Apply the plan to its targets, and let the checkers see what it keeps and what it loses."""
        nodes, checkers = self._cluster.nodes, self._cluster.checkers
        kept = nodes[plan.leader_id].disk
        self._lost_from = checkers.committed.lost_from(kept)
        for target in plan.targets:
            self._apply(plan, nodes[target.node_id])
        self.note(f"recovered {[voter.id for voter in plan.voters]} at {plan.base_offset} in {plan.epoch}")
        recovery = Recovered(
            plan,
            kept=kept,
            left=[nodes[folder.node_id].disk for folder in found if not problem_of(folder, found)],
            is_best=is_best,
            known_epoch=max(folder.highest_epoch for folder in found),
            lost_from=self._lost_from,
        )
        for check in checkers.recovered:
            check(recovery)

    def _apply(self, plan: Plan, node: SimNode) -> None:
        """Apply a plan, again if the power fails meanwhile, and verify it."""
        disk, chance = node.disk, self._chance
        writes_left = chance.choice((None, None, chance.randrange(WRITES)))
        while not self._is_applied(plan, node):
            if not self._write(plan, node, writes_left):
                disk.lose_power(chance)
            writes_left = None  # it fails once
        if chance.random() < 0.3:
            disk.lose_power(chance)
        assert disk.marker is not None, "the plan is applied"
        differs = deviation(disk.marker, evidence_of(node.config, disk))
        if differs:
            raise Violation("RecoveryIsAsPlanned", f"node {node.id}: {differs}")

    def _is_applied(self, plan: Plan, node: SimNode) -> bool:
        stage = plan.stage_of(evidence_of(node.config, node.disk))
        if stage == "other":
            raise Violation("RecoveryIsPossible", f"node {node.id} isn't where the plan expects it")
        return is_applied(plan, stage, node.disk.marker)

    def _write(self, plan: Plan, node: SimNode, writes_left: int | None) -> bool:
        """Write a plan. Returns False if the power fails before the end, after so many writes."""
        stage = plan.stage_of(evidence_of(node.config, node.disk))
        writes = count() if writes_left is None else iter(range(writes_left))

        def before_write() -> None:
            if next(writes, None) is None:
                raise Interrupted

        node.disk.recover()
        try:
            write_plan(plan, stage, PlannedDisk(node.disk, before_write))
        except Interrupted:
            return False
        except RecoveryError as error:
            raise Violation("RecoveryIsPossible", f"node {node.id}: {error}") from error
        return True

    # The return.

    def _bring_back(self, plan: Plan, found: Sequence[FolderEvidence], lost: Mapping[int, LostDisk]) -> None:
        """Start the kept nodes, the other controllers on empty disks, and nodes that no folder knows as they
        are. Some of those whose disks were lost come back on these."""
        cluster = self._cluster
        kept = {target.node_id for target in plan.targets}
        unknown = {folder.node_id for folder in found if not is_controller(folder.node_id, found)}
        for node in cluster.nodes.values():
            if node.id not in kept | unknown | lost.keys():
                cluster.replace_disk(node)
            node.disk.former = None
        old = self._turned_up(lost, [cluster.nodes[id] for id in sorted(unknown)])
        for node in cluster.nodes.values():
            if node.id in old:
                self.put_back(node, lost[node.id])
            elif node.id in unknown:
                self._estrange(node.disk)
            self._start_later(node)
        self.note(f"disks of {old} turned up")
        again = [voter.id for voter in plan.old_voters if voter.id not in kept]
        cluster.scheduler.after(ADD_EVERY_US, self._add_again, again)

    def _turned_up(self, lost: Mapping[int, LostDisk], as_they_are: Sequence[SimNode]) -> list[int]:
        """Choose lost disks that turn up: all old disks together must not be able to elect a leader."""
        disks = {node.config.replica_key: node.disk for node in as_they_are}
        found: list[int] = []
        for node_id, (disk, directory_id) in lost.items():
            more = {**disks, ReplicaKey(node_id, directory_id): disk}
            if self._chance.random() < 0.4 and disk.last_epoch and _are_harmless(more):
                found.append(node_id)
                disks = more
        return found

    def put_back(self, node: SimNode, lost: LostDisk) -> None:
        """Give a stopped node its lost disk again, by mistake."""
        node.disk = lost.disk
        node.config = msgspec.structs.replace(node.config, directory_id=lost.directory_id)
        self._estrange(node.disk)

    def _estrange(self, disk: Disk) -> None:
        """Note what the recovery has given up, for a disk that was no part of it."""
        disk.given_up_from = min(self._lost_from, disk.given_up_from or self._lost_from)
        disk.recover()

    def _start_later(self, node: SimNode) -> None:
        self._cluster.scheduler.after(self._chance.randrange(2_000 * MS), self._start, node)

    def _start(self, node: SimNode) -> None:
        if not self._cluster.is_calm:
            self._cluster.let_go(node)
            node.start()

    def _add_again(self, ids: Sequence[int]) -> None:
        """Ask the leader each second to add one of the former voters, until all are voters."""
        cluster = self._cluster
        leader = cluster.leader
        if cluster.is_calm or cluster.disasters.is_under_way:
            return
        if leader is not None and leader.is_up:
            ids = [id for id in ids if leader.raft.voters.get(id) is None]
            if ids:
                cluster.voter_changes.ask(leader, cluster.nodes[self._chance.choice(ids)])
        if ids:
            cluster.scheduler.after(ADD_EVERY_US, self._add_again, ids)

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        cluster = self._cluster
        cluster.world.trace.add(f"{cluster.scheduler.now_us} operator: {what}")

    def finish(self) -> None:
        """Let nodes start, and format what only formatting helps."""
        for node in self._cluster.nodes.values():
            self._cluster.let_go(node)
            if node.disk.is_estranged:
                node.kill()
                self._cluster.replace_disk(node)


def _are_harmless(disks: Mapping[ReplicaKey, Disk]) -> bool:
    """Whether the nodes of these disks are no majority of any voters that one of the disks names."""
    sets = [voters for disk in disks.values() for voters in voter_sets(disk)]
    return all(2 * len(voters & disks.keys()) <= len(voters) for voters in sets)
