"""A migration goes on only while all voters keep up; files and folders must be those of the nodes."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.cli.quorum.migrate import to_dynamic, to_java, to_kraft_wire
from kraft_wire.cli.quorum.migrate.facts import CLUSTER, Quorum, Verdict
from kraft_wire.cli.quorum.migrate.report import next_step
from kraft_wire.cli.quorum.migrate.voters import MAX_LAG
from tests.cli.migrate.samples import (
    BOOTSTRAP,
    CLUSTER_ID,
    commands,
    controller,
    dynamic,
    file,
    folder,
    ours,
    quorum,
    texts,
    with_one,
)

JUDGES = [to_dynamic.judge, to_kraft_wire.judge, to_java.judge]


@pytest.fixture(params=JUDGES, ids=lambda judge: judge.__module__.rpartition(".")[2])
def judge(request: pytest.FixtureRequest) -> Any:
    return request.param


def of_node(verdict: Verdict, name: str) -> list[str]:
    return [text for node, text in texts(verdict) if node == name]


def stopped(id: int, **changes: Any) -> Any:
    return controller(
        id, **{"fetches": False, "problem": "refused", "software": "unknown", "settings": None, **changes}
    )


def test_a_voter_that_is_down_is_in_the_way(judge: Any) -> None:
    verdict = judge(quorum(*with_one(stopped(2))))
    assert verdict.is_blocked
    text = "it doesn't fetch from the leader, and doesn't answer: refused"
    assert of_node(verdict, "controller 2") == [text]
    step = next_step(verdict)
    assert step is not None
    assert (step.node, step.why.startswith(text)) == ("controller 2", True)


@pytest.mark.parametrize("lag", [MAX_LAG + 1, None])
def test_a_voter_that_lags_is_in_the_way(judge: Any, lag: int | None) -> None:
    verdict = judge(quorum(*with_one(controller(2, lag=lag))))
    number = "an unknown number of" if lag is None else lag
    assert of_node(verdict, "controller 2") == [f"it lags by {number} records"]
    assert not judge(quorum(*with_one(controller(2, lag=MAX_LAG)))).is_blocked


def test_a_voter_that_answers_and_does_not_fetch_is_in_the_way(judge: Any) -> None:
    verdict = judge(quorum(*with_one(controller(2, fetches=False))))
    assert of_node(verdict, "controller 2") == ["it answers, and doesn't fetch from the leader"]


def test_an_observer_that_lags_is_not_in_the_way(judge: Any) -> None:
    observer = controller(4, is_voter=False, lag=10_000, file=file(4, dynamic(4)))
    assert not judge(quorum(*map(controller, (1, 2, 3)), observer)).is_blocked


@pytest.mark.parametrize(
    ("judge", "line"),
    [
        (to_kraft_wire.judge, "kraft-wire server /etc/kafka/c2.properties"),
        (to_java.judge, "kafka-server-start.sh /etc/kafka/c2.properties"),
    ],
)
def test_a_voter_that_is_down_starts_with_the_wanted_software(judge: Any, line: str) -> None:
    """It has been stopped to be replaced."""
    assert commands(judge(quorum(*with_one(stopped(2))))) == [line]


def test_a_voter_that_is_down_does_not_start_while_something_else_is_in_its_way() -> None:
    damaged = stopped(2, file=file(2, damage=("the log is damaged",)))
    verdict = to_java.judge(quorum(*with_one(damaged)))
    assert commands(verdict) == ["kraft-wire fsck /data/2"]
    assert [finding.do for finding in verdict.findings if finding.node == "controller 2"] == [
        "first clear what else is in its way",
        "see docs/recovery.md",
    ]


def test_a_voter_that_is_down_can_be_removed_if_the_voters_are_dynamic(judge: Any) -> None:
    for kraft_version in (0, 1):
        verdict = judge(quorum(*with_one(stopped(2, file=None)), kraft_version=kraft_version))
        (do,) = [
            finding.do
            for finding in verdict.findings
            if finding.kind == "in the way" and finding.node == "controller 2"
        ]
        remove = f"kraft-wire quorum remove 2 --bootstrap-controller {BOOTSTRAP}"
        assert (remove in do) == (kraft_version == 1)


# Files and folders.


def blocked_by(judge: Any, found: Quorum) -> tuple[str, str]:
    (only,) = texts(judge(found))
    return only


def test_a_file_of_no_node_is_in_the_way(judge: Any) -> None:
    node, text = blocked_by(judge, quorum(strangers=(file(7),)))
    assert node == CLUSTER
    assert text.startswith("/etc/kafka/c7.properties is of node 7, and no controller or broker")
    _, text = blocked_by(judge, quorum(strangers=(file(7, {}),)))
    assert text.startswith("/etc/kafka/c7.properties has no node.id")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cluster_id": "other"}, f"/data/1 is of cluster other, the quorum of {CLUSTER_ID}"),
        ({"node_id": 2}, "/data/1 is of node 2, /etc/kafka/c1.properties of node 1"),
        ({"directory_id": "another"}, "/data/1 has directory id another, the voter has directory-1"),
        ({"problem": "permission denied"}, "/data/1 can't be read: permission denied"),
    ],
)
def test_a_folder_that_is_not_the_node_s_is_in_the_way(
    judge: Any, changes: dict[str, Any], text: str
) -> None:
    found = quorum(*with_one(controller(1, directory_id="directory-1", file=file(1, **changes))))
    assert blocked_by(judge, found) == ("controller 1", text)


def test_a_folder_whose_directory_the_leader_does_not_know_is_not_in_the_way(judge: Any) -> None:
    assert folder(1).directory_id
    assert not judge(quorum(*with_one(controller(1, directory_id="")))).is_blocked


def test_a_folder_on_another_machine_is_not_in_the_way(judge: Any) -> None:
    elsewhere = controller(1, file=file(1, is_here=False, cluster_id="", node_id=-1))
    assert not judge(quorum(*with_one(elsewhere))).is_blocked


# The order.


def test_observers_come_first_and_the_leader_last() -> None:
    nodes = {
        1: controller(1, is_leader=True),
        2: controller(2),
        3: controller(3, is_leader=False),
        4: controller(4, is_voter=False),
    }
    order = []
    while (step := to_kraft_wire.judge(quorum(*nodes.values())).step) is not None:
        order.append(step.node)
        id = int(step.node.partition(" ")[2])
        nodes[id] = ours(id, is_leader=id == 1, is_voter=id < 4)
    assert order == ["controller 4", "controller 2", "controller 3", "controller 1"]
