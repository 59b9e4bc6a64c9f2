"""Three of our controllers under faults keep every acknowledged change, and no half of any other. Needs root.

The tests share a cluster and run in this order. Each leaves it healed and checked (``Arena.workload``).
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness.chaos.arena import Arena, scratch_in_memory
from compat.harness.chaos.bit_flips import (
    MAY_REFUSE,
    PATTERNS,
    damaged,
    file_of,
    flip_a_bit,
    flip_the_last_bit,
)
from compat.harness.chaos.faults import FAULTS, bridged, isolated, killed, without_power
from compat.harness.kafka.quorum import Controller, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, snapshot_file_name
from kraft_wire.storage.inspection import inspect
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, NO_VOTE_UP_TO

FETCH_TIMEOUT_MS = 2000
LONGEST_FAULT_S = 4.0
MIXED_FAULTS = 5
PROGRESS = 10
"""The number of changes that must be acknowledged during a fault, and again after it."""


@pytest.fixture(scope="module")
def arena(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("chaos")
    with tempfile.TemporaryDirectory(dir=scratch_in_memory(folder)) as scratch:
        for workspace in make_workspace(folder):
            with Arena(workspace, tool_server, Path(scratch)) as arena:
                yield arena


def test_kafkas_tools_stay_outside_of_its_network(arena: Arena, tool_server: ToolServer) -> None:
    """Kafka's tools must outlive the arena's network namespaces."""
    assert tool_server.process_id is not None, "they have formatted the controllers"
    outside = _network_of(str(os.getppid()))
    assert _network_of(str(tool_server.process_id)) == outside
    assert _network_of("thread-self") != outside


def _network_of(process: str) -> Path:
    return Path("/proc", process, "ns/net").readlink()


def _wait_for_another_leader(arena: Arena, former: Controller) -> None:
    others = [controller for controller in arena.quorum.running if controller is not former]
    wait_until(lambda: arena.quorum.leader_among(others), "another leader")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_leader_is_replaced_when_it_is(arena: Arena, fault: str) -> None:
    with arena.workload():
        leader = arena.quorum.leader()
        with FAULTS[fault](arena, leader):
            _wait_for_another_leader(arena, leader)
            arena.ledger.wait_for_acknowledged(PROGRESS)


def test_a_follower_that_the_leader_does_not_reach_deposes_nobody(arena: Arena) -> None:
    with arena.workload():
        leader = arena.quorum.leader()
        follower, _ = arena.quorum.followers()
        with bridged(arena, leader, follower):
            wait_until(
                lambda: _silence_ms(leader, follower) > 2 * FETCH_TIMEOUT_MS,
                "the follower to start elections that it loses",
            )
            arena.ledger.wait_for_acknowledged(PROGRESS)
        arena.ledger.wait_for_acknowledged(PROGRESS)
        assert arena.quorum.leader() is leader


def _silence_ms(leader: Controller, follower: Controller) -> int:
    """Return how long the leader hasn't received a fetch of the follower."""
    with connect(leader) as client:
        voters = describe_quorum(client).topics[0].partitions[0].current_voters
    heard_ms = {voter.replica_id: voter.last_fetch_timestamp for voter in voters}
    return heard_ms[leader.node_id] - heard_ms[follower.node_id]


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_bit_is_flipped_in(arena: Arena, kind: str) -> None:
    with arena.workload():
        victim = arena.quorum.followers()[0]
        with killed(arena, victim):
            path = file_of(victim, kind)
            flip_back = flip_a_bit(path, random.Random(kind))
        if not _rejoins(arena, victim):
            assert kind in MAY_REFUSE, victim.running_process.tail()
            _check_refusal(victim, path)
            flip_back()
            victim.start()


def _rejoins(arena: Arena, controller: Controller) -> bool:
    """Whether the controller follows a leader again and catches up; False if its process ends."""
    process = controller.running_process
    wait_until(
        lambda: process.find_in_log('"event":"listening"') or not process.running, f"{process.name} to start"
    )
    new_offset = 1 + max(wait_until(lambda: _log_ends(arena), "a leader").values())
    wait_until(
        lambda: not process.running or _log_ends(arena).get(controller.node_id, -1) >= new_offset,
        f"{process.name} to follow",
    )
    return process.running


