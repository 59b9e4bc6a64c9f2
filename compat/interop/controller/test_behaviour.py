"""The same script of requests, played to Java's controller and to ours, has the same answers and records."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

import pytest

from compat.harness.kafka.tool_server import ToolServer
from compat.harness.waiting import wait_until
from compat.judges.behaviour.forms import Form, codes_in, form_of
from compat.judges.behaviour.known import TOKEN_SECRET, Known
from compat.judges.behaviour.outcome import CLOSED, Asked, Outcome
from compat.judges.behaviour.played import Difference, Played
from compat.judges.behaviour.player import Pair, Side, fresh_pair, play
from compat.judges.behaviour.report import result_text
from compat.judges.behaviour.rules import compared
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
    DescribeConfigs,
    DescribeScram,
    Move,
    NewTopic,
    Reassign,
    Register,
    RenewToken,
    Script,
    Unregister,
    UnregisterController,
    UpdateFeatures,
    script_of,
    text_of,
)
from compat.judges.behaviour.tally import Tally
from kraft_wire.controller.tokens.token_rules import token_hmac
from kraft_wire.metadata.features.metadata_version import LATEST_PRODUCTION, VERSIONS
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraft_wire.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.security.secret import Secret

LEVELS = tuple(version.level for version in VERSIONS if version.level <= LATEST_PRODUCTION)
UPGRADE, SAFE, UNSAFE = 1, 2, 3
SCRIPTS = 30
STEPS = 200
LEAST_PLAYED = 0.9
"""The part of a script's steps that must be played. Of these scripts 95 % are, or more."""
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
        played = play(pair, draw(seed, STEPS))
    assert played.difference is None, f"{played.difference}"
    skipped = Counter(played.set_aside)
    assert len(played.answered) >= LEAST_PLAYED * STEPS, f"ended: {played.ended}, set aside: {skipped}"


def test_the_judge_sees_a_controller_that_behaves_otherwise(tool_server: ToolServer) -> None:
    difference = play_with_disabled_deletion(tool_server, DELETION)
    assert difference is not None and difference.number == len(DELETION) - 1
    assert difference.kind == "DeleteTopics, answers 73 and 0, records none and RemoveTopicRecord"


def test_the_judge_compares_what_is_placed_by_chance(tool_server: ToolServer) -> None:
    script = (*brokers(2), CreateTopics(topics=(NewTopic("t", partitions=2),)))
    with fresh_pair(tool_server, our_properties={"default.replication.factor": "2"}) as pair:
        difference = play(pair, script).difference
    assert difference is not None and difference.number == len(script) - 1
    ours, java = difference.ours.records, difference.java.records
    assert [record["data"].get("replicas") for record in ours] == [None, 2, 2]
    assert [record["data"].get("replicas") for record in java] == [None, 1, 1]


def test_a_script_that_differs_is_shortened(tool_server: ToolServer) -> None:
    def still_differs(part: Script) -> bool:
        difference = play_with_disabled_deletion(tool_server, part)
        return difference is not None and difference.kind.startswith("DeleteTopics, answers 73 and 0")

    assert shrink(DELETION, still_differs, 12) == (DELETION[0], *DELETION[2:4], DELETION[-1])


def brokers(count: int) -> Script:
    """Return the steps after which so many brokers are there."""
    there = range(count)
    return tuple(step for id_ in there for step in (Register(broker=id_, dirs=(0, 1)), Beat(broker=id_)))


def topic(min_isr: str) -> Script:
    """Return the steps after which only the first of three brokers has a topic in sync."""
    created = NewTopic("t", ((0, 1, 2),), configs=(("min.insync.replicas", min_isr),))
    placed = (Assign(broker=each, topic="t", partition=0, dir=0) for each in range(3))
    fenced = (Beat(broker=each, fence=True) for each in (1, 2))
    return (*brokers(3), CreateTopics(topics=(created,)), *placed, *fenced)


