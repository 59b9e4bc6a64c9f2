"""What kafka-python's KafkaAdminClient can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from compat.harness.waiting import wait_until
from compat.judges.admin_clients.transcript import Transcript
from compat.judges.client_codecs.kafka_python_codec import kafka

NAME = "by-kafka-python"


def administer(addresses: str) -> list[str]:
    said = Transcript(kafka.errors.KafkaError, lambda error: type(error).__name__)
    admin = kafka.KafkaAdminClient(bootstrap_servers=addresses)
    try:
        _topics(admin, said)
        _configs(admin, said)
        _reassignments(admin, said)
        _users(admin, said)
        _features(admin, said)
        _acls(admin, said)
        said.note("delete", lambda: _errors(admin.delete_topics([NAME])))
        wait_until(lambda: NAME not in admin.list_topics(), f"{NAME} to be gone")
        said.note("delete again", lambda: _errors(admin.delete_topics([NAME])))
    finally:
        admin.close()
    return said.lines


def _errors(response: Any) -> list[int]:
    """The client returns some responses as they are, others as a dictionary."""
    fields = response if isinstance(response, dict) else response.to_dict()
    (results,) = (value for value in fields.values() if isinstance(value, list))
    return [result["error_code"] for result in results]


def _topics(admin: Any, said: Transcript) -> None:
    options = {"assignments": {0: [1, 2], 1: [2, 1]}, "configs": {"retention.ms": "3600000"}}
    create = admin.create_topics
    said.note("validate", lambda: _errors(create({NAME: options}, validate_only=True)))
    said.note("create", lambda: _errors(create({NAME: options}, wait_for_metadata=True)))
    said.note("create again", lambda: _errors(create({NAME: options})))
    said.note("no brokers for it", lambda: _errors(create({"wide": {"replication_factor": 3}})))
    said.note("no name", lambda: _errors(create({"not a name": {}})))
    grow = admin.create_partitions
    said.note("grow", lambda: _errors(grow({NAME: {"count": 3, "assignments": [[1, 2]]}})))
    said.note("shrink", lambda: _errors(grow({NAME: 1})))
    wait_until(lambda: len(_partitions(admin)) == 3, f"the brokers to know {NAME}")
    said.lines += [
        f"partition {each['partition_index']}: leader {each['leader_id']}, replicas {each['replica_nodes']}"
        for each in _partitions(admin)
    ]
    cluster = admin.describe_cluster()
    said.lines.append(f"nodes: {sorted(each['broker_id'] for each in cluster['brokers'])}")
    (quorum,) = admin.describe_metadata_quorum()["topics"][0]["partitions"]
    said.lines.append(f"voters: {[voter['replica_id'] for voter in quorum['current_voters']]}")


def _partitions(admin: Any) -> list[Any]:
    (topic,) = admin.describe_topics([NAME])
    return sorted(topic["partitions"], key=lambda each: int(each["partition_index"]))


def _topic(configs: object) -> Any:
    return kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, NAME, configs=configs)


def _configs(admin: Any, said: Transcript) -> None:
    def alter(step: str, configs: object, **options: object) -> None:
        said.note(f"config {step}", lambda: _outcome(admin.alter_configs([_topic(configs)], **options)))

    alter("append", {"cleanup.policy": ("APPEND", "compact")})
    alter("set", {"retention.ms": "5000", "min.insync.replicas": "2"})
    alter("set wrongly", {"retention.ms": "soon"})
    alter("set what isn't there", {"no.such.key": "1"}, raise_on_unknown=False)
    alter("validated", {"retention.ms": "6000"}, validate_only=True)
    wait_until(lambda: "min.insync.replicas" in _described(admin), "the broker to know the config")
    said.lines += [f"{name}={entry['value']}" for name, entry in sorted(_described(admin).items())]
    said.note("config reset", lambda: admin.reset_configs([_topic(["retention.ms"])]))
    alter("replaced", {"flush.ms": "7"}, incremental=False)
    said.note("resources", lambda: admin.list_config_resources(["TOPIC", "BROKER"])["topic"])


def _outcome(altered: dict[str, dict[str, str]]) -> str:
    """The text after the name of an error is the controller's own."""
    return altered["topic"][NAME].partition(":")[0]


def _described(admin: Any) -> Any:
    return admin.describe_configs([_topic(None)], config_filter="modified")["topic"][NAME]


def _reassignments(admin: Any, said: Transcript) -> None:
    first, missing = kafka.TopicPartition(NAME, 0), kafka.TopicPartition(NAME, 9)

    def move(step: str, targets: dict[Any, list[int] | None]) -> None:
        said.note(step, lambda: _names(admin.alter_partition_reassignments(targets)))

    move("move", {first: [2], missing: [1]})
    move("move to nobody", {first: [9]})
    wait_until(lambda: not admin.list_partition_reassignments(), "the move to be done")
    move("nothing to cancel", {first: None})
    wait_until(lambda: _partitions(admin)[0]["replica_nodes"] == [2], "the brokers to know of the move")
    for kind in (0, 1):
        said.note(f"election {kind}", partial(_elected, admin, kind))


def _elected(admin: Any, kind: int) -> list[tuple[int, int]]:
    response = admin.elect_leaders(kind, {NAME: [0, 9]}, raise_errors=False)
    (topic,) = response.replica_election_results
    return sorted((each.partition_id, each.error_code) for each in topic.partition_result)


def _names(outcomes: dict[Any, Any]) -> list[str]:
    return [f"{place.partition} {error and error.__name__}" for place, error in sorted(outcomes.items())]


def _users(admin: Any, said: Transcript) -> None:
    sha_512 = kafka.admin.ScramMechanism.SCRAM_SHA_512
    alter: Callable[[list[Any]], object] = admin.alter_user_scram_credentials
    upsertion = kafka.admin.UserScramCredentialUpsertion
    deletion = kafka.admin.UserScramCredentialDeletion("carl", sha_512)
    said.note("user", lambda: alter([upsertion("carl", sha_512, "secret", iterations=4096)]))
    wait_until(lambda: "carl" in admin.describe_user_scram_credentials(), "the broker to know the user")
    said.note("users", admin.describe_user_scram_credentials)
    said.note("user deleted", lambda: alter([deletion]))
    wait_until(lambda: "carl" not in admin.describe_user_scram_credentials(), "the user to be gone")


def _features(admin: Any, said: Transcript) -> None:
    for name, found in sorted(admin.describe_features().items()):
        said.lines.append(f"{name}: {found['supported']}, finalized {found.get('finalized')}")
    updates = [("group.version", 0), ("group.version", 1), ("no.such.version", 1)]
    for name, level in updates:
        kind = "SAFE_DOWNGRADE" if level == 0 else "UPGRADE"
        said.note(f"{name} to {level}", partial(_updated, admin, {name: (kind, level)}))


def _updated(admin: Any, updates: dict[str, tuple[str, int]]) -> list[str]:
    """Error messages are each controller's own."""
    outcomes = admin.update_features(updates)
    return [f"{name} {'done' if outcome == 'OK' else 'refused'}" for name, outcome in outcomes.items()]


def _acls(admin: Any, said: Transcript) -> None:
    """There is no authorizer. Our controller doesn't serve the APIs that change ACLs yet."""
    pattern = kafka.admin.ResourcePattern(kafka.admin.ResourceType.TOPIC, NAME)
    entry = ("User:ann", "*", kafka.admin.ACLOperation.READ, kafka.admin.ACLPermissionType.ALLOW)
    said.note("describe ACLs", lambda: admin.describe_acls(kafka.admin.ACLFilter(*entry, pattern))[1])
