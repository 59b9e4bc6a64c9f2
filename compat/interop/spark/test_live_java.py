"""Reading Java's controllers over the wire, with every security protocol, gives the records on their
disks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import random_cluster_id
from compat.harness.kafka.config_writes import FIRST_VALUE, NAME, write, write_to_quorum
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController
from compat.harness.kafka.quorum import ControllerQuorum, Voters, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import snapshots
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from kraft_wire.client.errors import AuthenticationFailed, NotAuthorized, QuorumUnreachable
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraft_wire.protocol.messages.create_acls_response import CreateAclsResponse
from tests.support.certificates import Authority
from tests.support.spark_readers import Row, Stream, batch

BOOTSTRAP = "bootstrap.controllers"
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "4000"}


def live(address: str, **options: str) -> list[Row]:
    return batch(None, **{BOOTSTRAP: address}, **options)


def position(address: str, start: str) -> str:
    """Return the offset at which a stream would start."""
    stream = Stream(None, **{BOOTSTRAP: address, "startingOffsets": start})
    stream.stop()
    return json.dumps(stream.position)


def on_disk(folder: Path, start: str, end: str) -> list[Row]:
    """Return the rows in a folder, marked as committed: a folder can't tell that its last records are."""
    rows = batch(folder, startingOffsets=start, endingOffsets=end)
    return [{**row, "committed": True} for row in rows]


def values(rows: list[Row]) -> list[int]:
    """Return the values of the configs that were written."""
    configs = [json.loads(row["json"]) for row in rows if row["type"] == "ConfigRecord"]
    return [int(config["value"]) - FIRST_VALUE for config in configs if config["name"] == NAME]


def has_snapshots(folder: Path) -> bool:
    return len(snapshots(folder)) > 2


# The versions, one controller each.


@pytest.mark.parametrize("version", ["4.4.0", "4.3.1", "4.0.2"])
def test_a_controller_of_each_version_serves_its_log_and_its_snapshots(
    workspace: Workspace, tool_server: ToolServer, version: str
) -> None:
    controller = JvmController(workspace, 100, find_jars(version), tool_server, SNAPSHOTS)
    controller.format(random_cluster_id(), "--standalone")
    controller.start()
    controller.wait_until_ready()
    write(controller, range(60))
    wait_until(lambda: has_snapshots(controller.data_folder), "snapshots")
    end = position(controller.address, "latest")
    for start in (position(controller.address, "earliest"), position(controller.address, "snapshot")):
        rows = live(controller.address, startingOffsets=start, endingOffsets=end)
        assert rows == on_disk(controller.data_folder, start, end)
        assert rows[0]["in_snapshot"] == ("snapshot" in start)
    assert values(live(controller.address)) == list(range(60))


# A quorum.


@pytest.mark.parametrize("voters", ["dynamic", "static"])
def test_a_stream_follows_a_quorum_through_failovers(
    workspace: Workspace, tool_server: ToolServer, voters: Voters
) -> None:
    quorum = ControllerQuorum(workspace, tool_server, ["java", "java", "java"], voters, SNAPSHOTS)
    quorum.format()
    quorum.start()
    first = quorum.leader()
    stream = Stream(None, **{BOOTSTRAP: quorum.address_list, "startingOffsets": "earliest"})
    try:
        write_to_quorum(quorum, range(40))
        stream.trigger()
        first.kill()
        write_to_quorum(quorum, range(40, 80))
        stream.trigger()
        first.start()
        stream.restart()
        quorum.leader()
        write_to_quorum(quorum, range(80, 90))
        stream.trigger()
    finally:
        stream.stop()
    offsets = [row["offset"] for row in stream.rows]
    # Once there is a snapshot, Java's leaders serve offset 0 only together with others.
    first_offset = 0 if voters == "dynamic" else offsets[0]
    assert first_offset <= 1
    assert offsets == list(range(first_offset, offsets[-1] + 1))
    assert values(stream.rows) == list(range(90))
    wait_until(lambda: has_snapshots(quorum.leader().data_folder), "snapshots")
    start, end = position(quorum.address_list, "snapshot"), position(quorum.address_list, "latest")
    rows = live(quorum.address_list, startingOffsets=start, endingOffsets=end)
    assert rows == on_disk(quorum.leader().data_folder, start, end)
    again = live(quorum.address_list, endingOffsets=json.dumps(stream.position))
    assert again == (stream.rows if voters == "dynamic" else [row for row in stream.rows if row["offset"]])