DELETED: Final = DeleteTopics(names=("t",))
LEFTOVERS: Final = "Java's controller fails where a topic with an empty ISR or a cleared ELR was deleted"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            (
                *topic("2"),
                AlterConfigs(kind=2, name="t", changes=(Change("min.insync.replicas", 0, "1"),)),
                DELETED,
                Unregister(broker=2),
            ),
            LEFTOVERS,
        ),
        (
            (*topic("2"), Beat(broker=0, fence=True), DELETED, Beat(broker=1), Beat(broker=1, offline=(0,))),
            LEFTOVERS,
        ),
        (
            (
                *topic("3"),
                Reassign(moves=(Move("t", 0, (0, 1)),)),
                Beat(broker=1),
                AlterPartition(topic="t", partition=0, isr=(0, 1)),
            ),
            "a replica that is removed isn't an eligible leader any more; in Java it stays one",
        ),
    ],
    ids=["cleared ELR", "empty ISR", "removed replica in the ELR"],
)
def test_a_script_ends_only_where_the_clusters_differ(
    tool_server: ToolServer, script: Script, reason: str
) -> None:
    with fresh_pair(tool_server) as pair:
        played = play(pair, (*script, DescribeCluster(version=1)))
    assert (played.difference, played.ended) == (None, reason)
    assert len(played.answered) == len(script)


STOPS: Final = "a broker that registers again goes on to stop"
STAYS_FENCED: Final = "a broker that was fenced as it stopped stays fenced"
NO_SESSION: Final = "the session of a broker that stops ends with it"


def test_steps_of_a_broker_that_stops_are_set_aside_only_as_long_as_they_differ(
    tool_server: ToolServer,
) -> None:
    """Broker 1 leads a partition and stops in two steps; broker 2 leads none, and stops at once."""
    another = Register(broker=1, incarnation=2)
    script: list[tuple[AnyStep, str | None]] = [
        (CreateTopics(topics=(NewTopic("t", ((1, 0),)),)), None),
        (Beat(broker=1, stop=True), None),
        (Register(broker=1), STOPS),
        (Beat(broker=1, stop=True), None),
        (Beat(broker=1), STAYS_FENCED),
        (another, NO_SESSION),
        (Register(broker=1), None),
        (Beat(broker=1), STAYS_FENCED),
        (another, NO_SESSION),
        (Beat(broker=1, fence=True), None),
        (another, None),
        (Unregister(broker=1), None),
        (another, None),
        (Beat(broker=1), None),
        (Beat(broker=2, stop=True), None),
        (Beat(broker=2), None),
        (Register(broker=2, incarnation=2), None),
    ]
    with fresh_pair(tool_server) as pair:
        assert play(pair, brokers(3)).difference is None
        for step, reason in script:
            played = play(pair, [step])
            assert played.difference is None, f"{played.difference}"
            reasons = [each.partition(";")[0] for each in played.set_aside]
            assert (step, reasons) == (step, [] if reason is None else [reason])


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
    yield CreateTopics(topics=(NewTopic(topic, ((broker, broker + 100), (broker + 100, broker))),))
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
            played = play(pair, [upgrade, *life_at(level), *changes_from(level)])
            assert played.difference is None, f"at level {level}: {played.difference}"
            written = {record["name"] for ours, _ in played.answered for record in ours.outcome.records}
            assert written >= {"PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord"}


def test_every_downgrade_that_java_makes_is_made(tool_server: ToolServer) -> None:
    with fresh_pair(tool_server) as pair:
        for level in reversed(LEVELS):
            for way in (SAFE, UNSAFE):
                down = UpdateFeatures(updates=(("metadata.version", level, way),))
                difference = play(pair, [down, *changes_from(level)]).difference
                assert difference is None, f"to level {level}: {difference}"


