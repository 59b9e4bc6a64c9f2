"""Bugs in what a controller does with a record of a newer release."""

from __future__ import annotations

from kraft_wire.controller.node.following import LogFollower
from kraft_wire.controller.node.node import Node
from kraft_wire.log.batch import Batch
from kraft_wire.sim.machines.cluster import Cluster
from tests.sim.planting import Bugs, Patch

RELEASES = Bugs()
bug = RELEASES.bug


@bug("StoppedIsNeverActive")
def replay_skips_the_record(patch: Patch) -> None:
    real_apply, real_read = LogFollower.apply, LogFollower.read_up_to

    def apply(self: LogFollower, batch: Batch) -> bool:
        stopped, self.stopped = self.stopped, None
        real_apply(self, batch)
        self.applied_end = batch.header.next_offset
        self.stopped = stopped or self.stopped
        return True

    def read_up_to(self: LogFollower, high_watermark: int) -> None:
        stopped, self.stopped = self.stopped, None
        real_read(self, high_watermark)
        self.stopped = stopped

    patch.attribute(LogFollower, "apply", apply)
    patch.attribute(LogFollower, "read_up_to", read_up_to)


@bug("StoppedIsNeverActive", "CommittedRecordsApply")
def a_stopped_controller_becomes_active(patch: Patch) -> None:
    def activate_if_ready(self: Node) -> None:
        if not self.is_active and not self._follower.is_busy and self.core.accepts_proposals:
            self._copy_raft_state()
            registration = self._registrar.registration
            self._decisions.activate(self._follower.applied_end, self._bootstrap, registration)

    patch.attribute(Node, "_activate_if_ready", activate_if_ready)
    patch.attribute(Node, "_note_replay", lambda self: None)


@bug("AllApplyAfterTheUpgrade")
def the_older_release_is_started_again(patch: Patch) -> None:
    def upgrade_all(self: Cluster) -> None:
        for node in self.nodes.values():
            node.kill()

    patch.attribute(Cluster, "upgrade_all", upgrade_all)
