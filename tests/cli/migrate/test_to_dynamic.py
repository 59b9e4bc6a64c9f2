"""From static to dynamic voters: what is in the way of kraft.version 1, and which node comes next."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.cli.quorum.migrate.facts import CLUSTER, Controller, Quorum
from kraft_wire.cli.quorum.migrate.to_dynamic import judge
from tests.cli.migrate.samples import (
    BOOTSTRAP,
    broker,
    commands,
    controller,
    dynamic,
    features,
    file,
    ours,
    properties,
    quorum,
    texts,
    with_one,
)

UPGRADE = f"kafka-features.sh --bootstrap-controller {BOOTSTRAP} upgrade --feature kraft.version=1"


def upgraded(*controllers: Controller, **changes: Any) -> Quorum:
    return quorum(*controllers, kraft_version=1, **changes)


# kraft.version 0.


def test_the_upgrade_comes_first() -> None:
    verdict = judge(quorum(brokers=(broker(11),)))
    assert (verdict.is_blocked, verdict.is_reached) == (False, False)
    assert verdict.step is not None
    assert (verdict.step.node, verdict.step.commands) == (CLUSTER, (UPGRADE,))
    assert set(verdict.states.values()) == {"to do"}
    assert texts(verdict, "note") == [(CLUSTER, "there is no way back from kraft.version 1 to 0")]


def test_kafka_s_tools_get_the_command_config() -> None:
    step = judge(quorum(command_config="/etc/my client.properties")).step
    assert step is not None
    assert step.commands == (
        f"kafka-features.sh --bootstrap-controller {BOOTSTRAP} "
        "--command-config '/etc/my client.properties' upgrade --feature kraft.version=1",
    )


@pytest.mark.parametrize(("level", "release"), [(25, "4.0"), (21, "3.9"), (20, "3.8")])
def test_a_voter_before_kafka_4_1_is_in_the_way_although_the_leader_agrees(level: int, release: str) -> None:
    old = controller(2, features=features(level), registered_features=features(level))
    ((node, text),) = texts(judge(quorum(*with_one(old))))
    assert node == "controller 2"
    assert text.startswith(f"it is Kafka {release}: before 4.1 a voter doesn't tell its directory id")


def test_kafka_4_1_is_new_enough() -> None:
    assert not judge(quorum(*with_one(controller(2, features=features(26))))).is_blocked


def test_an_old_observer_is_not_in_the_way() -> None:
    old = controller(4, is_voter=False, features=features(25))
    assert not judge(quorum(*map(controller, (1, 2, 3)), old)).is_blocked


def test_a_voter_of_unknown_release_is_not_known() -> None:
    verdict = judge(quorum(*with_one(controller(2, features={}))))
    assert texts(verdict, "not known") == [
        ("controller 2", "its release isn't known: it didn't answer, and hasn't registered")
    ]


def test_a_registration_without_kraft_version_is_in_the_way() -> None:
    without = features(33, None)
    verdict = judge(quorum(*with_one(controller(1, registered_features=without))))
    text = "it is registered with features that don't have kraft.version 1"
    assert texts(verdict) == [("controller 1", text)]
    assert commands(verdict) == []


@pytest.mark.parametrize(
    ("level", "command"),
    [
        (33, f"kraft-wire quorum remove 9 --bootstrap-controller {BOOTSTRAP}"),
        (32, f"kraft-wire registrations refresh --id 9 --bootstrap-controller {BOOTSTRAP}"),
    ],
)
def test_the_registration_of_a_controller_that_is_gone_gets_a_command(level: int, command: str) -> None:
    gone = controller(
        9, is_voter=False, fetches=False, problem="refused", registered_features=features(20, None)
    )
    found = quorum(*map(controller, (1, 2, 3)), gone, levels={"metadata.version": level})
    verdict = judge(found)
    assert [node for node, _ in texts(verdict)] == ["controller 9"]
    assert commands(verdict) == [command]


@pytest.mark.parametrize(("level", "is_blocked"), [(15, True), (14, False)])
def test_voters_register_from_metadata_version_15_on(level: int, is_blocked: bool) -> None:
    unregistered = controller(1, is_registered=False, registered_features={})
    verdict = judge(quorum(*with_one(unregistered), levels={"metadata.version": level}))
    assert verdict.is_blocked == is_blocked


def test_an_unknown_registration_is_no_missing_one() -> None:
    unknown = controller(1, is_registered=None, registered_features={})
    assert not judge(quorum(*with_one(unknown))).is_blocked


def test_a_broker_without_kraft_version_is_in_the_way() -> None:
    verdict = judge(quorum(brokers=(broker(11, features=features(20, None)), broker(12))))
    assert texts(verdict) == [("broker 11", "it is Kafka 3.8, and doesn't support kraft.version 1")]
    assert commands(verdict) == []


def test_a_fenced_broker_can_be_unregistered() -> None:
    verdict = judge(quorum(brokers=(broker(11, features={}, is_fenced=True),)))
    text = "it is an unknown release of Kafka, and doesn't support kraft.version 1; it is fenced"
    assert texts(verdict) == [("broker 11", text)]
    assert commands(verdict) == [f"kafka-cluster.sh unregister --bootstrap-controller {BOOTSTRAP} --id 11"]


def test_other_voters_in_a_file_or_in_the_settings_are_in_the_way() -> None:
    two = "1@c1:9093,2@c2:9093"
    in_file = controller(1, file=file(1, properties(1, controller_quorum_voters=two)))
    in_settings = controller(2, settings=properties(2, controller_quorum_voters=two))
    verdict = judge(quorum(in_file, in_settings, controller(3)))
    assert texts(verdict) == [
        (
            "controller 1",
            "its properties file: controller.quorum.voters names 1, 2, the leader's voters are 1, 2, 3",
        ),
        (
            "controller 2",
            "the settings that it runs with: controller.quorum.voters names 1, 2, the leader's voters are "
            "1, 2, 3",
        ),
    ]


def test_the_leader_s_refusal_counts_if_nothing_else_explains_it() -> None:
    refused = "voter 2 hasn't described itself"
    assert texts(judge(quorum(refusal=refused))) == [
        (CLUSTER, f"the leader refuses kraft.version 1: {refused}")
    ]
    explained = quorum(refusal=refused, brokers=(broker(11, features=features(20, None)),))
    assert [node for node, _ in texts(judge(explained))] == ["broker 11"]
    assert not judge(quorum(refusal=None)).is_blocked


def test_a_folder_without_a_directory_id_is_in_the_way() -> None:
    verdict = judge(quorum(*with_one(ours(1, file=file(1, directory_id="")))))
    text = "/data/1/meta.properties has no directory.id: it was formatted before Kafka 3.7"
    assert texts(verdict) == [("controller 1", text)]


@pytest.mark.parametrize(("problem", "kind"), [("refused", "in the way"), ("", "note")])
def test_the_address_that_a_voter_advertises_is_the_one_that_counts_then(problem: str, kind: Any) -> None:
    moved = controller(1, advertised="pod-1:9093", advertised_problem=problem)
    verdict = judge(quorum(*with_one(moved)))
    assert verdict.is_blocked == bool(problem)
    (text,) = [text for node, text in texts(verdict, kind) if node == "controller 1"]
    assert text.startswith(
        "after the upgrade it is reached at pod-1:9093, which it advertises, not at c1:9093"
    )


@pytest.mark.parametrize("why", ["unread", "unreadable"])
def test_without_the_metadata_the_brokers_are_not_known(why: str) -> None:
    changes: dict[str, Any] = {why: "no snapshot", "usage": None}
    verdict = judge(quorum(**changes))
    assert not verdict.is_blocked
    ((node, text),) = texts(verdict, "not known")
    assert (node, text.endswith("can't be read: no snapshot")) == (CLUSTER, True)


# kraft.version 1.


def test_followers_come_first_then_the_leader_then_brokers() -> None:
    nodes = {id: controller(id, is_leader=id == 1) for id in (1, 2, 3)}
    brokers = {11: broker(11), 12: broker(12)}
    order = []
    while (step := judge(upgraded(*nodes.values(), brokers=tuple(brokers.values()))).step) is not None:
        order.append(step.node)
        kind, _, id = step.node.partition(" ")
        if kind == "controller":
            number = int(id)
            nodes[number] = controller(
                number, is_leader=number == 1, settings=dynamic(number), file=file(number, dynamic(number))
            )
        else:
            brokers[int(id)] = broker(int(id), settings={"controller.quorum.bootstrap.servers": BOOTSTRAP})
    assert order == ["controller 2", "controller 3", "controller 1", "broker 11", "broker 12"]


def test_the_step_edits_the_file_and_restarts_the_node() -> None:
    verdict = judge(upgraded())
    assert (verdict.is_blocked, verdict.is_reached) == (False, False)
    assert verdict.step is not None
    assert verdict.step.node == "controller 1"
    assert verdict.step.commands == (
        r"sed -i.before-migration '/^[[:space:]]*controller\.quorum\.voters[[:space:]]*[=:]/d' "
        "/etc/kafka/c1.properties",
        r"printf '\n%s\n' controller.quorum.bootstrap.servers=c1:9093,c2:9093,c3:9093 >> "
        "/etc/kafka/c1.properties",
        "kill 1001  # controller 1; wait until it has ended",
        "kafka-server-start.sh /etc/kafka/c1.properties",
    )


def test_a_file_that_is_right_only_needs_a_restart() -> None:
    """The node still runs with the old one."""
    verdict = judge(upgraded(ours(1, file=file(1, dynamic(1), pid=None)), controller(2), controller(3)))
    assert verdict.step is not None
    assert verdict.step.commands == (
        "# stop controller 1: send SIGTERM to its process, and wait until it has ended",
        "kraft-wire server /etc/kafka/c1.properties",
    )


def test_bootstrap_servers_that_answer_stay() -> None:
    both = properties(1, controller_quorum_bootstrap_servers="lb:9093")
    verdict = judge(
        upgraded(*with_one(controller(1, file=file(1, both))), bootstrap_problems={"lb:9093": ""})
    )
    assert verdict.step is not None
    assert [line.split()[0] for line in verdict.step.commands] == ["sed", "kill", "kafka-server-start.sh"]


def test_bootstrap_servers_that_do_not_answer_are_replaced() -> None:
    wrong = dynamic(1, controller_quorum_bootstrap_servers="old:9093")
    found = upgraded(
        *with_one(controller(1, file=file(1, wrong), settings=wrong)),
        bootstrap_problems={"old:9093": "refused"},
    )
    verdict = judge(found)
    assert verdict.states["controller 1"] == "to do"
    assert verdict.step is not None
    assert any(line.startswith("printf") for line in verdict.step.commands)
    ((node, text),) = texts(verdict, "note")
    assert node == "controller 1"
    assert text.endswith("names old:9093, where no controller of this cluster answers: refused")


def test_without_the_file_the_lines_say_what_to_change() -> None:
    verdict = judge(upgraded(*with_one(controller(1, file=None))))
    assert verdict.step is not None
    assert verdict.step.commands == (
        "# in the properties file of controller 1: remove controller.quorum.voters, and write "
        "controller.quorum.bootstrap.servers=c1:9093,c2:9093,c3:9093",
        "# stop controller 1: send SIGTERM to its process, and wait until it has ended",
        "kafka-server-start.sh FILE  # FILE: the properties file of controller 1",
    )


def test_a_node_that_says_nothing_comes_last_and_is_not_known() -> None:
    silent = controller(1, settings=None, file=None)
    done = [controller(id, settings=dynamic(id), file=None) for id in (2, 3)]
    verdict = judge(upgraded(silent, *done))
    assert verdict.states == {"controller 1": "not known", "controller 2": "done", "controller 3": "done"}
    assert not verdict.is_reached
    assert verdict.step is not None
    assert verdict.step.commands == (
        "# look for controller.quorum.voters in the properties file of controller 1, or give it with "
        "--config",
    )
    assert texts(verdict, "not known") == [
        ("controller 1", "whether it uses controller.quorum.voters: it doesn't tell its settings")
    ]


def test_nodes_that_are_gone_do_not_keep_it_from_being_reached() -> None:
    done = [controller(id, settings=dynamic(id), file=None) for id in (1, 2, 3)]
    gone = controller(9, is_voter=False, fetches=False, problem="refused", settings=None, file=None)
    fenced = broker(11, is_fenced=True, settings=None)
    verdict = judge(upgraded(*done, gone, brokers=(fenced,)))
    assert (verdict.states["controller 9"], verdict.states["broker 11"]) == ("as it is", "as it is")
    assert verdict.is_reached


def test_with_one_voter_a_restart_leaves_no_majority() -> None:
    verdict = judge(upgraded(controller(3)))
    assert not verdict.is_blocked
    assert any("a restart leaves no majority" in text for _, text in texts(verdict, "note"))


@pytest.mark.parametrize("why", ["unread", "unreadable"])
def test_without_the_metadata_brokers_are_not_known_after_the_upgrade(why: str) -> None:
    changes: dict[str, Any] = {why: "no snapshot", "usage": None}
    verdict = judge(upgraded(**changes))
    assert texts(verdict, "not known") == [
        (CLUSTER, "which brokers there are, because the metadata can't be read: no snapshot")
    ]