def _log_ends(arena: Arena) -> dict[int, int]:
    """Return the log end offsets of the voters as the leader reports them; empty without a leader."""
    leader = arena.quorum.leader_now()
    if leader is None:
        return {}
    with connect(leader) as client:
        voters = describe_quorum(client).topics[0].partitions[0].current_voters
    return {voter.replica_id: voter.log_end_offset for voter in voters}


def _check_refusal(controller: Controller, path: Path) -> None:
    process = controller.running_process
    assert process.wait(30) == 1
    assert str(path.resolve()) in process.log_text()
    assert "Restore " in process.log_text(), "it says what to do"
    assert "Traceback" not in process.log_text()


def test_a_bit_is_flipped_in_what_it_must_remember_of_its_losses(arena: Arena) -> None:
    _flip_what_it_must_remember(arena, _damage_the_last_batch, LOST_BELOW)


def test_a_bit_is_flipped_in_what_it_must_remember_of_its_votes(arena: Arena) -> None:
    _flip_what_it_must_remember(arena, _damage_the_vote, NO_VOTE_UP_TO)


def _damage_the_last_batch(victim: Controller) -> None:
    """Damage the last batch, and delete the snapshot that may hold its records."""
    flip_the_last_bit(file_of(victim, "the last segment"))
    while inspect(victim.data_folder).history_lost_below is not None:
        file_of(victim, "the newest snapshot").unlink()


def _damage_the_vote(victim: Controller) -> None:
    flip_a_bit(file_of(victim, "the vote"), random.Random("the vote"))


def _flip_what_it_must_remember(arena: Arena, damage: Callable[[Controller], None], remembered: str) -> None:
    """Start a follower on a damaged file while it can't fetch from the leader, and start it again after a
    flipped bit in a file that it has written about that. What it must remember is stored twice."""
    with arena.workload():
        victim = arena.quorum.followers()[0]
        with isolated(arena, victim):
            with killed(arena, victim):
                damage(victim)
            victim.running_process.wait_for_log('"event":"listening"')
            with killed(arena, victim):
                path = victim.data_folder / PARTITION_FOLDER / remembered
                flip_a_bit(path, random.Random(remembered))
            victim.running_process.wait_for_log('"event":"(votes|elections) suspended')
        assert _rejoins(arena, victim)


def test_a_bit_is_flipped_in_what_a_voter_was_formatted_with(arena: Arena) -> None:
    """A formatted voter has only this file, and knows no other voters."""
    with arena.workload():
        victim = arena.quorum.followers()[0]
        with killed(arena, victim):
            shutil.rmtree(victim.data_folder)
            arena.quorum.format_again(victim)
            path = victim.data_folder / PARTITION_FOLDER / snapshot_file_name(BOOTSTRAP_SNAPSHOT_ID)
            path.chmod(0o600)
            flip_back = flip_a_bit(path, random.Random("bootstrap"))
        assert not _rejoins(arena, victim)
        _check_refusal(victim, path)
        flip_back()
        victim.start()
        assert _rejoins(arena, victim)


def test_all_lose_their_power_at_once(arena: Arena) -> None:
    with arena.workload(), without_power(arena, *arena.quorum.controllers.values()):
        pass


def test_random_faults_lose_nothing(arena: Arena, request: pytest.FixtureRequest) -> None:
    """One or two random controllers have random faults of random length; the seed is an option."""
    seed = request.config.getoption("--chaos-seed")
    chance = random.Random(seed)
    faults = {**FAULTS, "damaged": damaged(chance)}
    for number in range(MIXED_FAULTS):
        victims = chance.sample(list(arena.quorum.controllers.values()), chance.choice([1, 1, 2]))
        # At most one controller is damaged: committed records must stay on a majority.
        drawn = list(zip(victims, chance.sample(list(faults), len(victims)), strict=True))
        # First the failing flush: an isolated controller flushes nothing, so its flush couldn't fail.
        drawn.sort(key=lambda fault: fault[1] != "failing flush")
        described = [f"{victim.name} {fault}" for victim, fault in drawn]
        print(f"--chaos-seed {seed}, number {number}: {described}")
        with arena.workload(), ExitStack() as healing:
            for victim, fault in drawn:
                healing.enter_context(faults[fault](arena, victim))
            time.sleep(chance.uniform(0, LONGEST_FAULT_S))
