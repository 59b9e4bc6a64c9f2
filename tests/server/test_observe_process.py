"""`kraft-wire observe` beside three controllers, as processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.log.files import parse_meta_properties
from kraft_wire.metadata.canonical import canonical
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import add_raft_voter_request
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from tests.support.controller_process import CLUSTER_ID, COMMAND, Client, ObserverProcess
from tests.support.folder_state import state_at
from tests.support.http_client import http_get
from tests.support.live_quorum import (
    TRIMMED,
    Controllers,
    batches_on_disk,
    read,
    settings,
    snapshots_on_disk,
    static_controller,
    three_controllers,
)
from tests.support.waiting import wait_until


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    (tmp_path / "quorum").mkdir()
    with three_controllers(tmp_path / "quorum") as running:
        yield running


def bootstrap_of(controllers: Controllers) -> str:
    return ",".join(controllers.addresses.values())


def node_id_of(observer: ObserverProcess) -> int:
    node_id: int = observer.wait_for("observer starts")["node_id"]
    return node_id


def described(bootstrap: str) -> QuorumDescription:
    with QuorumClient(settings(*bootstrap.split(","))) as quorum:
        return quorum.describe_quorum()


def wait_until_it_has_all(observer: ObserverProcess, bootstrap: str) -> int:
    """Return the high watermark that the observer's log reaches."""
    node_id = node_id_of(observer)
    reached: list[int] = []

    def has_all() -> bool:
        quorum = described(bootstrap)
        assert node_id not in [voter.id for voter in quorum.voters]
        end_offset = {replica.id: replica.log_end_offset for replica in quorum.observers}.get(node_id)
        reached[:] = [quorum.high_watermark]
        return end_offset == quorum.high_watermark

    wait_until(has_all, "the observer to have the whole log")
    return reached[0]


def check_state(observer: ObserverProcess, controllers: Controllers, end_offset: int) -> None:
    leader = controllers.folder(controllers.leader())
    assert canonical(state_at(observer.data, end_offset)) == canonical(state_at(leader, end_offset))


def test_it_follows_a_failover_and_a_restart_and_begins_again_on_a_wiped_folder(
    controllers: Controllers, tmp_path: Path
) -> None:
    bootstrap, data = bootstrap_of(controllers), tmp_path / "observer"
    controllers.write(range(3))
    with ObserverProcess(data, bootstrap) as observer:
        node_id = node_id_of(observer)
        properties = parse_meta_properties((data / "meta.properties").read_text())
        assert (properties.cluster_id, properties.node_id) == (CLUSTER_ID, node_id)
        assert node_id >= 1_000_000_000
        check_state(observer, controllers, wait_until_it_has_all(observer, bootstrap))
        controllers.kill(lost := controllers.leader())
        controllers.write(range(3, 6))
        check_state(observer, controllers, wait_until_it_has_all(observer, bootstrap))
        assert observer.terminate() == 0
    controllers.start_one(lost)
    controllers.write(range(6, 9))
    with ObserverProcess(data, bootstrap) as observer:
        assert node_id_of(observer) == node_id
        check_state(observer, controllers, wait_until_it_has_all(observer, bootstrap))
        observer.kill()
    rmtree(data)
    with ObserverProcess(data, bootstrap) as observer:
        assert node_id_of(observer) != node_id
        check_state(observer, controllers, wait_until_it_has_all(observer, bootstrap))
        wait_until(lambda: http_get(observer, "/readyz").status == 200, "the observer to be ready")


def test_it_installs_a_snapshot_and_then_makes_and_trims_its_own(
    controllers: Controllers, tmp_path: Path
) -> None:
    for id in (1, 2, 3):
        controllers.kill(id)
    controllers.configure(TRIMMED)
    controllers.start()
    controllers.write(range(150))
    leader = controllers.processes[controllers.leader()]
    wait_until(lambda: batches_on_disk(leader)[0].header.base_offset > 0, "the leader to trim its log")
    bootstrap = bootstrap_of(controllers)
    file = tmp_path / "observer.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in TRIMMED.items()))
    with ObserverProcess(tmp_path / "observer", bootstrap, "--config", str(file)) as observer:
        installed = observer.wait_for("snapshot installed")["end_offset"]
        controllers.write(range(150, 300))
        end_offset = wait_until_it_has_all(observer, bootstrap)
        check_state(observer, controllers, end_offset)
        wait_until(
            lambda: snapshots_on_disk(observer)[0].end_offset > installed, "the observer to trim its log"
        )
        assert sum(len(batch.data) for batch in batches_on_disk(observer)) < 20_000


def test_readers_read_from_it_while_no_controller_runs(controllers: Controllers, tmp_path: Path) -> None:
    bootstrap = bootstrap_of(controllers)
    controllers.write(range(40))
    with ObserverProcess(tmp_path / "observer", bootstrap) as observer:
        end_offset = wait_until_it_has_all(observer, bootstrap)
        wait_until(lambda: bool(snapshots_on_disk(observer)), "the observer to write a snapshot")
        for id in (1, 2, 3):
            controllers.kill(id)
        with QuorumClient(settings(observer.address)) as quorum:
            log = LiveLog(quorum)
            ends = log.ends()
            assert ends.high_watermark >= end_offset
            on_disk = b"".join(batch.data for batch in batches_on_disk(observer))
            assert on_disk.startswith(read(log, ends.log_start_offset, ends.high_watermark))
            assert ends.newest_snapshot is not None
            assert b"".join(snapshot_batches(quorum, ends.newest_snapshot))
            assert str(quorum.answered_by) == observer.address
        assert observer.terminate() == 0
    with (
        ObserverProcess(tmp_path / "observer", bootstrap) as observer,
        QuorumClient(settings(observer.address)) as quorum,
    ):
        assert LiveLog(quorum).ends().high_watermark >= end_offset


