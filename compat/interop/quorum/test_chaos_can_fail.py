"""The checks of the chaos tests notice lost changes, incomplete changes, and changes that nobody
requested."""

from __future__ import annotations

import pytest

from compat.harness.chaos.arena import check_equal
from compat.harness.chaos.cluster_topics import NodeFiles, topics_in
from compat.harness.chaos.ledger import Ledger, TopicContent
from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid

TOPIC = TopicContent((0, 1), {"retention.ms": "1"})
CHANGED = TopicContent((0, 1), {"retention.ms": "2", "retention.bytes": "2"})


def test_an_acknowledged_creation_must_be_there_as_it_was_asked_for() -> None:
    ledger = Ledger()
    ledger.acknowledged("topic", TOPIC)
    assert ledger.violations({"topic": TOPIC}) == []
    assert ledger.violations({}) == [
        "topic: found nothing, expected partitions [0, 1] with retention.ms=1",
    ]
    assert len(ledger.violations({"topic": TopicContent((0,), TOPIC.configs)})) == 1
    assert len(ledger.violations({"topic": TopicContent((0, 1), {})})) == 1


def test_an_acknowledged_change_replaces_what_was_there() -> None:
    ledger = Ledger()
    ledger.acknowledged("topic", TOPIC)
    ledger.acknowledged("topic", CHANGED)
    assert ledger.violations({"topic": CHANGED}) == []
    assert len(ledger.violations({"topic": TOPIC})) == 1


def test_an_acknowledged_deletion_leaves_nothing() -> None:
    ledger = Ledger()
    ledger.acknowledged("topic", TOPIC)
    ledger.acknowledged("topic", None)
    assert ledger.violations({}) == []
    assert len(ledger.violations({"topic": TOPIC})) == 1
    assert len(ledger.violations({"topic": TopicContent((), TOPIC.configs)})) == 1


def test_an_unknown_change_is_there_or_not_and_no_half_of_it() -> None:
    ledger = Ledger()
    ledger.unknown("new", TOPIC)
    ledger.acknowledged("old", TOPIC)
    ledger.unknown("old", CHANGED)
    assert ledger.violations({"old": TOPIC}) == []
    assert ledger.violations({"old": CHANGED, "new": TOPIC}) == []
    half = TopicContent((0, 1), {"retention.ms": "2"})
    assert len(ledger.violations({"old": half})) == 1
    assert len(ledger.violations({"old": TOPIC, "new": TopicContent((0,), TOPIC.configs)})) == 1


def test_what_was_seen_of_an_unknown_change_stays() -> None:
    ledger = Ledger()
    ledger.unknown("seen", TOPIC)
    ledger.unknown("not yet", TOPIC)
    ledger.settle({"seen": TOPIC})
    assert ledger.violations({"seen": TOPIC, "not yet": TOPIC}) == []
    assert len(ledger.violations({"not yet": TOPIC})) == 1


def test_what_was_refused_must_not_be_there() -> None:
    ledger = Ledger()
    ledger.refused("never")
    ledger.acknowledged("topic", TOPIC)
    ledger.refused("topic")
    assert ledger.violations({"topic": TOPIC}) == []
    assert len(ledger.violations({"topic": TOPIC, "never": TOPIC})) == 1
    assert len(ledger.violations({"topic": CHANGED})) == 1


def test_what_nobody_asked_for_must_not_be_there() -> None:
    assert Ledger().violations({"topic": TOPIC}) == [
        "topic: found partitions [0, 1] with retention.ms=1, which nobody asked for"
    ]


def test_a_cluster_that_stops_acknowledging_is_noticed() -> None:
    with pytest.raises(AssertionError, match="2 of 2 changes"):
        Ledger().wait_for_acknowledged(2, timeout_s=0.01)


def _files(*names: str, end_offset: int | None = None) -> NodeFiles:
    """Return the files of a controller with these topics, truncated at an offset."""
    batches, state = {}, MetadataState()
    for offset, name in enumerate(names):
        record = TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16)))
        data = encode_batch(offset, 1, 0, [encode_metadata_record(record, 0)])
        batches[offset] = split_batches(data)[0][0]
        state.replay(record, offset)
    return NodeFiles({at: batch for at, batch in batches.items() if at != end_offset}, state)


def test_controllers_that_differ_are_noticed() -> None:
    same = _files("one", "two")
    check_equal({"a": same, "b": _files("one", "two"), "c": same})
    with pytest.raises(AssertionError, match=r"the logs of a and b differ at offsets \[1\]"):
        check_equal({"a": same, "b": _files("one", "owt")})
    with pytest.raises(AssertionError, match="other offsets"):
        check_equal({"a": same, "b": _files("one", "two", end_offset=1)})
    forgetful = NodeFiles(same.batches, _files("one").state)
    with pytest.raises(AssertionError, match="the states of a and b differ"):
        check_equal({"a": same, "b": forgetful})


def test_configs_that_outlive_their_topic_are_seen() -> None:
    state = MetadataState()
    topic_id = Uuid.parse("AAAAAAAAAAAAAAAAAAAACg")
    state.replay(TopicRecord(name="topic", topic_id=topic_id), 0)
    state.replay(PartitionRecord(partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1), 1)
    for name in ("topic", "gone"):
        record = ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name=name, name="retention.ms", value="1"
        )
        state.replay(record, 2)
    assert topics_in(state) == {
        "topic": TopicContent((0,), {"retention.ms": "1"}),
        "gone": TopicContent((), {"retention.ms": "1"}),
    }
