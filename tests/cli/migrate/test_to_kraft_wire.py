"""From Java's controllers to ours: what a cluster uses that kraft-wire doesn't have."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.cli.quorum.migrate.facts import CLUSTER, Usage
from kraft_wire.cli.quorum.migrate.to_kraft_wire import judge
from kraft_wire.protocol.messages.create_acls_request import CreateAclsRequest
from kraft_wire.protocol.messages.delete_acls_request import DeleteAclsRequest
from kraft_wire.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.cli.migrate.samples import (
    BOOTSTRAP,
    JAVA_APIS,
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


def test_each_controller_hands_its_folder_over() -> None:
    verdict = judge(quorum())
    assert (verdict.is_blocked, verdict.is_reached) == (False, False)
    assert verdict.step is not None
    assert verdict.step.node == "controller 1"
    assert verdict.step.why == "kraft-wire takes over its folder"
    assert verdict.step.commands == (
        "kill 1001  # controller 1; wait until it has ended",
        "kraft-wire fsck /data/1",
        "kraft-wire server /etc/kafka/c1.properties",
    )
    assert verdict.states == {f"controller {id}": "to do" for id in (1, 2, 3)}


def test_it_is_reached_when_all_are_ours() -> None:
    verdict = judge(quorum(*map(ours, (1, 2, 3)), usage=Usage(tokens=1)))
    assert verdict.is_reached
    assert verdict.findings == ()


def test_paths_are_quoted() -> None:
    odd = controller(1, file=None)
    path = "/etc/my kafka/c1.properties"
    found = file(1, path="/data/my folder")
    odd = controller(1, file=type(found)(path=path, properties=found.properties, folder=found.folder))
    step = judge(quorum(*with_one(odd))).step
    assert step is not None
    assert step.commands[1:] == (
        "kraft-wire fsck '/data/my folder'",
        "kraft-wire server '/etc/my kafka/c1.properties'",
    )


# The cluster.


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ({"metadata.version": 34}, "metadata.version is at level 34, and kraft-wire supports 7 to 33"),
        ({"share.version": 3}, "share.version is at level 3, and kraft-wire supports 0 to 2"),
        ({"new.version": 1}, "new.version is at level 1, and kraft-wire doesn't know this feature"),
    ],
)
def test_levels_that_kraft_wire_does_not_support_are_in_the_way(levels: dict[str, int], text: str) -> None:
    assert texts(judge(quorum(levels=levels))) == [(CLUSTER, text)]


def test_a_kraft_version_that_kraft_wire_does_not_support_is_in_the_way() -> None:
    text = "kraft.version is at level 2, and kraft-wire supports 0 to 1"
    assert texts(judge(quorum(kraft_version=2))) == [(CLUSTER, text)]


def test_metadata_that_kraft_wire_can_not_replay_is_in_the_way() -> None:
    verdict = judge(quorum(unreadable="TopicRecord at offset 5 cannot be applied", usage=None))
    text = "kraft-wire can't read this cluster's metadata: TopicRecord at offset 5 cannot be applied"
    assert texts(verdict) == [(CLUSTER, text)]
    verdict = judge(quorum(unread="timed out", usage=None))
    assert texts(verdict, "not known") == [
        (CLUSTER, "whether kraft-wire can read this cluster's metadata: timed out")
    ]
    assert not verdict.is_blocked


def test_delegation_tokens_need_their_secret_key() -> None:
    verdict = judge(quorum(usage=Usage(tokens=3)))
    assert not verdict.is_blocked
    ((node, found),) = texts(verdict, "note")
    assert node == CLUSTER and found.startswith("delegation tokens: 3; set delegation.token.secret.key")


def test_acls_which_only_can_not_be_changed_are_a_note() -> None:
    verdict = judge(quorum(usage=Usage(acls=1)))
    assert not verdict.is_blocked
    assert [text.partition(";")[0] for _, text in texts(verdict, "note")] == ["ACLs: 1"]


def test_requests_that_are_not_served_are_named() -> None:
    lost = {DeleteAclsRequest.API_KEY, CreateAclsRequest.API_KEY}
    apis = JAVA_APIS | lost | {SaslHandshakeRequest.API_KEY}
    verdict = judge(quorum(*with_one(controller(1, apis=apis))))
    assert texts(verdict, "note") == [
        (
            CLUSTER,
            "while kraft-wire leads, these requests aren't served: CreateAcls, DeleteAcls",
        )
    ]


@pytest.mark.parametrize(
    ("changes", "text", "command"),
    [
        ({"features": features(21)}, "it is Kafka 3.9; kraft-wire serves brokers from Kafka 4.0 on", []),
        (
            {"features": features(21), "is_fenced": True},
            "it is Kafka 3.9; kraft-wire serves brokers from Kafka 4.0 on",
            [f"kafka-cluster.sh unregister --bootstrap-controller {BOOTSTRAP} --id 11"],
        ),
        (
            {"is_from_zookeeper": True},
            "a migration from ZooKeeper registered it, and isn't complete",
            [],
        ),
    ],
)
def test_brokers_that_kraft_wire_does_not_serve_are_in_the_way(
    changes: dict[str, Any], text: str, command: list[str]
) -> None:
    verdict = judge(quorum(brokers=(broker(11, **changes), broker(12, features=features(22)))))
    assert texts(verdict) == [("broker 11", text)]
    assert commands(verdict) == command


# A controller.


@pytest.mark.parametrize(("level", "kind"), [(21, "in the way"), (22, "note"), (30, "note"), (31, None)])
def test_old_controllers_are_in_the_way_and_untested_ones_noted(level: int, kind: Any) -> None:
    verdict = judge(quorum(*with_one(controller(2, features=features(level)))))
    found = {finding.kind for finding in verdict.findings if finding.node == "controller 2"}
    assert found == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"authorizer_class_name": "x.Authorizer"}, "authorizer.class.name is not supported"),
        ({"config_providers": "file"}, "config.providers is not supported"),
        (
            {"process_roles": "broker,controller"},
            "process.roles=broker,controller: kraft-wire is a controller",
        ),
        (
            {"listener_security_protocol_map": "CONTROLLER:SASL_SSL"},
            "listener.security.protocol.map: listener CONTROLLER wants SASL_SSL",
        ),
        ({"controller_quorum_voters": "9@c9:9093"}, "controller.quorum.voters has ids [9]"),
    ],
)
def test_a_file_that_kraft_wire_refuses_is_in_the_way(changes: dict[str, str], problem: str) -> None:
    with_file = controller(2, file=file(2, properties(2, **changes)))
    ((node, text),) = texts(judge(quorum(*with_one(with_file))))
    assert node == "controller 2"
    assert text.startswith(f"kraft-wire doesn't start with its properties file: {problem}")
    without = controller(2, file=None, settings=properties(2, **changes))
    ((node, text),) = texts(judge(quorum(*with_one(without))))
    assert text.startswith(f"kraft-wire doesn't start with the settings that it runs with: {problem}")


def test_the_file_counts_more_than_what_the_node_runs_with() -> None:
    """It is what kraft-wire would start with."""
    mended = controller(2, settings=properties(2, authorizer_class_name="x.Authorizer"))
    assert not judge(quorum(*with_one(mended))).is_blocked


def test_keys_without_effect_are_noted() -> None:
    said = dynamic(2, num_network_threads="3")
    verdict = judge(quorum(*with_one(controller(2, file=file(2, said)))))
    assert texts(verdict, "note") == [
        (
            "controller 2",
            "its properties file: num.network.threads has no effect: kraft-wire doesn't use this Kafka key",
        )
    ]


def test_without_properties_the_registration_tells_what_it_can() -> None:
    unknown = {"file": None, "settings": None}
    secured = controller(1, protocols=("SSL", "PLAINTEXT"), **unknown)
    combined = controller(2, **unknown)
    verdict = judge(quorum(secured, combined, controller(3), brokers=(broker(2),)))
    assert texts(verdict) == [
        ("controller 1", "its listeners use SSL; kraft-wire's can only be PLAINTEXT"),
        ("controller 2", "it is a broker, too; kraft-wire is a controller only"),
    ]


def test_a_damaged_folder_is_in_the_way() -> None:
    verdict = judge(quorum(*with_one(controller(2, file=file(2, damage=("1.log is damaged: x",))))))
    assert texts(verdict) == [("controller 2", "/data/2: 1.log is damaged: x")]
    assert commands(verdict) == ["kraft-wire fsck /data/2"]


def test_folders_that_were_not_looked_at_are_not_known() -> None:
    elsewhere = controller(1, file=file(1, is_here=False, cluster_id="", node_id=-1))
    not_given = controller(2, file=None)
    verdict = judge(quorum(elsewhere, not_given, ours(3, file=None)))
    assert texts(verdict, "not known") == [
        ("controller 1", "/data/1 isn't on this machine"),
        ("controller 2", "its properties file wasn't given, so neither the file nor the folder was checked"),
    ]
    assert commands(verdict, "not known") == ["kraft-wire fsck /data/1"]
    assert not verdict.is_blocked


def test_a_voter_whose_software_is_not_known_is_left_to_be_found_out() -> None:
    hidden = controller(1, software="unknown", problem="timed out", features={}, settings=None)
    verdict = judge(quorum(hidden, ours(2), ours(3)))
    assert verdict.states["controller 1"] == "not known"
    assert texts(verdict, "not known") == [
        ("controller 1", "which software it runs, because it doesn't answer: timed out")
    ]
    assert verdict.step is not None
    assert verdict.step.commands == ("# find out what controller 1 runs",)
    assert not verdict.is_reached


def test_a_registration_that_is_left_is_as_it_is() -> None:
    gone = controller(9, is_voter=False, fetches=False, software="unknown", problem="refused", file=None)
    verdict = judge(quorum(*map(ours, (1, 2, 3)), gone))
    assert verdict.states["controller 9"] == "as it is"
    assert verdict.is_reached
