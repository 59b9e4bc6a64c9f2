"""Draw what strangers send: Votes, pre-votes, announcements, resignations, Fetches and UpdateRaftVoters with
any epoch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from compat.campaigns.strangers.plan import Plan, Target
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.support import forged_requests
from tests.support.forged_requests import ANYBODY

LOWEST, HIGHEST = -(2**31), 2**31 - 1
ABSURD_EPOCHS: Final = (LOWEST, -1, 0, 1, 1 << 30, 3 << 29, 2_146_435_071, HIGHEST - 1, HIGHEST)
EPOCHS_AHEAD: Final = (-1, 0, 1, 1, 1, 2, 3, 16, 17, 1 << 16, (1 << 16) + 1, 1 << 24)
ABSURD_OFFSETS: Final = (-(2**63), -1, 1 << 40, 2**62, 2**63 - 1)
OFFSETS: Final = (0, 1, 5, 100, *ABSURD_OFFSETS)
UNKNOWN_IDS: Final = (0, 1, 2, 77, 900, HIGHEST)
"""Ids of brokers, of observers, and of nobody."""
WAITS_MS: Final = (0, 0, 0, 0, 0, 100, 500)
FAULTLESS_CHANCE: Final = 0.2
STREAM: Final = 100
"""The requests of a burst, each with the next epoch."""

Drawn = tuple[Message, int]
"""A request and its version."""


class Seen:
    """What the answers of one controller have told."""

    def __init__(self) -> None:
        self.epoch = 1
        self.leader_id = -1

    def learn(self, response: Message) -> None:
        """Take the epoch and the leader from an answer that names them."""
        if isinstance(response, VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse):
            for topic in response.topics:
                for partition in topic.partitions:
                    self.epoch, self.leader_id = partition.leader_epoch, partition.leader_id
        elif isinstance(response, FetchResponse):
            for answered in response.responses:
                for data in answered.partitions:
                    leader = data.current_leader
                    self.epoch, self.leader_id = leader.leader_epoch, leader.leader_id


class Stranger(NamedTuple):
    """A stranger at one controller, and the ports of its fake leader."""

    plan: Plan
    target: Target
    seen: Seen
    fake_ports: Sequence[int]
    chance: random.Random

    def request(self) -> Drawn:
        """Return any request, or a Vote without a fault, which costs most where it is believed."""
        if self.chance.random() < FAULTLESS_CHANCE:
            return self._faultless_vote()
        return self.chance.choice(REQUESTS)(self, self._epoch())

    def _faultless_vote(self) -> Drawn:
        epoch = self.seen.epoch + self.chance.choice((1, 1, 1, 2, 1 << 16))
        vote = forged_requests.vote(
            min(epoch, HIGHEST),
            self.caller(),
            (self.seen.epoch, 1 << 40),
            voter=self.target.key,
            cluster_id=self.plan.cluster_id,
        )
        return vote, 2

    def burst(self) -> list[Drawn]:
        """Return many requests of one kind, with one epoch or with one after the other."""
        make, epoch = self.chance.choice(REQUESTS), self._epoch()
        step = self.chance.choice((0, 1))
        return [make(self, min(epoch + step * number, HIGHEST)) for number in range(STREAM)]

    def _epoch(self) -> int:
        draw = self.chance.random()
        if draw < 0.7:
            return min(max(self.seen.epoch + self.chance.choice(EPOCHS_AHEAD), LOWEST), HIGHEST)
        return self.chance.choice(ABSURD_EPOCHS) if draw < 0.9 else self.chance.randint(LOWEST, HIGHEST)

    def caller(self) -> ReplicaKey:
        """Return whom the stranger claims to be."""
        if self.plan.kind == "claimants" and self.chance.random() < 0.8:
            return self._any_voter()
        return self._outsider()

    def _any_voter(self) -> ReplicaKey:
        return self.chance.choice(self.plan.targets).key

    def _outsider(self) -> ReplicaKey:
        """Return nobody's id with any directory id, or a voter's id without its directory id."""
        wrong = Uuid(self.chance.randbytes(16))
        if self.chance.random() < 0.5:
            directory = self.chance.choice((wrong, Uuid.ZERO, self._any_voter().directory_id))
            return ReplicaKey(self.chance.choice(UNKNOWN_IDS), directory)
        return ReplicaKey(self._any_voter().id, self.chance.choice((wrong, Uuid.ZERO)))

    def addressee(self) -> ReplicaKey:
        """Return for whom a request is: mostly the controller that gets it."""
        key = self.target.key
        others = (ANYBODY, ReplicaKey(key.id), ReplicaKey(key.id, Uuid(b"\x09" * 16)), self._any_voter())
        return key if self.chance.random() < 0.6 else self.chance.choice(others)

    def cluster_id(self) -> str | None:
        """Return mostly the right cluster id or none."""
        return self.chance.choice((None, None, *[self.plan.cluster_id] * 3, "", "another", "x" * 1000))


def _vote(stranger: Stranger, epoch: int, *, pre_vote: bool = False) -> Drawn:
    chance = stranger.chance
    last_epoch = chance.choice((max(0, epoch - 1), 0, epoch, stranger.seen.epoch))
    request = forged_requests.vote(
        epoch,
        stranger.caller(),
        (last_epoch, chance.choice(OFFSETS)),
        voter=stranger.addressee(),
        pre_vote=pre_vote,
        cluster_id=stranger.cluster_id(),
    )
    return request, 2 if pre_vote else chance.choice((0, 1, 2, 2))


def _pre_vote(stranger: Stranger, epoch: int) -> Drawn:
    return _vote(stranger, epoch, pre_vote=True)


def _begin(stranger: Stranger, epoch: int) -> Drawn:
    request = forged_requests.begin(
        epoch,
        stranger.chance.choice((stranger.caller().id, stranger.seen.leader_id)),
        stranger.fake_ports,
        voter=stranger.addressee(),
        cluster_id=stranger.cluster_id(),
    )
    return request, stranger.chance.choice((0, 1, 1, 1))


def _end(stranger: Stranger, epoch: int) -> Drawn:
    version = stranger.chance.choice((0, 1, 1, 1))
    leader_id = stranger.chance.choice((stranger.caller().id, stranger.seen.leader_id))
    successors = [stranger.caller(), stranger.target.key]
    return forged_requests.end(
        epoch, leader_id, successors, version=version, cluster_id=stranger.cluster_id()
    ), version


def _fetch(stranger: Stranger, epoch: int) -> Drawn:
    """Return a Fetch that acknowledges nothing in a voter's name: a leader that is told in the name of a
    majority that they have a record has to believe it."""
    chance, replica = stranger.chance, stranger.caller()
    is_voter = any(replica == target.key for target in stranger.plan.targets)
    version = chance.randint(12, 18)
    request = forged_requests.fetch(
        epoch,
        replica,
        chance.choice((0, *ABSURD_OFFSETS) if is_voter else OFFSETS),
        chance.choice((0, 1, stranger.seen.epoch, max(0, epoch), LOWEST)),
        version=version,
        max_wait_ms=chance.choice(WAITS_MS),
        high_watermark=chance.choice(OFFSETS),
        cluster_id=stranger.cluster_id(),
    )
    return request, version


def _fetch_snapshot(stranger: Stranger, epoch: int) -> Drawn:
    chance = stranger.chance
    snapshot = SnapshotId(chance.choice(OFFSETS), chance.choice((0, 1, stranger.seen.epoch, HIGHEST)))
    request = forged_requests.fetch_snapshot(
        epoch, stranger.caller(), snapshot, chance.choice(OFFSETS), cluster_id=stranger.cluster_id()
    )
    return request, chance.choice((0, 1))


def _update(stranger: Stranger, epoch: int) -> Drawn:
    """Return the UpdateRaftVoter of a voter that claims to be where the fake leader is."""
    return forged_requests.update(
        stranger.chance.choice((epoch, stranger.seen.epoch)), stranger.caller(), stranger.fake_ports[0]
    ), 0


REQUESTS: Final[tuple[Callable[[Stranger, int], Drawn], ...]] = (
    _vote,
    _vote,
    _pre_vote,
    _pre_vote,
    _begin,
    _begin,
    _end,
    _fetch,
    _fetch_snapshot,
    _update,
)
