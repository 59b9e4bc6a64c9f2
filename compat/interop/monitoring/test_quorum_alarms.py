"""Prometheus sets off an alarm when controllers of a quorum fail, and ends it when they are back."""

from __future__ import annotations

from functools import partial

from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect, directory_id
from compat.harness.prometheus import pause_between_scrapes
from compat.harness.waiting import wait_until
from compat.interop.monitoring.watched import Alarms, Site, paused, sets_off, write
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid

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


def _leader_besides(quorum: ControllerQuorum, leader: Controller) -> Controller | None:
    return quorum.leader_among(each for each in quorum.running if each is not leader)
