"""Measure how many committed topics three controllers keep after a bit in one log was flipped.

A and B commit topics while C is down, and both stop. One bit of B's log is flipped. B and C start, and may
elect a leader. Then A starts, whose log is intact. The figure is the number of topics in all three logs.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from compat.benches.controller.quorum import all_caught_up
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller, ControllerQuorum, flip_a_bit
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments
from compat.harness.processes import Workspace
from compat.harness.waiting import WaitTimeout, wait_until

TOPICS = 40
NO_LEADER_WITHIN_S = 15.0
"""Five times the time in which Java's controllers elect a leader."""

# No broker sends heartbeats.
PROPERTIES = {"broker.session.timeout.ms": "86400000"}


class DamageFigures(msgspec.Struct):
    """The number of topics left on all three, by the position of the damaged bit in the log (0 to 1)."""

    topics_left: dict[float, int]


PLACES = (0.25, 0.5)


def measure_damage(kind: ControllerKind, folder: Path, tools: ToolServer) -> DamageFigures:
    """Measure once for every position of the damaged bit."""
    return DamageFigures(
        {place: _topics_left(kind, folder / f"{kind}-damage-{place}", tools, place) for place in PLACES}
    )


def _topics_left(kind: ControllerKind, folder: Path, tools: ToolServer, place: float) -> int:
    with Workspace(folder) as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind] * 3, properties=PROPERTIES)
        quorum.format()
        quorum.start()
        intact = quorum.leader()
        damaged, lagging = quorum.followers()
        _commit_topics(quorum, intact, lagging)
        for controller in quorum.running:
            controller.stop()
        flip_a_bit(damaged, place)
        damaged.start()
        lagging.start()
        with suppress(WaitTimeout):
            quorum.leader(NO_LEADER_WITHIN_S)
        intact.start()
        wait_until(lambda: all_caught_up(quorum), "all three to catch up", 60)
        for controller in quorum.controllers.values():
            controller.kill()
        reader = KafkaTools(tools)
        return len(set.intersection(*(_topics(c, reader) for c in quorum.controllers.values())))


def _commit_topics(quorum: ControllerQuorum, leader: Controller, down: Controller) -> None:
    PretendBroker(1, quorum.cluster_id, leader.port).close()
    wait_until(lambda: all_caught_up(quorum), "all three to catch up")
    down.stop()
    for number in range(TOPICS):
        quorum.create_topic_quickly(f"committed-{number}")


def _topics(controller: Controller, reader: KafkaTools) -> set[str]:
    records = reader.metadata_records(*segments(controller.data_folder))
    return {record.data["name"] for record in records if record.type == "TOPIC_RECORD"}
