"""Check nodes that met a record of a newer release."""

from __future__ import annotations

from kraft_wire.controller.node.node import Node
from kraft_wire.sim.checkers.checker import Checked, Checker


class StoppedIsNeverActive(Checker):
    """A node that can't apply a committed record is not the active controller, and applies nothing more."""

    def check(self, node: Checked, machine: Node) -> None:
        """Look at a node after a step."""
        stopped = machine.replay_stopped
        if stopped is None:
            return
        if machine.is_active:
            self.fail(node, f"is active, though its replay stopped: {stopped}")
        applied = machine.state.metadata.last_applied_offset
        if applied >= stopped.offset:
            self.fail(node, f"has applied {applied}, though its replay stopped: {stopped}")


class AllApplyAfterTheUpgrade(Checker):
    """When all nodes run the newer release, none is stopped."""

    def check(self, node: Checked, machine: Node) -> None:
        """Look at a node after the upgrade, when all has been quiet for a while."""
        if machine.replay_stopped is not None:
            self.fail(node, f"is upgraded, and still stopped: {machine.replay_stopped}")
