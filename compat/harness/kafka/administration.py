"""Administer a cluster with Kafka's tools. ACLs need Java's controller so far."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.eventful_cluster import EventfulCluster
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController
from compat.harness.kafka.tools import until_read
from compat.harness.ports import HOST, free_port
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from kraft_wire.protocol.messages.unregister_controller_response import UnregisterControllerResponse

TOKENS: Final = {"delegation.token.secret.key": "a secret"}
SECURITY: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    **TOKENS,
}
OBSERVER_ID: Final = 199
PLAIN_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LOGIN: Final = f'{PLAIN_LOGIN} username="admin" password="of admin"'
UNREGISTRATION_LEVEL: Final = 33
"""The metadata.version from which controllers can be unregistered."""


def create_and_delete_acls(cluster: EventfulCluster) -> None:
    acl = ("--topic", "orders", "--allow-principal", "User:alice", "--operation", "read")
    cluster.tools.admin("AclCommand", cluster.bootstrap, "--add", *acl)
    cluster.tools.admin("AclCommand", cluster.bootstrap, "--add", "--cluster", *acl[2:4])
    cluster.tools.admin("AclCommand", cluster.bootstrap, "--remove", "--force", *acl)


def create_and_delete_users(cluster: EventfulCluster) -> None:
    for user in ("alice", "bob"):
        scram = "SCRAM-SHA-256=[iterations=4096,password=secret]"
        cluster.configure("users", user, "--add-config", scram)
    cluster.configure("users", "bob", "--delete-config", "SCRAM-SHA-256")


def create_and_delete_quotas(cluster: EventfulCluster) -> None:
    cluster.configure("users", "alice", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    cluster.configure("users", "alice", "--delete-config", "consumer_byte_rate")
    cluster.configure("clients", "", "--add-config", "request_percentage=50")


def change_features(cluster: EventfulCluster) -> None:
    for direction, feature, level in (
        ("downgrade", "transaction.version", 1),
        ("upgrade", "transaction.version", 2),
        ("disable", "eligible.leader.replicas.version", 0),
        ("upgrade", "metadata.version", 31),
        ("downgrade", "metadata.version", 30),
    ):
        change = feature if direction == "disable" else f"{feature}={level}"
        cluster.tools.features(cluster.bootstrap, direction, "--feature", change)


# Delegation tokens, which need authenticated clients.


def add_sasl_listener(cluster: EventfulCluster) -> str:
    """Give broker 1, which isn't started yet, a SASL listener; return its address."""
    broker = cluster.brokers[1]
    address = f"{HOST}:{free_port()}"
    broker.change_properties(
        {
            "listeners": f"PLAINTEXT://{broker.address},SASL://{address}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f'{LOGIN} user_admin="of admin";',
        }
    )
    return address


def create_and_expire_tokens(cluster: EventfulCluster, address: str) -> None:
    client = cluster.workspace.folder / "admin.properties"
    client.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN};\n")

    def tokens(*options: str) -> str:
        return cluster.tools.admin("DelegationTokenCommand", address, "--command-config", client, *options)

    made = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:alice")
    (hmac,) = re.findall(r"[A-Za-z0-9+/]{43,}={0,2}", made)
    tokens("--create", "--max-life-time-period", "-1")
    until_read(lambda: tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac))


# Reassignments.


def reassign(cluster: EventfulCluster, topic: str, replicas: Sequence[int]) -> None:
    """Reassign partition 0 and wait until the reassignment is complete."""
    cluster.tools.admin(
        "reassign.ReassignPartitionsCommand",
        cluster.bootstrap,
        "--execute",
        "--reassignment-json-file",
        _reassignment_file(cluster, topic, replicas),
    )
    wait_for_replicas(cluster, topic, replicas)


def wait_for_replicas(cluster: EventfulCluster, topic: str, replicas: Sequence[int]) -> None:
    """Wait until partition 0 has exactly these replicas."""
    wait_until(
        lambda: broker_metadata.partitions(cluster.brokers[1], topic)[0].replicas == tuple(replicas),
        f"{topic} to be on {replicas}",
    )


def start_reassignment(cluster: EventfulCluster, topic: str, replicas: Sequence[int]) -> None:
    """Start to reassign partition 0 to stopped brokers, which controllers accept and the tool doesn't."""
    partition = ReassignablePartition(partition_index=0, replicas=tuple(replicas))
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, [partition])])
    with WireClient(cluster.brokers[1].port) as client:
        response = client.call(request, 0, AlterPartitionReassignmentsResponse)
    assert response.error_code == ErrorCode.NONE
    assert [one.error_code for found in response.responses for one in found.partitions] == [ErrorCode.NONE]


def cancel_reassignment(cluster: EventfulCluster, topic: str, replicas: Sequence[int]) -> None:
    """Cancel the reassignment to these replicas, but keep the throttles, which every broker would remove."""
    cluster.tools.admin(
        "reassign.ReassignPartitionsCommand",
        cluster.bootstrap,
        "--cancel",
        "--preserve-throttles",
        "--reassignment-json-file",
        _reassignment_file(cluster, topic, replicas),
    )


def _reassignment_file(cluster: EventfulCluster, topic: str, replicas: Sequence[int]) -> Path:
    path = cluster.workspace.folder / "reassignment.json"
    partition = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    path.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    return path


# An observer controller.


def unregister_an_observer(cluster: EventfulCluster) -> None:
    """Register a controller as observer, kill it, and unregister it; no published tool can do that."""
    quorum = cluster.quorum
    observer = JvmController(
        cluster.workspace, OBSERVER_ID, find_jars(NEWEST_KAFKA), quorum.tools, quorum_properties(cluster)
    )
    observer.format(quorum.cluster_id, "--no-initial-controllers")
    observer.start()
    cluster.wait_for_record(
        lambda record: isinstance(record, RegisterControllerRecord) and record.controller_id == OBSERVER_ID,
        "the observer to register",
    )
    observer.kill()
    level = f"metadata.version={UNREGISTRATION_LEVEL}"
    cluster.tools.features(cluster.bootstrap, "upgrade", "--feature", level)
    with WireClient(cluster.controller.port) as client:
        request = UnregisterControllerRequest(controller_id=OBSERVER_ID)
        response = client.call(request, 0, UnregisterControllerResponse)
    assert response.error_code == ErrorCode.NONE, ErrorCode.of(response.error_code).name


def quorum_properties(cluster: EventfulCluster) -> dict[str, str]:
    return {**SECURITY, "controller.quorum.bootstrap.servers": cluster.quorum.address_list}
