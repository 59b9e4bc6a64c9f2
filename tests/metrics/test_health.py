"""Whether a node is ready, and why it isn't."""

from __future__ import annotations

from kraft_wire.metrics.counts import Counts
from kraft_wire.metrics.health import PATIENCE_MS, readiness
from kraft_wire.raft.events import ShutDown
from tests.controller.node.node_requests import register_broker
from tests.controller.node.test_stopped_replay import UNKNOWN_TYPE, log_with
from tests.metrics.counted import CountedController, active, leaderless


def problems(controller: CountedController) -> dict[str, str]:
    checks = readiness(controller.node, controller.counted, controller.now_ms)
    return {check.name: check.problem for check in checks if check.problem is not None}


def test_an_active_controller_is_ready() -> None:
    assert problems(active()) == {}


def test_a_check_is_a_line() -> None:
    controller = active()
    checks = readiness(controller.node, controller.counted, controller.now_ms)
    assert [str(check) for check in checks] == [
        f"{name}: ok" for name in ("running", "leader", "high watermark", "state", "replay", "disk")
    ]


def test_a_node_without_a_leader_is_not_ready() -> None:
    controller = leaderless()
    assert problems(controller)["leader"] == "none is known"


def test_a_new_leader_does_not_know_what_is_committed() -> None:
    assert problems(CountedController())["high watermark"] == "it isn't known yet"


def test_a_disk_that_hangs() -> None:
    controller = active()
    controller.ask("broker", register_broker(), 4)
    assert problems(controller) == {}
    controller.now_ms += PATIENCE_MS
    assert problems(controller) == {
        "high watermark": "it hasn't moved for 5 s, though the log goes on",
        "disk": "no flush has ended for 5 s",
    }
    controller.flush()
    assert problems(controller) == {}


def test_a_state_that_lags() -> None:
    controller = active()
    controller.counted.delays.unapplied_ms = controller.now_ms
    controller.now_ms += PATIENCE_MS + 1_000
    assert problems(controller) == {"state": "0 committed records aren't applied, for 6 s"}


def test_a_stopped_replay() -> None:
    controller = CountedController(log_with(UNKNOWN_TYPE))
    stopped = controller.node.replay_stopped
    assert stopped is not None
    assert problems(controller)["replay"] == f"replay stopped at offset {stopped.offset}: {stopped.reason}"


def test_a_controller_that_stops() -> None:
    controller = active()
    controller.step(ShutDown())
    assert "running" in problems(controller)


def test_an_idle_controller_stays_ready() -> None:
    controller = active()
    controller.live(10 * PATIENCE_MS)
    assert problems(controller) == {}
    assert isinstance(controller.counts, Counts)
