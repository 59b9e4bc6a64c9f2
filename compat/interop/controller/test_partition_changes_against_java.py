"""Our partition changes are those of Kafka's PartitionChangeBuilder in random situations."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from compat.harness.kafka.jars import compiled, find_jars, java
from kraft_wire.controller.partitions.partition_change import Election, Goal, Rules, partition_change
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    Ids,
    Partition,
    PartitionRef,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.uuid import Uuid

REF = PartitionRef(Uuid.parse("FbrrdcfiR-KC2CPSTHaJrg"), 3)
BROKERS = range(6)
LEVELS = (7, 11, 12, 16, 17, 22, 23, 33)
ELR_FROM = 23
RECORD_VERSION = 2
SITUATIONS = 20_000


class Situation(msgspec.Struct):
    """A partition, its wanted change, and the state of the cluster."""

    partition: Partition
    goal: Goal
    up: frozenset[int]
    metadata_version: int
    min_isr: int
    elr_enabled: bool

    def rules(self) -> Rules:
        return Rules(
            can_lead=self.up.__contains__,
            default_directory=lambda broker_id: DIRECTORY_UNASSIGNED,
            metadata_version=self.metadata_version,
            elr_enabled=self.elr_enabled,
            min_isr=self.min_isr,
        )

    def to_json(self) -> dict[str, object]:
        """Return a situation as PartitionChanges.java reads it."""
        before, goal = self.partition, self.goal
        record = PartitionRecord(
            REF.index,
            REF.topic_id,
            replicas=before.replicas,
            isr=before.isr,
            removing_replicas=before.removing_replicas,
            adding_replicas=before.adding_replicas,
            leader=before.leader,
            leader_recovery_state=before.leader_recovery_state,
            leader_epoch=before.leader_epoch,
            partition_epoch=before.partition_epoch,
            directories=before.directories,
            eligible_leader_replicas=before.elr,
            last_known_elr=before.last_known_elr,
        )
        return {
            "partition": record.to_json(RECORD_VERSION),
            "goal": {
                "election": goal.election.name,
                "isr": goal.isr,
                "replicas": goal.replicas,
                "removing": goal.removing,
                "adding": goal.adding,
                "recoveryState": goal.recovery_state,
                "directories": {str(broker): str(chosen) for broker, chosen in goal.directories.items()},
                "uncleanShutdown": list(goal.unclean_shutdown),
            },
            "rules": {
                "up": sorted(self.up),
                "metadataVersion": self.metadata_version,
                "minIsr": self.min_isr,
                "elrEnabled": self.elr_enabled,
            },
        }


class Situations:
    """A source of random situations, including impossible ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def some(self, ids: Ids | range) -> Ids:
        """Draw some of the ids, in any order."""
        return tuple(self._random.sample(ids, self._random.randint(0, len(ids))))

    def next(self) -> Situation:
        rng = self._random
        level = rng.choice(LEVELS)
        elr_enabled = level >= ELR_FROM and rng.random() < 0.6
        before = self._partition(elr_enabled)
        return Situation(
            before,
            self._goal(before),
            frozenset(self.some(BROKERS)),
            level,
            rng.randint(1, len(before.replicas)),
            elr_enabled,
        )

    def _partition(self, elr_enabled: bool) -> Partition:
        rng = self._random
        replicas = tuple(rng.sample(BROKERS, rng.randint(1, 5)))
        isr = self.some(replicas)
        outside = tuple(replica for replica in sorted(replicas) if replica not in isr)
        removing = self.some(replicas) if rng.random() < 0.3 else ()
        adding = self.some(replicas) if rng.random() < 0.3 else ()
        return Partition(
            replicas,
            isr,
            rng.choice((*isr, NO_LEADER)),
            leader_epoch=100,
            partition_epoch=200,
            directories=tuple(map(_directory, replicas)),
            leader_recovery_state=rng.choice((0, 0, 1)),
            removing_replicas=removing,
            adding_replicas=tuple(replica for replica in adding if replica not in removing),
            elr=tuple(sorted(self.some(outside))) if elr_enabled else (),
            last_known_elr=rng.choice(((), (), replicas[:1])) if elr_enabled else (),
        )

    def _goal(self, before: Partition) -> Goal:
        rng = self._random
        replicas: Ids | None = None
        removing: Ids | None = None
        adding: Ids | None = None
        if rng.random() < 0.2:
            wanted = tuple(rng.sample(BROKERS, rng.randint(1, 4)))
            removing = tuple(sorted(set(before.replicas).difference(wanted)))
            adding = tuple(sorted(set(wanted).difference(before.replicas)))
            replicas = wanted + removing
        return Goal(
            election=rng.choice(tuple(Election)),
            isr=self.some(before.replicas) if rng.random() < 0.6 else None,
            replicas=replicas,
            removing=removing,
            adding=adding,
            recovery_state=rng.choice((0, 1)) if rng.random() < 0.15 else None,
            directories={rng.choice(before.replicas): _directory(99)} if rng.random() < 0.2 else {},
            unclean_shutdown=(rng.choice(BROKERS),) if rng.random() < 0.2 else (),
        )


