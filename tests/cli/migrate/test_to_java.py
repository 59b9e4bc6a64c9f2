"""From our controllers back to Java's: what Java ignores in our folders, and how new it has to be."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.cli.quorum.migrate.facts import CLUSTER
from kraft_wire.cli.quorum.migrate.to_java import judge
from kraft_wire.metadata.errors import FeatureError
from tests.cli.migrate.samples import commands, controller, dynamic, file, ours, quorum, texts

OURS = tuple(map(ours, (1, 2, 3)))


def with_folder(**changes: Any) -> tuple[Any, ...]:
    return (ours(1, file=file(1, **changes)), ours(2), ours(3))


def test_each_controller_hands_its_folder_over() -> None:
    verdict = judge(quorum(*OURS))
    assert (verdict.is_blocked, verdict.is_reached) == (False, False)
    assert verdict.step is not None
    assert verdict.step.commands == (
        "kill 1001  # controller 1; wait until it has ended",
        "kafka-server-start.sh /etc/kafka/c1.properties",
    )
    assert judge(quorum(*map(controller, (1, 2, 3)))).is_reached


@pytest.mark.parametrize("pid", [None, 0, -1])
def test_a_process_that_is_not_known_is_not_killed(pid: int | None) -> None:
    """A lock's holder in another container is 0, one on a network's file system -1."""
    step = judge(quorum(*with_folder(pid=pid))).step
    assert step is not None
    assert step.commands[0] == (
        "# stop controller 1: send SIGTERM to its process, and wait until it has ended"
    )


@pytest.mark.parametrize(
    ("kraft_version", "level", "release"),
    [(0, 33, "4.4"), (0, 25, "4.0"), (0, 16, "3.7"), (1, 16, "3.9"), (1, 30, "4.3")],
)
def test_the_levels_say_which_release_it_takes(kraft_version: int, level: int, release: str) -> None:
    found = quorum(*OURS, kraft_version=kraft_version, levels={"metadata.version": level})
    text = (
        f"Java's controllers must be of Kafka {release} or newer: metadata.version is {level}, "
        f"kraft.version {kraft_version}"
    )
    assert texts(judge(found), "note") == [(CLUSTER, text)]
    assert not judge(found, release).is_blocked


@pytest.mark.parametrize(
    ("kraft_version", "level", "release", "needed"), [(0, 33, "4.3", "4.4"), (1, 16, "3.8", "3.9")]
)
def test_an_older_release_is_in_the_way(kraft_version: int, level: int, release: str, needed: str) -> None:
    found = quorum(*OURS, kraft_version=kraft_version, levels={"metadata.version": level})
    verdict = judge(found, release)
    because = f"metadata.version is {level}, kraft.version {kraft_version}"
    assert texts(verdict) == [(CLUSTER, f"Kafka {release} is too old: {because}")]
    assert verdict.findings[0].do == f"use Kafka {needed} or newer"


def test_a_level_that_no_known_release_has() -> None:
    text = judge(quorum(*OURS, levels={"metadata.version": 99})).findings[0].what
    assert text.startswith("Java's controllers must be of a release that knows metadata.version 99 or newer")


def test_an_unknown_release_is_an_error() -> None:
    with pytest.raises(FeatureError, match=r"release version '9\.9' is unknown"):
        judge(quorum(*OURS), "9.9")


@pytest.mark.parametrize("guard", ["lost-below", "lost-below-unless-alone"])
def test_a_node_that_has_lost_records_does_not_go_to_java(guard: str) -> None:
    verdict = judge(quorum(*with_folder(guards=(guard,))))
    why = "it must not vote before it holds again what its log has lost; Java ignores the file"
    assert texts(verdict) == [("controller 1", f"/data/1 has {guard}: {why}")]


@pytest.mark.parametrize(("quorum_epoch", "is_blocked"), [(7, True), (8, True), (9, False)])
def test_a_node_that_has_lost_its_votes_does_not_go_to_java(quorum_epoch: int, is_blocked: bool) -> None:
    """Java can't vote below its own epoch."""
    lost = with_folder(guards=("no-vote-up-to",), no_vote_up_to=8, quorum_epoch=quorum_epoch)
    assert judge(quorum(*lost)).is_blocked == is_blocked


def test_a_damaged_folder_does_not_go_to_java() -> None:
    verdict = judge(quorum(*with_folder(damage=("1.log is damaged: x",))))
    text = "/data/1: 1.log is damaged: x; Java would cut the log there without a word"
    assert texts(verdict) == [("controller 1", text)]
    assert commands(verdict) == ["kraft-wire fsck /data/1"]


def test_our_own_keys_are_ignored_by_java() -> None:
    said = dynamic(1) | {"kraft.wire.max.held.bytes": "1", "kraft.wire.max.request.entries": "100"}
    verdict = judge(quorum(ours(1, file=file(1, said)), ours(2), ours(3)))
    assert (
        "controller 1",
        "its properties file: Java ignores kraft.wire.max.held.bytes, kraft.wire.max.request.entries",
    ) in texts(verdict, "note")


def test_drafted_listeners_are_in_the_way() -> None:
    said = dynamic(1) | {"kraft.wire.kip853.draft.listeners": "DRAFT"}
    verdict = judge(quorum(ours(1, file=file(1, said)), ours(2), ours(3)))
    text = (
        "its properties file: kraft.wire.kip853.draft.listeners names DRAFT; Java doesn't speak the draft of "
        "KIP-853, and could neither follow nor vote there"
    )
    assert texts(verdict) == [("controller 1", text)]
    assert not [what for _, what in texts(verdict, "note") if "Java ignores" in what]
    unset = said | {"kraft.wire.kip853.draft.listeners": " "}
    assert not judge(quorum(ours(1, file=file(1, unset)), ours(2), ours(3))).is_blocked


def test_folders_that_were_not_looked_at_are_not_known() -> None:
    elsewhere = ours(1, file=file(1, is_here=False, cluster_id="", node_id=-1))
    verdict = judge(quorum(elsewhere, ours(2, file=None), ours(3)))
    assert [node for node, _ in texts(verdict, "not known")] == ["controller 1", "controller 2"]
    assert commands(verdict, "not known") == ["kraft-wire fsck /data/1"]
    assert not verdict.is_blocked


def test_the_leader_waits_until_the_followers_software_is_known() -> None:
    hidden = ours(2, software="unknown", problem="timed out", features={}, settings=None)
    step = judge(quorum(controller(1), hidden, ours(3))).step
    assert step is not None
    assert (step.node, step.commands) == ("controller 2", ("# find out what controller 2 runs",))


def test_what_is_not_known_comes_before_the_kill() -> None:
    elsewhere = ours(1, file=file(1, is_here=False, cluster_id="", node_id=-1))
    step = judge(quorum(elsewhere, ours(2), ours(3))).step
    assert step is not None
    assert step.commands[0].startswith("# first clear what is not known: controller 1: /data/1 isn't on this")
    assert step.commands[1].startswith("kill ")