def test_consumers_see_it_alone_and_writers_are_sent_away(controllers: Controllers, tmp_path: Path) -> None:
    bootstrap = bootstrap_of(controllers)
    with ObserverProcess(tmp_path / "observer", bootstrap, "--node-id", "77") as observer:
        wait_until_it_has_all(observer, bootstrap)
        host, port = observer.address.split(":")
        with Client(host, int(port)) as client:
            response = client.call(MetadataRequest(topics=None), 9, MetadataResponse)
            assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(77, host, int(port))]
            (partition,) = response.topics[0].partitions
            assert (partition.error_code, partition.leader_id) == (0, 77)
            request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)
            refused = client.call(request, 0, AllocateProducerIdsResponse)
            assert refused.error_code == ErrorCode.NOT_CONTROLLER
        state = state_at(observer.data, wait_until_it_has_all(observer, bootstrap))
        assert set(state.controllers) == {1, 2, 3}


def test_it_cannot_be_made_a_voter(controllers: Controllers, tmp_path: Path) -> None:
    bootstrap = bootstrap_of(controllers)
    with ObserverProcess(tmp_path / "observer", bootstrap, "--node-id", "4") as observer:
        wait_until_it_has_all(observer, bootstrap)
        host, port = observer.address.split(":")
        directory_id = parse_meta_properties((observer.data / "meta.properties").read_text()).directory_id
        assert directory_id is not None
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=10_000,
            voter_id=4,
            voter_directory_id=directory_id,
            listeners=[add_raft_voter_request.Listener(name="CONTROLLER", host=host, port=int(port))],
        )
        leader_host, leader_port = controllers.addresses[controllers.leader()].split(":")
        with Client(leader_host, int(leader_port)) as client:
            response = client.call(request, 1, AddRaftVoterResponse)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert "is no controller" in (response.error_message or "")
        assert [voter.id for voter in described(bootstrap).voters] == [1, 2, 3]


def test_it_observes_static_voters(tmp_path: Path) -> None:
    (tmp_path / "controller").mkdir()
    with static_controller(tmp_path / "controller") as (controller, address):
        controller.wait_for("active controller")
        with ObserverProcess(tmp_path / "observer", address) as observer:
            end_offset = wait_until_it_has_all(observer, address)
            state = state_at(observer.data, end_offset)
            assert canonical(state) == canonical(state_at(controller.data, end_offset))
            assert observer.terminate() == 0
        with ObserverProcess(tmp_path / "observer", address) as observer:
            wait_until_it_has_all(observer, address)


# Refusals.


def refused(*words: str) -> str:
    """Run a command that ends with an error, and return what it says."""
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 2)
    return done.stderr


def test_folders_of_other_roles_and_clusters_are_refused(controllers: Controllers, tmp_path: Path) -> None:
    bootstrap, data = bootstrap_of(controllers), tmp_path / "observer"
    with ObserverProcess(data, bootstrap) as observer:
        node_id = node_id_of(observer)
        observer.wait_for("listening")
        assert observer.terminate() == 0
    observe = ("observe", "--bootstrap", bootstrap, "--listener", "127.0.0.1:0")
    text = refused(*observe, "--dir", str(controllers.folder(1)))
    assert "the folder is that of a controller or broker" in text
    text = refused(*observe, "--dir", str(tmp_path / "other"), "--node-id", "2")
    assert "--node-id 2 is the id of another node of the cluster" in text
    assert not (tmp_path / "other").exists()
    text = refused(*observe, "--dir", str(data), "--node-id", "5")
    assert f"is the folder of observer {node_id}" in text
    text = refused(*observe, "--dir", str(data), "--cluster-id", "another")
    assert f"{data} holds the log of cluster {CLUSTER_ID}, --cluster-id says another" in text
    meta = data / "meta.properties"
    lines = meta.read_text().replace(CLUSTER_ID, "abcdefghijklmnopqrstuA").splitlines()
    meta.write_text("\n".join(line for line in lines if not line.startswith("#")))
    text = refused(*observe, "--dir", str(data))
    assert "holds the log of cluster abcdefghijklmnopqrstuA" in text
    file = tmp_path / "server.properties"
    file.write_text(
        f"process.roles=controller\nnode.id={node_id}\nlisteners=CONTROLLER://127.0.0.1:0\n"
        f"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers={bootstrap}\n"
        f"log.dirs={data}\n"
    )
    assert "that of an observer, which never votes" in refused("server", str(file))


def test_a_first_start_without_controllers_says_what_it_needs(tmp_path: Path) -> None:
    text = refused("observe", "--bootstrap", "nowhere", "--dir", str(tmp_path / "observer"))
    assert "--bootstrap: 'nowhere' isn't host:port" in text
    assert not (tmp_path / "observer").exists()
