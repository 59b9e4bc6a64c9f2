"""Prometheus sets off each alarm at a real fault, and ends it when the fault is over."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compat.conftest import make_workspace
from compat.harness.chaos.arena import scratch_in_memory
from compat.harness.kafka.nodes import Place
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect, directory_id
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.prometheus import RULES, alarm_names, find_program, pause_between_scrapes
from compat.harness.waiting import wait_until
from compat.interop.monitoring.watched import Site, paused, wait_for_child, write
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid
from tests.support.power_disk import PowerDisk

COVERED: set[str] = set()


@pytest.fixture(scope="module")
def site(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for workspace in make_workspace(tmp_path_factory.mktemp("monitoring")):
        yield Site(workspace, tool_server)


def sets_off(*alarms: str) -> Callable[[Callable[..., None]], Any]:
    """Let a test set off these alarms."""
    COVERED.update(alarms)
    return pytest.mark.parametrize("alarms", [alarms], ids=["-".join(alarms)])


Alarms = tuple[str, ...]


def test_prometheus_reads_the_rules() -> None:
    done = subprocess.run(
        [find_program("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alarm_names())} rules found" in done.stdout


# Who leads.


@sets_off("KraftWireNoLeader", "KraftWireNotReady")
def test_two_of_three_controllers_are_paused(site: Site, alarms: Alarms) -> None:
    with site.led("leaderless") as quorum:
        with paused(quorum.leader(), quorum.followers()[0]):
            site.prometheus.wait_for("leaderless", *alarms)
        site.prometheus.wait_until_over("leaderless", *alarms)


@sets_off("KraftWireSeveralActive")
def test_two_quorums_are_in_one_job(site: Site, alarms: Alarms) -> None:
    with site.led("twice", 1):
        with site.led("twice", 1):
            site.prometheus.wait_for("twice", *alarms)
        site.prometheus.wait_until_over("twice", *alarms)


@sets_off("KraftWireVoterSilent", "KraftWireNoFailureLeft")
def test_one_of_three_controllers_is_killed(site: Site, alarms: Alarms) -> None:
    with site.led("silent") as quorum:
        follower = quorum.followers()[0]
        follower.kill()
        site.prometheus.wait_for("silent", *alarms)
        follower.start()
        site.prometheus.wait_until_over("silent", *alarms)


@sets_off("KraftWireLeaderChangesOften")
def test_one_leader_after_the_other_is_paused(site: Site, alarms: Alarms) -> None:
    with site.led("restless") as quorum:
        while not site.is_set_off("restless", *alarms):
            leader = quorum.leader()
            with paused(leader):
                wait_until(partial(_leader_besides, quorum, leader), "another leader")
            pause_between_scrapes()
        site.prometheus.wait_until_over("restless", *alarms)


@sets_off("KraftWireRestartLoop")
def test_a_controller_is_killed_again_and_again(site: Site, alarms: Alarms) -> None:
    with site.led("restarted") as quorum:
        follower = quorum.followers()[0]
        for _ in range(4):
            follower.kill()
            follower.start()
            follower.running_process.wait_for_log("serving metrics and health")
            pause_between_scrapes()
        site.prometheus.wait_for("restarted", *alarms)
        site.prometheus.wait_until_over("restarted", *alarms)


# What waits.

PATIENT = {"controller.quorum.fetch.timeout.ms": "60000", "controller.quorum.request.timeout.ms": "60000"}
"""A leader that hears nobody leads on for a while."""


@sets_off("KraftWireHighWatermarkStalls", "KraftWireVoterChangeHangs")
def test_a_majority_is_paused_while_a_voter_is_removed(site: Site, alarms: Alarms) -> None:
    with site.led("stalled", properties=PATIENT) as quorum:
        leader, followers = quorum.leader(), quorum.followers()
        removed = followers[0].node_id
        request = RemoveRaftVoterRequest(quorum.cluster_id, removed, Uuid.parse(directory_id(removed)))
        with connect(leader) as client:
            with paused(*followers):
                client.send(request, 0)
                site.prometheus.wait_for("stalled", *alarms)
            assert client.receive(RemoveRaftVoterResponse).error_code == ErrorCode.NONE
        site.prometheus.wait_until_over("stalled", *alarms)


@sets_off("KraftWireVoterLags")
def test_a_follower_is_paused_while_others_write(site: Site, alarms: Alarms) -> None:
    with site.led("lagging", properties=PATIENT) as quorum:
        with paused(quorum.followers()[0]):
            write(quorum.leader(), 1_200)
            site.prometheus.wait_for("lagging", *alarms)
        site.prometheus.wait_until_over("lagging", *alarms)


@sets_off("KraftWireFlushHangs", "KraftWireFlushSlow")
def test_flushes_take_seconds(site: Site, alarms: Alarms) -> None:
    hangs, slow = alarms
    with site.led("flushing", 1) as quorum:
        (controller,) = quorum.running
        calls = "fsync,fdatasync"
        slowing = ["-e", f"trace={calls}", "-e", f"inject={calls}:delay_enter=7000000"]
        attaching = ["strace", "-f", "-p", str(controller.running_process.pid), "-o", "/dev/null"]
        tracer = quorum.workspace.start("strace", [*attaching, *slowing])
        site.prometheus.wait_for("flushing", hangs)
        tracer.send_signal(signal.SIGINT)
        site.prometheus.wait_for("flushing", slow)
        site.prometheus.wait_until_over("flushing", *alarms)


@sets_off("KraftWireStepSlow")
def test_a_busy_controller_is_paused_again_and_again(site: Site, alarms: Alarms) -> None:
    with site.led("slow", 1) as quorum, ThreadPoolExecutor(1) as threads:
        (controller,) = quorum.running
        writing = threads.submit(write, controller, 4_000)
        while not writing.done():
            with paused(controller):
                time.sleep(0.08)
            time.sleep(0.02)
        writing.result()
        site.prometheus.wait_for("slow", *alarms)
        site.prometheus.wait_until_over("slow", *alarms)


# Disks, logs and snapshots.


@sets_off("KraftWireDiskFills", "KraftWireDiskNearlyFull")
def test_another_process_fills_the_disk(site: Site, alarms: Alarms, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=scratch_in_memory(tmp_path)) as scratch:
        disk = PowerDisk(Path(scratch, "image"), Path(scratch, "disk"))
        try:
            with site.led("disk", 1, place=Place(folder=disk.mount_point)) as quorum:
                hog = disk.mount_point / "hog"
                for size_mib in range(5, 50, 5):
                    hog.write_bytes(bytes(size_mib << 20))
                    pause_between_scrapes()
                site.prometheus.wait_for("disk", *alarms)
                hog.unlink()
                site.prometheus.wait_until_over("disk", *alarms)
                assert quorum.leader()
        finally:
            disk.unmount("--lazy")


@sets_off("KraftWireLogGrows")
def test_clients_write_more_than_is_deleted(site: Site, alarms: Alarms) -> None:
    with site.led("growing", 1, properties={"metadata.max.idle.interval.ms": "0"}) as quorum:
        (controller,) = quorum.running
        while not site.is_set_off("growing", *alarms):
            write(controller, 20, 30_000)
        site.prometheus.wait_until_over("growing", *alarms)


@sets_off("KraftWireSnapshotOld", "KraftWireSnapshotFailed")
def test_no_snapshot_is_made_for_long_and_then_one_fails(site: Site, alarms: Alarms) -> None:
    old, failed = alarms
    with site.led("snapshots", 1, {"metadata.log.max.record.bytes.between.snapshots": "20000"}) as quorum:
        (controller,) = quorum.running
        site.prometheus.wait_for("snapshots", old)
        write(controller, 10, 3_000)
        controller.running_process.wait_for_log('"snapshot written"')
        site.prometheus.wait_until_over("snapshots", old)
        with ThreadPoolExecutor(1) as threads:
            child = threads.submit(wait_for_child, controller, "snapshotter")
            write(controller, 10, 3_000)
            os.kill(child.result(), signal.SIGKILL)
        site.prometheus.wait_for("snapshots", failed)
        site.prometheus.wait_until_over("snapshots", failed)


def _leader_besides(quorum: ControllerQuorum, leader: Controller) -> Controller | None:
    return quorum.leader_among(each for each in quorum.running if each is not leader)


def test_every_alarm_is_set_off_by_a_test() -> None:
    assert set(alarm_names()) == COVERED
