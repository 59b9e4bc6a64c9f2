"""What three controllers make of a flipped bit: how much of what was committed is left.

A and B commit topics while C is down, and both stop. One bit of B's log flips. B and C start, and elect a
leader if they will. A, whose log is whole, comes back. How many topics are in all three logs then?
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from compat.bench.pretend_broker import PretendBroker
from compat.bench.quorum import all_in_step
from compat.harness.cluster import ControllerKind
from compat.harness.controllers import Controller, ControllerQuorum, flip_a_bit
from compat.harness.processes import Workspace
from compat.harness.tool_server import ToolServer
from compat.harness.tools import KafkaTools, segments
from compat.harness.waiting import WaitTimeout, wait_until

TOPICS = 40
NO_LEADER_WITHIN_S = 15.0
"""Five times what Java's controllers take to elect one."""

# Nobody is there to send heartbeats.
PROPERTIES = {"broker.session.timeout.ms": "86400000"}


class DamageFigures(msgspec.Struct):
    """How many of ``TOPICS`` are left on all three, by the damaged bit's place in the log (0 to 1)."""

    topics_left: dict[float, int]


PLACES = (0.25, 0.5)


def measure_damage(kind: ControllerKind, folder: Path, tools: ToolServer) -> DamageFigures:
    """Once for every place."""
    return DamageFigures(
        {place: _topics_left(kind, folder / f"{kind}-damage-{place}", tools, place) for place in PLACES}
    )


def _topics_left(kind: ControllerKind, folder: Path, tools: ToolServer, place: float) -> int:
    with Workspace(folder) as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind] * 3, properties=PROPERTIES)
        quorum.format()
        quorum.start()
        whole = quorum.leader()
        damaged, behind = quorum.followers()
        _commit_topics(quorum, whole, behind)
        for controller in quorum.running:
            controller.stop()
        flip_a_bit(damaged, place)
        damaged.start()
        behind.start()
        with suppress(WaitTimeout):
            quorum.leader(NO_LEADER_WITHIN_S)
        whole.start()
        wait_until(lambda: all_in_step(quorum), "all three to be in step", 60)
        for controller in quorum.controllers.values():
            controller.kill()
        reader = KafkaTools(tools)
        return len(set.intersection(*(_topics(c, reader) for c in quorum.controllers.values())))


def _commit_topics(quorum: ControllerQuorum, leader: Controller, down: Controller) -> None:
    PretendBroker(1, quorum.cluster_id, leader.port).close()
    wait_until(lambda: all_in_step(quorum), "all three to be in step")
    down.stop()
    for number in range(TOPICS):
        quorum.create_topic_quickly(f"committed-{number}")


def _topics(controller: Controller, reader: KafkaTools) -> set[str]:
    records = reader.metadata_records(*segments(controller.data_folder))
    return {record.data["name"] for record in records if record.type == "TOPIC_RECORD"}
