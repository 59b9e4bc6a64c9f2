"""A short campaign of strangers against controllers under load, and the rules that judge a campaign."""

from __future__ import annotations

import socket

import pytest

from compat.campaigns.strangers import rules
from compat.campaigns.strangers.fake_leader import fake_leader
from compat.campaigns.strangers.load import Figures
from compat.campaigns.strangers.phases import ATTACKS, Phase, Trial, Trials, timed_violations
from compat.campaigns.strangers.plan import Deeds, read_deeds
from compat.campaigns.strangers.report import describe
from compat.campaigns.strangers.rules import Leadership, Sighting
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until

PHASE_S = 2.0
RATE = 200.0
PATIENT = {"controller.quorum.fetch.timeout.ms": "20000"}
"""On a busy machine a leader is slow, too, and would be replaced."""


def test_strangers_change_nothing_and_lose_nothing(workspace: Workspace, tool_server: ToolServer) -> None:
    quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3, properties=PATIENT)
    trial = Trials(quorum, "three controllers", PHASE_S, RATE, seed=1).run()
    text = describe([trial], [])
    assert not trial.violations, text
    assert [phase.name for phase in trial.phases] == ["quiet", *ATTACKS]
    for phase in trial.phases[:4]:
        assert phase.looks and phase.figures.creations_ms and phase.figures.heartbeats_ms, text
    for hostile in trial.phases[1:]:
        assert hostile.deeds is not None
        assert hostile.deeds.answered > 0, text
        if hostile.name in ("outsiders", "claimants"):  # a node that is killed answers no more
            assert hostile.deeds.answered == hostile.deeds.sent, text
    assert [phase.restarts for phase in trial.phases] == [0, 0, 0, 1, 3, 3]
    assert trial.acknowledged > 0


QUIET = {id: Sighting(id, leader_id=100, epoch=3) for id in (100, 101, 102)}


def test_a_quiet_time_violates_no_rule() -> None:
    assert rules.changed(QUIET, list(QUIET.values()), []) == []


def test_each_change_of_leader_or_epoch_is_named() -> None:
    assert rules.changed(QUIET, [Sighting(101, 100, 4), Sighting(102, -1, 3)], [Leadership(102, 5, 0.0)]) == [
        "node 102 became the leader of epoch 5",
        "node 101 named leader 100 and epoch 4; before it was leader 100 and epoch 3",
        "node 102 named leader -1 and epoch 3; before it was leader 100 and epoch 3",
    ]


def test_a_leader_may_be_replaced_once_in_ten_seconds() -> None:
    slow = [Leadership(100, 1, 0.0), Leadership(101, 2, 10.0), Leadership(100, 5, 20.1)]
    assert rules.hurried(slow) == []
    assert rules.shortest_leadership_s(slow) == 10.0
    assert rules.hurried([*slow, Leadership(102, 6, 25.0)]) == [
        "node 100 led epoch 5 for 4.90 s until node 102 led epoch 6: one change in 10 s is allowed"
    ]


def test_a_quorum_must_be_well_soon_after_the_last_request() -> None:
    assert rules.late(5.0, "the last request") == []
    assert rules.late(5.1, "the last request") == [
        "it was well 5.1 s after the last request: 5 s are allowed"
    ]


@pytest.mark.parametrize(
    ("figures", "lines"),
    [
        (Figures(creations_ms=[5.0, 2000.0]), []),
        (Figures(creations_ms=[5.0, 2100.0]), ["a create-topic took 2.1 s: 2 s are allowed"]),
        (Figures(creations_ms=[5.0], waits_ms=2600.0), ["a create-topic took 2.6 s: 2 s are allowed"]),
        (Figures(), ["no topic was created"]),
        (Figures(creations_ms=[5.0], failures=["t: no leader"]), ["failed: t: no leader"]),
    ],
)
def test_clients_may_be_without_a_leader_for_one_fetch_timeout(figures: Figures, lines: list[str]) -> None:
    phase = Phase("one restarts", 1.0, figures, [], (1, 1), 1, 0.0)
    trial = Trial("three controllers", [phase])
    assert timed_violations(trial) == [f"three controllers: {line}" for line in lines]


def test_the_last_line_of_the_strangers_says_what_they_did() -> None:
    assert read_deeds('a warning\n{"sent":3,"answered":2}\n') == Deeds(sent=3, answered=2)


@pytest.mark.parametrize("output", ["", "\n", "Killed\n", '{"sent":"many"}\n'])
def test_strangers_that_dont_say_what_they_did_are_an_error(output: str) -> None:
    with pytest.raises(ValueError, match="the strangers' last line doesn't say what they did"):
        read_deeds(output)


def test_the_fake_leader_forgets_visitors_that_have_left() -> None:
    def visit() -> bool:
        with socket.create_connection(("127.0.0.1", leader.port)):
            pass
        return leader.visits > 50 and leader.visitors < 10

    with fake_leader(1, (100,)) as leader:
        assert wait_until(visit, "the fake leader to forget visitors")
