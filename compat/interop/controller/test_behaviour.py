"""The same script of requests, played to Java's controller and to ours, has the same answers and records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from compat.harness.kafka.tool_server import ToolServer
from compat.harness.waiting import wait_until
from compat.judges.behaviour.forms import Form
from compat.judges.behaviour.player import Difference, Pair, Side, fresh_pair, play
from compat.judges.behaviour.rules import Outcome, compared
from compat.judges.behaviour.script import draw, properties_of
from compat.judges.behaviour.shrink import shrink
from compat.judges.behaviour.steps import (
    AlterConfigs,
    AlterPartition,
    AlterScram,
    AnyStep,
    Assign,
    Beat,
    Change,
    CreateToken,
    CreateTopics,
    DeleteTopics,
    DescribeCluster,
    NewTopic,
    Register,
    Script,
    Unregister,
    UnregisterController,
    UpdateFeatures,
    script_of,
    text_of,
)
from kraft_wire.metadata.features.metadata_version import LATEST_PRODUCTION, VERSIONS

LEVELS = tuple(version.level for version in VERSIONS if version.level <= LATEST_PRODUCTION)
UPGRADE, SAFE, UNSAFE = 1, 2, 3
SCRIPTS = 30
STEPS = 200
DELETION: Script = (
    Register(broker=0),
    DescribeCluster(version=1),
    Beat(broker=0),
    CreateTopics(topics=(NewTopic("t", ((0,),)),)),
    AlterConfigs(kind=2, name="t", changes=(Change("retention.ms", 0, "5"),)),
    DeleteTopics(names=("t",)),
)


@pytest.mark.parametrize("seed", range(1, SCRIPTS + 1))
def test_a_script_of_random_requests_has_no_unexplained_difference(
    tool_server: ToolServer, seed: int
) -> None:
    with fresh_pair(tool_server, properties=properties_of(seed)) as pair:
        difference = play(pair, draw(seed, STEPS), [])
    assert difference is None, f"{difference}"


def test_the_judge_sees_a_controller_that_behaves_otherwise(tool_server: ToolServer) -> None:
    difference = play_with_disabled_deletion(tool_server, DELETION)
    assert difference is not None and difference.number == len(DELETION) - 1
    assert difference.kind == "DeleteTopics, answers 73 and 0, records none and RemoveTopicRecord"


def test_a_script_that_differs_is_shortened(tool_server: ToolServer) -> None:
    def still_differs(part: Script) -> bool:
        difference = play_with_disabled_deletion(tool_server, part)
        return difference is not None and difference.kind.startswith("DeleteTopics, answers 73 and 0")

    assert shrink(DELETION, still_differs, 12) == (DELETION[0], *DELETION[2:4], DELETION[-1])


def changes_from(level: int) -> Iterator[AnyStep]:
    """Yield attempts to go from one metadata.version to each, in each way; nothing is changed."""
    for target, way in product((0, *LEVELS, LEVELS[-1] + 1), (UPGRADE, SAFE, UNSAFE)):
        yield UpdateFeatures(updates=(("metadata.version", target, way),), validate_only=True)


def life_at(level: int) -> Iterator[AnyStep]:
    """Yield steps that write records whose versions depend on the metadata.version."""
    broker, topic = level, f"at-{level}"
    yield Register(broker=broker, dirs=(0, 1))
    yield Beat(broker=broker)
    yield Register(broker=broker + 100)
    yield Beat(broker=broker + 100)
    yield CreateTopics(topics=(NewTopic(topic, ((broker, broker + 100), (broker,))),))
    yield AlterPartition(topic=topic, partition=0, isr=(broker,), version=2)
    yield AlterPartition(topic=topic, partition=0, isr=(broker, broker + 100))
    yield Assign(broker=broker, topic=topic, partition=0, dir=1)
    yield Beat(broker=broker + 100, fence=True)
    yield Beat(broker=broker, offline=(1,))
    yield Beat(broker=broker, stop=True)
    yield AlterScram(upsertions=((topic, 1, 4096),))
    yield CreateToken(user="ann")
    yield UnregisterController(controller=9)
    yield DescribeCluster(version=1)
    yield Unregister(broker=broker + 100)
    yield DeleteTopics(names=(topic,))
    yield Unregister(broker=broker)


def test_every_level_of_metadata_version_is_left_and_written_as_by_java(tool_server: ToolServer) -> None:
    """From 3.3 to 4.4, all pairs: what may follow, in each way, and what is written at each level."""
    with fresh_pair(tool_server, release="3.3-IV3") as pair:
        for level in LEVELS:
            upgrade = UpdateFeatures(updates=(("metadata.version", level, UPGRADE),))
            difference = play(pair, [upgrade, *life_at(level), *changes_from(level)], [])
            assert difference is None, f"at level {level}: {difference}"


def test_every_downgrade_that_java_makes_is_made(tool_server: ToolServer) -> None:
    with fresh_pair(tool_server) as pair:
        for level in reversed(LEVELS):
            for way in (SAFE, UNSAFE):
                down = UpdateFeatures(updates=(("metadata.version", level, way),))
                difference = play(pair, [down, *changes_from(level)], [])
                assert difference is None, f"to level {level}: {difference}"


SESSIONS: Script = (
    *(step for broker in range(3) for step in (Register(broker=broker, dirs=(0, 1)), Beat(broker=broker))),
    CreateTopics(topics=(NewTopic("t", ((0, 1, 2), (1, 2, 0), (2, 0, 1))), NewTopic("alone", ((0,),)))),
    AlterConfigs(kind=2, name="t", changes=(Change("min.insync.replicas", 0, "2"),)),
)


def outcomes_of_silence(pair: Pair, silent: int, others: Sequence[int]) -> list[Outcome]:
    """Send heartbeats of the others until both controllers have fenced the silent broker.

    Returns what each has written.
    """
    written: list[list[Form]] = [[] for _ in pair]
    steps: list[AnyStep] = [DescribeCluster(version=1), *(Beat(broker=other) for other in others)]

    def is_fenced(side: Side) -> bool:
        broker = side.known.state.brokers.get(silent)
        return broker is not None and broker.fenced

    def have_both_fenced() -> bool:
        for side, records in zip(pair, written, strict=True):
            for step in steps:
                records.extend(side.play(step).outcome.records)
        return all(map(is_fenced, pair))

    wait_until(have_both_fenced, f"broker {silent} to be fenced")
    return [Outcome({}, tuple(records)) for records in written]


def test_a_broker_whose_session_expires_is_fenced_with_the_same_records(tool_server: ToolServer) -> None:
    """One after the other, to the last, whose partitions have no leader then."""
    with fresh_pair(tool_server, properties={"broker.session.timeout.ms": "2000"}) as pair:
        assert play(pair, SESSIONS, []) is None
        for silent in range(3):
            ours, java = outcomes_of_silence(pair, silent, range(silent + 1, 3))
            left, right = compared(Beat(broker=silent), ours, java)
            assert left == right
            assert {record["name"] for record in left.records} == {
                "BrokerRegistrationChangeRecord",
                "PartitionChangeRecord",
            }


def play_with_disabled_deletion(tools: ToolServer, script: Script) -> Difference | None:
    with fresh_pair(tools, our_properties={"delete.topic.enable": "false"}) as pair:
        return play(pair, script, [])


def test_a_seed_is_a_script_and_a_script_is_a_text() -> None:
    script = draw(7, 500)
    assert script == draw(7, 500) != draw(8, 500)
    assert script_of(text_of(script)) == script
    assert draw(7, 3)[:2] == script[:2]