def _directory(number: int) -> Uuid:
    return Uuid(bytes(14) + b"\x07" + bytes([number]))


def _ask_java(situations: list[Situation], folder: Path) -> list[tuple[int, dict[str, object]] | None]:
    class_path = compiled("PartitionChanges.java", find_jars("4.4.0"), folder)
    asked = subprocess.run(
        [java(), "-classpath", class_path, "PartitionChanges"],
        input=b"".join(msgspec.json.encode(situation.to_json()) + b"\n" for situation in situations),
        stdout=subprocess.PIPE,
        check=True,
    )
    answers: list[tuple[int, dict[str, object]] | None] = []
    for line in asked.stdout.splitlines():
        if line == b"null":
            answers.append(None)
        else:
            version, _, record = line.partition(b" ")
            answers.append((int(version), msgspec.json.decode(record, type=dict[str, object])))
    return answers


def _ours(situation: Situation) -> tuple[int, dict[str, object]] | None:
    change = partition_change(REF, situation.partition, situation.goal, situation.rules())
    if change is None:
        return None
    record, version = change
    assert isinstance(record, PartitionChangeRecord)
    return version, record.to_json(RECORD_VERSION)


def _without_known_differences(situation: Situation, answer: tuple[int, dict[str, object]]) -> None:
    """Remove the intended differences from Kafka.

    Kafka records "no leader" as the last known leader of a partition without a leader, which is useless. When
    it elects a leader from the ELR and an ISR of one is large enough, it keeps the other ELR members
    eligible, even while the leader continues without them. A replica that is removed stays in its ELR.
    """
    before = situation.partition
    replicas = cast(Sequence[int], answer[1].get("replicas") or before.replicas)
    eligible = cast(Sequence[int], answer[1].get("eligibleLeaderReplicas", before.elr))
    answer[1]["eligibleLeaderReplicas"] = sorted(set(eligible).intersection(replicas))
    if answer[1].get("lastKnownElr") == [NO_LEADER]:
        del answer[1]["lastKnownElr"]
    if situation.min_isr == 1:
        answer[1].pop("eligibleLeaderReplicas", None)


def test_every_change_is_the_one_that_kafka_makes(tmp_path: Path) -> None:
    source = Situations(seed=1)
    situations = [source.next() for _ in range(SITUATIONS)]
    answers = _ask_java(situations, tmp_path)
    assert len(answers) == SITUATIONS
    assert sum(answer is not None for answer in answers) > SITUATIONS // 2
    for situation, theirs in zip(situations, answers, strict=True):
        ours = _ours(situation)
        for answer in (ours, theirs):
            if answer is not None:
                _without_known_differences(situation, answer)
        assert ours == theirs, situation