SESSIONS: Script = (
    *brokers(3),
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
        assert play(pair, SESSIONS).difference is None
        for silent in range(3):
            ours, java = outcomes_of_silence(pair, silent, range(silent + 1, 3))
            left, right = compared(Asked(Beat(broker=silent)), ours, java)
            assert left == right
            assert {record["name"] for record in left.records} == {
                "BrokerRegistrationChangeRecord",
                "PartitionChangeRecord",
            }


def play_with_disabled_deletion(tools: ToolServer, script: Script) -> Difference | None:
    with fresh_pair(tools, our_properties={"delete.topic.enable": "false"}) as pair:
        return play(pair, script).difference


def test_a_seed_is_a_script_and_a_script_is_a_text() -> None:
    script = draw(7, 500)
    assert script == draw(7, 500) != draw(8, 500)
    assert script_of(text_of(script)) == script
    assert draw(7, 3)[:2] == script[:2]


def record(record_name: str, /, **data: Form) -> Form:
    return {"name": record_name, "version": 0, "data": data}


def wrote(*records: Form) -> Outcome:
    return Outcome({"errorCode": 0}, records)


def placed(*replicas: int, isr: Sequence[int]) -> Outcome:
    data = {
        "replicas": list(replicas),
        "isr": list(isr),
        "leader": isr[0],
        "directories": ["none"] * len(replicas),
    }
    return wrote(record("PartitionRecord", partitionId=0, **data))


def token(expires_ms: int, token_id: str = "the id of token 0") -> Outcome:
    changed = record("DelegationTokenRecord", tokenId=token_id, expirationTimestamp=expires_ms)
    return Outcome({"errorCode": 0, "expiryTimestampMs": expires_ms}, (changed,))


def refused(code: ErrorCode) -> Outcome:
    return Outcome({"responses": [{"name": "t", "errorCode": int(code)}]})


def described(key: str, value: str | None) -> Outcome:
    return Outcome({"results": [{"errorCode": 0, "configs": [{"name": key, "value": value}]}]})


def config(key: str) -> Form:
    return record("ConfigRecord", resourceType=2, resourceName="t", name=key, value="1")


def change(topic_id: str, partition: int, leader: int) -> Form:
    return record("PartitionChangeRecord", topicId=topic_id, partitionId=partition, leader=leader)


PLACED: Final = CreateTopics(topics=(NewTopic("t", partitions=1, factor=2),))
STOP: Final = Beat(broker=1, stop=True)
FENCED: Final = wrote(record("BrokerRegistrationChangeRecord", brokerId=1, fenced=1))
LATE: Final = DeleteTopics(names=("t",), timeout_ms=0)
TOO_LATE, DISABLED = refused(ErrorCode.REQUEST_TIMED_OUT), refused(ErrorCode.TOPIC_DELETION_DISABLED)
CLEARED: Final = record("ClearElrRecord", topicName="t")
MINUTE_MS: Final = 60_000
ALLOWED: Final = {
    "other brokers": (Asked(PLACED), placed(1, 2, isr=(1, 2)), placed(2, 3, isr=(2, 3))),
    "a fenced broker": (
        Asked(PLACED, frozenset({3})),
        placed(1, 2, isr=(1, 2)),
        placed(3, 2, isr=(2,)),
    ),
    "a second later": (Asked(RenewToken(token=0)), token(1), token(1_001)),
    "fenced again": (Asked(STOP, frozenset({1})), wrote(), FENCED),
    "refused too late": (Asked(LATE, deletes_topics=False), TOO_LATE, DISABLED),
    "Java fails": (Asked(DescribeScram()), Outcome({"errorCode": 0}), Outcome(CLOSED)),
    "order of keys": (Asked(LATE), wrote(config("a"), config("b")), wrote(config("b"), config("a"))),
    "order of partitions": (
        Asked(STOP),
        wrote(change("s", 0, 1), change("t", 0, 1)),
        wrote(change("t", 0, 1), change("s", 0, 1)),
    ),
}
SEEN: Final = {
    "too many replicas": (Asked(PLACED), placed(1, 2, 3, isr=(1, 2, 3)), placed(1, 2, isr=(1, 2))),
    "a broker twice": (Asked(PLACED), placed(1, 1, isr=(1, 1)), placed(1, 2, isr=(1, 2))),
    "a fenced broker in sync": (
        Asked(PLACED, frozenset({2})),
        placed(1, 2, isr=(1, 2)),
        placed(1, 2, isr=(1,)),
    ),
    "a stopping broker in sync": (
        Asked(PLACED, stopping=frozenset({2})),
        placed(1, 2, isr=(1, 2)),
        placed(1, 2, isr=(1,)),
    ),
    "a minute later": (Asked(RenewToken(token=0)), token(1), token(1 + MINUTE_MS)),
    "another token": (Asked(RenewToken(token=0)), token(1), token(1, "the id of token 1")),
    "fenced": (Asked(STOP), wrote(), FENCED),
    "another fenced": (Asked(Beat(broker=2, stop=True), frozenset({2})), wrote(), FENCED),
    "fenced, and doesn't stop": (Asked(Beat(broker=1), frozenset({1})), wrote(), FENCED),
    "refused in time": (Asked(DELETED, deletes_topics=False), TOO_LATE, DISABLED),
    "refused though enabled": (Asked(LATE), TOO_LATE, DISABLED),
    "Java answers": (Asked(DescribeScram()), Outcome({"errorCode": 91}), Outcome({"errorCode": 0})),
    "a secret": (
        Asked(DescribeConfigs(kind=4, name="100")),
        described("delegation.token.secret.key", "a secret"),
        described("delegation.token.secret.key", None),
    ),
    "order of types": (Asked(LATE), wrote(config("a"), CLEARED), wrote(CLEARED, config("a"))),
    "order of new partitions": (
        Asked(LATE),
        wrote(record("PartitionRecord", partitionId=0), record("PartitionRecord", partitionId=1)),
        wrote(record("PartitionRecord", partitionId=1), record("PartitionRecord", partitionId=0)),
    ),
    "order of changes of one partition": (
        Asked(STOP),
        wrote(change("t", 0, 1), change("t", 0, 2)),
        wrote(change("t", 0, 2), change("t", 0, 1)),
    ),
}


@pytest.mark.parametrize(("asked", "ours", "java"), ALLOWED.values(), ids=ALLOWED)
def test_a_rule_allows_what_may_differ(asked: Asked, ours: Outcome, java: Outcome) -> None:
    assert ours != java
    left, right = compared(asked, ours, java)
    assert left == right


@pytest.mark.parametrize(("asked", "ours", "java"), SEEN.values(), ids=SEEN)
def test_no_rule_hides_another_difference(asked: Asked, ours: Outcome, java: Outcome) -> None:
    left, right = compared(asked, ours, java)
    assert left != right


def test_tokens_are_named_by_number_and_right_hmacs_by_their_tokens() -> None:
    """A token that is renewed keeps its number."""
    known = Known("cluster")
    for offset, token_id in enumerate(("one", "another", "one")):
        known.replay(DelegationTokenRecord(token_id=token_id), offset)
    right = token_hmac(Secret(TOKEN_SECRET), "another")
    answer = CreateDelegationTokenResponse(token_id="one", hmac=right)
    form = form_of(answer, 3, known)
    assert (form["tokenId"], form["hmac"]) == ("the id of token 0", "the HMAC of token 1")


def test_the_code_of_the_configs_of_a_topic_counts() -> None:
    results = [CreatableTopicResult("t", topic_config_error_code=29), CreatableTopicResult("s")]
    form = form_of(CreateTopicsResponse(topics=results), 7, Known("cluster"))
    assert codes_in(form) == [0, 29, 0]


def test_the_report_counts_what_was_not_played_by_reason() -> None:
    tally = Tally()
    tally.add(Played(4, [], ["why", "why"], ended="because"))
    tally.add(Played(6, [], ["why not"]))
    options = Namespace(scripts=2, steps=5, seed=1)
    lines = result_text(options, tally, [], 60.0).splitlines()
    assert lines[3:10] == [
        "steps played              0 of 10 (0.0%)",
        "steps set aside           3",
        "  2: why",
        "  1: why not",
        "scripts that ended early  1",
        "  1: because",
        "answers                   0",
    ]
