"""Check the state of an active controller after the decisions that take several steps."""

from __future__ import annotations

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.sim.checkers.checker import Checked, Checker
from kraft_wire.sim.checkers.metadata_rules import is_last_stand


class ShutdownLeavesIsrs(Checker):
    """A broker in controlled shutdown is in no ISR when the controller has passed over all partitions. While
    it passes over them, the broker keeps some of its places."""

    def check(self, node: Checked, state: ControllerState) -> None:
        """Look at the state of an active controller, committed or not."""
        for broker in state.metadata.brokers.values():
            if broker.in_controlled_shutdown and _is_through(state, broker):
                self._check_broker(node, state, broker)

    def _check_broker(self, node: Checked, state: ControllerState, broker: BrokerRegistration) -> None:
        metadata = state.metadata
        for ref in metadata.partitions.with_isr_member(broker.id):
            partition = metadata.partitions.get(ref.topic_id, ref.index)
            if partition is not None and not is_last_stand(metadata, partition):
                self.fail(node, f"broker {broker.id} is shut down, but is in the ISR of {ref}: {partition}")


def _is_through(state: ControllerState, broker: BrokerRegistration) -> bool:
    """Whether this controller has taken the broker out of the ISRs. Another one did perhaps only a part."""
    is_stopping = state.sessions.is_shutting_down(broker.id)
    return is_stopping and not broker.fenced and not state.is_in_work(WorkKind.SHUT_DOWN, broker.id)
