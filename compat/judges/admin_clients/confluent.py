"""What confluent-kafka's AdminClient (librdkafka) can do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from compat.harness import clients
from compat.harness.waiting import wait_until
from compat.judges.admin_clients.transcript import Transcript

NAME = "by-confluent"
PATIENCE_S = 30
TOPIC = ConfigResource(ConfigResource.Type.TOPIC, NAME)
BROKER = ConfigResource(ConfigResource.Type.BROKER, "1")


def administer(addresses: str) -> list[str]:
    admin: AdminClient = clients.admin(addresses)
    said = Transcript(KafkaException, lambda error: str(error.args[0].name()))
    _topics(admin, said)
    _configs(admin, said)
    _leaders(admin, said)
    _users(admin, said)
    _acls(admin, said)
    said.note("delete", _result(admin.delete_topics([NAME])))
    wait_until(lambda: NAME not in admin.list_topics(timeout=PATIENCE_S).topics, f"{NAME} to be gone")
    said.note("delete again", _result(admin.delete_topics([NAME])))
    return said.lines


def _result(futures: Mapping[Any, Future[Any]]) -> Callable[[], Any]:
    """Return a function that waits for the only one of these."""
    (future,) = futures.values()
    return lambda: future.result(PATIENCE_S)


def _topics(admin: AdminClient, said: Transcript) -> None:
    topic = NewTopic(NAME, 2, replica_assignment=[[1, 2], [2, 1]], config={"retention.ms": "3600000"})
    said.note("validate", _result(admin.create_topics([topic], validate_only=True)))
    said.note("create", _result(admin.create_topics([topic])))
    said.note("create again", _result(admin.create_topics([topic])))
    said.note("no brokers for it", _result(admin.create_topics([NewTopic("wide", 1, 3)])))
    said.note("no name", _result(admin.create_topics([NewTopic("not a name", 1, 1)])))
    more = NewPartitions(NAME, 3, replica_assignment=[[1, 2]])
    said.note("grow", _result(admin.create_partitions([more])))
    said.note("shrink", _result(admin.create_partitions([NewPartitions(NAME, 1)])))
    wait_until(lambda: len(_partitions(admin)) == 3, f"the brokers to know {NAME}")
    described = admin.describe_topics(TopicCollection([NAME]))[NAME].result(PATIENCE_S)
    said.lines += [
        f"partition {each.id}: leader {each.leader.id}, replicas {[node.id for node in each.replicas]}"
        for each in described.partitions
    ]
    cluster = admin.describe_cluster().result(PATIENCE_S)
    said.lines.append(f"nodes: {sorted(node.id for node in cluster.nodes)}")


def _partitions(admin: AdminClient) -> Mapping[int, Any]:
    found: Mapping[int, Any] = admin.list_topics(NAME, timeout=PATIENCE_S).topics[NAME].partitions
    return found


def _configs(admin: AdminClient, said: Transcript) -> None:
    policy, retention = "cleanup.policy", "retention.ms"
    changes: list[tuple[str, list[tuple[str, str | None, AlterConfigOpType]]]] = [
        ("append", [(policy, "compact", AlterConfigOpType.APPEND)]),
        ("set", [(retention, "5000", AlterConfigOpType.SET)]),
        ("set wrongly", [(retention, "soon", AlterConfigOpType.SET)]),
        ("set what isn't there", [("no.such.key", "1", AlterConfigOpType.SET)]),
        ("delete", [(retention, None, AlterConfigOpType.DELETE)]),
    ]
    for step, entries in changes:
        resource = ConfigResource(
            ConfigResource.Type.TOPIC,
            NAME,
            incremental_configs=[ConfigEntry(k, v, incremental_operation=op) for k, v, op in entries],
        )
        said.note(f"config {step}", _result(admin.incremental_alter_configs([resource])))
    whole = ConfigResource(ConfigResource.Type.TOPIC, NAME, set_config={"min.insync.replicas": "2"})
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        said.note("config replaced", _result(admin.alter_configs([whole])))
    wait_until(
        lambda: _described(admin, TOPIC)["min.insync.replicas"].value == "2", "the broker to know the config"
    )
    said.lines += [
        f"{name}={entry.value} from {entry.source}"
        for name, entry in sorted(_described(admin, TOPIC).items())
    ]
    backoff = ConfigResource(
        ConfigResource.Type.BROKER,
        "1",
        incremental_configs=[
            ConfigEntry("log.cleaner.backoff.ms", "14000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    said.note("config of a broker", _result(admin.incremental_alter_configs([backoff])))
    wait_until(
        lambda: _described(admin, BROKER)["log.cleaner.backoff.ms"].value == "14000", "the broker to take it"
    )


def _described(admin: AdminClient, resource: ConfigResource) -> Mapping[str, ConfigEntry]:
    described: Mapping[str, ConfigEntry] = _result(admin.describe_configs([resource]))()
    return described


def _leaders(admin: AdminClient, said: Transcript) -> None:
    partitions = [TopicPartition(NAME, 0), TopicPartition(NAME, 7)]
    for kind in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        elected = admin.elect_leaders(kind, partitions).result(PATIENCE_S)
        said.lines += [
            f"{kind.name} election of {each.partition}: {error and error.name()}"
            for each, error in sorted(elected.items())
        ]


def _users(admin: AdminClient, said: Transcript) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    few = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 10)
    alter = admin.alter_user_scram_credentials
    said.note("user", _result(alter([UserScramCredentialUpsertion("ann", info, b"secret", b"salt")])))
    said.note("too few rounds", _result(alter([UserScramCredentialUpsertion("bob", few, b"secret")])))
    wait_until(lambda: _users_of(admin), "the broker to know the user")
    said.lines.append(f"users: {_users_of(admin)}")
    nobody: Any = admin.describe_user_scram_credentials(["nobody"])
    said.note("nobody", _result(nobody))
    deletion = UserScramCredentialDeletion("ann", ScramMechanism.SCRAM_SHA_256)
    said.note("user deleted", _result(alter([deletion])))
    said.note("user deleted again", _result(alter([deletion])))


def _users_of(admin: AdminClient) -> list[str]:
    everybody: Any = admin.describe_user_scram_credentials()
    found = everybody.result(PATIENCE_S)
    return [
        f"{name} {info.mechanism.name} {info.iterations}"
        for name, description in sorted(found.items())
        for info in description.scram_credential_infos
    ]


def _acls(admin: AdminClient, said: Transcript) -> None:
    """There is no authorizer. Our controller doesn't serve the APIs that change ACLs yet."""
    place = (ResourceType.TOPIC, NAME, ResourcePatternType.LITERAL, "User:ann", "*")
    what = (AclOperation.READ, AclPermissionType.ALLOW)
    matching = AclBindingFilter(*place, *what)
    said.note("describe ACLs", lambda: admin.describe_acls(matching).result(PATIENCE_S))
