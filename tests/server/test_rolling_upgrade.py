"""Roll a quorum of real processes to a release that writes a metadata record of a new type (ZEP-007)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.live_quorum import QUIET, Controllers
from tests.support.newer_release import newer_release

IDS = (1, 2, 3)
(IDLE,) = QUIET


class Upgrade:
    """Three controllers, and the release to which they are upgraded one by one."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.release = newer_release(folder)
        self.controllers = Controllers(folder)
        self.controllers.configure({IDLE: "500", **(settings or {})})
        self.controllers.start()

    def upgrade(self, id: int) -> None:
        self.controllers.kill(id)
        self.controllers.start_one(id, self.release)

    def make_lead(self, id: int) -> None:
        """Restart leaders until it is this one's turn."""
        while (leader := self.controllers.leader()) != id:
            self.controllers.kill(leader)
            self.controllers.leader()
            self.controllers.start_one(leader)

    def wait_until_stopped(self, id: int) -> None:
        stopped = self.controllers.processes[id].wait_for("replay stopped")
        assert "there is no record 99" in stopped["reason"]


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Upgrade]:
    running = Upgrade(tmp_path)
    try:
        yield running
    finally:
        running.controllers.close()


def old_ones(new: int) -> list[int]:
    return [id for id in IDS if id != new]


@pytest.mark.parametrize("first", ["the leader", "a follower"])
def test_older_controllers_stop_at_the_new_record_and_go_on_after_their_upgrade(
    upgraded: Upgrade, first: str
) -> None:
    controllers = upgraded.controllers
    controllers.write(range(3))
    leader = controllers.leader()
    new = leader if first == "the leader" else old_ones(leader)[0]
    upgraded.upgrade(new)
    upgraded.make_lead(new)
    for id in old_ones(new):
        upgraded.wait_until_stopped(id)
    controllers.write(range(3, 6))  # the older ones acknowledge
    for id in old_ones(new):
        upgraded.upgrade(id)
        controllers.write(range(6, 9))
    assert all("replay stopped" not in process.text for process in controllers.processes.values())


def test_an_older_controller_is_never_active_behind_the_new_record(upgraded: Upgrade) -> None:
    controllers = upgraded.controllers
    new = controllers.leader()
    upgraded.upgrade(new)
    upgraded.make_lead(new)
    for id in old_ones(new):
        upgraded.wait_until_stopped(id)
    controllers.kill(new)
    waiting, other = old_ones(new)
    controllers.kill(other)
    process = controllers.start_one(other)
    process.wait_for("replay stopped")  # also at its start
    upgraded.upgrade(waiting)
    assert controllers.leader() == waiting
    assert "active controller" not in process.text