# Security.


PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD = 'reader"s; secret'


class SecureController:
    """A Java controller with a plain listener for controllers, and one listener for every other protocol."""

    def __init__(self, workspace: Workspace, tools: ToolServer) -> None:
        self.authority = Authority()
        self.folder = workspace.folder
        self.addresses = {protocol: f"{HOST}:{free_port()}" for protocol in PROTOCOLS}
        port = free_port()
        self.node = JvmController(
            workspace, 100, find_jars("4.4.0"), tools, self._properties(f"{HOST}:{port}"), port
        )
        scram = [f"{mechanism}=[name=reader,password={PASSWORD}]" for mechanism in MECHANISMS[1:]]
        adding = [option for each in scram for option in ("--add-scram", each)]
        self.cluster_id = random_cluster_id()
        self.node.format(self.cluster_id, "--standalone", *adding)
        self.node.start()
        self.node.wait_until_ready()
        write(self.node, range(5))
        _let_fetch(self.node, "User:fetcher")

    def _properties(self, own: str) -> dict[str, str]:
        authority = self.folder / "authority.pem"
        authority.write_text(self.authority.pem)
        identity = self.authority.issue("controller").write_pem(self.folder / "controller.pem")
        names = {protocol: protocol.replace("_", "") for protocol in PROTOCOLS}
        listeners = [f"CONTROLLER://{own}", *(f"{names[p]}://{self.addresses[p]}" for p in PROTOCOLS)]
        return {
            "listeners": ",".join(listeners),
            "controller.listener.names": ",".join(["CONTROLLER", *names.values()]),
            "listener.security.protocol.map": ",".join(
                ["CONTROLLER:PLAINTEXT", *(f"{name}:{protocol}" for protocol, name in names.items())]
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority),
            f"listener.name.{names['SSL'].lower()}.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            **self._jaas(names["SASL_PLAINTEXT"].lower()),
            **self._jaas(names["SASL_SSL"].lower()),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:reader;User:CN=reader",
        }

    def _jaas(self, listener: str) -> dict[str, str]:
        quoted = PASSWORD.replace('"', '\\"')
        users = f'user_reader="{quoted}" user_stranger="{quoted}" user_fetcher="{quoted}"'
        return {
            f"listener.name.{listener}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
            f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            f"listener.name.{listener}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        }

    def trusting(self) -> dict[str, str]:
        return {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": self.authority.pem,
        }


def _let_fetch(controller: JvmController, principal: str) -> None:
    """Allow a user ClusterAction on the cluster, and nothing else."""
    acl = AclCreation(
        resource_type=4,
        resource_name="kafka-cluster",
        resource_pattern_type=3,
        principal=principal,
        host="*",
        operation=9,
        permission_type=3,
    )
    with connect(controller) as client:
        (result,) = client.call(CreateAclsRequest(creations=[acl]), 3, CreateAclsResponse).results
    assert result.error_code == ErrorCode.NONE, result.error_message


@pytest.fixture(scope="module")
def secure(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureController]:
    for workspace in make_workspace(tmp_path_factory.mktemp("secure")):
        yield SecureController(workspace, tool_server)


def _sasl(
    protocol: str, mechanism: str, username: str = "reader", password: str = PASSWORD
) -> dict[str, str]:
    return {
        "kafka.security.protocol": protocol,
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.username": username,
        "kafka.sasl.password": password,
    }


def test_tls_with_a_certificate_of_our_own(secure: SecureController, tmp_path: Path) -> None:
    own = secure.authority.issue("reader").write_pkcs12(tmp_path / "own.p12", PASSWORD)
    options = {
        "kafka.security.protocol": "SSL",
        **secure.trusting(),
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": str(own),
        "kafka.ssl.keystore.password": PASSWORD,
    }
    assert values(live(secure.addresses["SSL"], **options)) == list(range(5))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_by_name_and_password(secure: SecureController, mechanism: str) -> None:
    options = _sasl("SASL_PLAINTEXT", mechanism)
    assert values(live(secure.addresses["SASL_PLAINTEXT"], **options)) == list(range(5))


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN_MODULE), ("SCRAM-SHA-512", SCRAM_MODULE)])
def test_sasl_over_tls_by_javas_line(secure: SecureController, mechanism: str, module: str) -> None:
    quoted = PASSWORD.replace('"', '\\"')
    options = {
        "kafka.security.protocol": "SASL_SSL",
        **secure.trusting(),
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f'{module} required username="reader" password="{quoted}";',
    }
    assert values(live(secure.addresses["SASL_SSL"], **options)) == list(range(5))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_at_once_and_shown_to_nobody(
    secure: SecureController, mechanism: str
) -> None:
    options = _sasl("SASL_PLAINTEXT", mechanism, password="hunter-2")
    address = secure.addresses["SASL_PLAINTEXT"]
    with pytest.raises(
        AuthenticationFailed, match=f"{address}: user reader was rejected: Authentication"
    ) as error:
        live(address, **options)
    assert "hunter-2" not in str(error.value)


