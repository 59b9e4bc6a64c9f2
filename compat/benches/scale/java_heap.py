"""Give Java controllers the heap of a large cluster."""

from __future__ import annotations

from compat.benches.controller.measure import JAVA_OPTIONS
from compat.harness.kafka.nodes import JvmController
from compat.harness.kafka.quorum import ControllerQuorum

JAVA_HEAP = "-Xmx4g"


def give_heap(quorum: ControllerQuorum) -> None:
    """Let the Java controllers of a quorum, which isn't started yet, take 4 GB."""
    for controller in quorum.controllers.values():
        if isinstance(controller, JvmController):
            controller.jvm_options = (JAVA_HEAP, *JAVA_OPTIONS[1:])
