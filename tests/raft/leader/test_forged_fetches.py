"""Fetches that claim the ids and directory ids of voters, and offsets that no replica ends at."""

from __future__ import annotations

from itertools import count

import pytest

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import HighWatermarkAdvanced, Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader.serve_fetch import MOST_OF_A_VOTER
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.lone_node import LISTENER, fetch
from tests.raft.membership.reconfiguration import NO_CLIENT
from tests.raft.quorum_ports import Caller

VALUES = [b"%d" % number for number in range(10)]
SLOW_FLUSH_MS = 6
_NUMBERS = count(1_000_000)


def forge(quorum: CoreQuorum, offset: int) -> None:
    """Say each millisecond, in the names of the followers, that they have everything below an offset."""
    leader = quorum.leader
    for voter in quorum.followers():
        request = fetch(
            offset,
            leader.running.epoch,
            epoch=leader.running.epoch,
            replica=voter.id,
            directory=voter.config.directory_id if leader.running.kraft_version else Uuid.ZERO,
            max_wait_ms=0,
            high_watermark=0,
        )
        leader.step(RpcRequest(Caller(leader.id, NO_CLIENT, next(_NUMBERS)), request, 18, LISTENER))
    quorum.later(1, lambda: forge(quorum, offset))


def high_watermarks(node: QuorumNode) -> list[int]:
    return [effect.offset for effect in node.effects if isinstance(effect, HighWatermarkAdvanced)]


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize(("voters", "observers"), [(3, 0), (3, 1), (5, 0)])
def test_a_high_watermark_is_never_in_the_middle_of_a_batch(
    voters: int, observers: int, kraft_version: int
) -> None:
    """Nobody could read up to there: standby controllers would end."""
    quorum = CoreQuorum(voters, observers, kraft_version=kraft_version).led()
    quorum.run_for(5_000)
    leader = quorum.leader
    forge(quorum, leader.end_offset + 1)
    quorum.run_for(20)
    leader.disk_is_stuck = True
    quorum.later(SLOW_FLUSH_MS, leader.free_disk)
    leader.propose(*VALUES)
    quorum.run_for(100)
    for node in quorum.nodes.values():
        ends = {batch.header.next_offset for batch in leader.batches}
        assert set(high_watermarks(node)) <= ends, node.id


def test_a_leader_that_names_the_middle_of_a_batch_commits_what_is_before_it() -> None:
    quorum = CoreQuorum(3).led()
    quorum.run_for(5_000)
    follower = quorum.followers()[0]
    base = quorum.leader.end_offset
    quorum.isolate(next(node.id for node in quorum.followers() if node is not follower))
    quorum.leader.propose(*VALUES)
    quorum.run_until(lambda: follower.end_offset == base + len(VALUES))
    follower.running._quorum.follow_high_watermark(base + 3)
    assert base + 3 not in high_watermarks(follower)


def test_few_fetches_of_a_voter_wait_and_newer_ones_answer_the_oldest() -> None:
    """All fetches of voters that wait are answered in one step, at each append."""
    quorum = CoreQuorum(3).led()
    quorum.run_for(5_000)
    leader, voter = quorum.leader, quorum.followers()[0]
    epoch, end_offset = leader.running.epoch, leader.end_offset
    request = fetch(
        end_offset,
        epoch,
        epoch=epoch,
        replica=voter.id,
        directory=voter.config.directory_id,
        high_watermark=end_offset,
    )
    calls = [Caller(leader.id, NO_CLIENT, next(_NUMBERS)) for _ in range(100)]
    answered = [
        effect.token
        for call in calls
        for effect in leader.step(RpcRequest(call, request, 18, LISTENER))
        if isinstance(effect, Reply)
    ]
    waiting = [call for call in leader.running._quorum.parked if call.replica == voter.config.replica_key]
    assert [call.token for call in waiting] == calls[-MOST_OF_A_VOTER:]
    assert [token for token in answered if token in calls] == calls[:-MOST_OF_A_VOTER]