def test_a_listener_without_sasl_is_an_error_that_says_so(secure: SecureController) -> None:
    options = {**_sasl("SASL_SSL", "PLAIN"), **secure.trusting()}
    own = secure.authority.issue("reader")
    keys = {
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.key": own.key_pem(),
        "kafka.ssl.keystore.certificate.chain": own.chain_pem,
    }
    with pytest.raises(AuthenticationFailed, match="ILLEGAL_SASL_STATE: SASL mechanism PLAIN was refused"):
        live(secure.addresses["SSL"], **options, **keys)


def test_who_may_not_read_is_told_what_it_takes(secure: SecureController) -> None:
    address = secure.addresses["SASL_PLAINTEXT"]
    with pytest.raises(NotAuthorized, match=f"{address}: CLUSTER_AUTHORIZATION_FAILED: this client's"):
        live(address, **_sasl("SASL_PLAINTEXT", "PLAIN", "stranger"))


def test_who_may_fetch_only_says_which_cluster_it_is(secure: SecureController) -> None:
    address = secure.addresses["SASL_PLAINTEXT"]
    options = _sasl("SASL_PLAINTEXT", "PLAIN", "fetcher")
    rows = live(address, **options, **{"cluster.id": secure.cluster_id})
    assert values(rows) == list(range(5))
    with pytest.raises(NotAuthorized, match=r"Alter to ask for the cluster's id \(or set option"):
        live(address, **options)


def test_without_a_certificate_of_our_own_a_listener_that_wants_one_says_so(secure: SecureController) -> None:
    options = {"kafka.security.protocol": "SSL", **secure.trusting(), "default.api.timeout.ms": "3000"}
    with pytest.raises((AuthenticationFailed, QuorumUnreachable)) as error:
        live(secure.addresses["SSL"], **options)
    assert secure.addresses["SSL"] in str(error.value)
    assert "kafka.s" in str(error.value)


@pytest.mark.parametrize(("listener", "protocol"), [("SSL", "PLAINTEXT"), ("SASL_PLAINTEXT", "PLAINTEXT")])
def test_the_wrong_protocol_is_what_the_error_asks_about(
    secure: SecureController, listener: str, protocol: str
) -> None:
    address = secure.addresses[listener]
    with pytest.raises(QuorumUnreachable, match=f"that their listeners use {protocol}") as error:
        live(address, **{"default.api.timeout.ms": "2000"})
    assert list(error.value.problems) == [address]
