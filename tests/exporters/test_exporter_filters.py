"""Which records an exporter gets."""

from __future__ import annotations

import pytest

from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.settings import FilterSettings
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from tests.exporters.export_samples import exported, of_value
from tests.support.metadata_records import partition_record, topic_record, uuid

TOPIC, BROKER = 2, 4
ALL: tuple[Message, ...] = (
    NoOpRecord(),
    topic_record(1, "wanted"),
    topic_record(2, "other"),
    partition_record(1, 0, (1, 2, 3)),
    partition_record(2, 0, (4, 5, 6)),
    PartitionChangeRecord(0, uuid(1), leader=2),
    PartitionChangeRecord(0, uuid(2), leader=5),
    ConfigRecord(TOPIC, "wanted", "x", "1"),
    ConfigRecord(TOPIC, "5", "x", "1"),
    ConfigRecord(BROKER, "wanted", "x", "1"),
    ConfigRecord(BROKER, "5", "x", "1"),
    ClearElrRecord("wanted"),
    ClearElrRecord("other"),
    ClearElrRecord(""),
    UnregisterBrokerRecord(5, 1),
    UnregisterBrokerRecord(1, 1),
    FenceBrokerRecord(5, 1),
    BrokerRegistrationChangeRecord(5, 1),
    RemoveTopicRecord(uuid(1)),
    RemoveTopicRecord(uuid(2)),
)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        (FilterSettings(), range(1, 20)),
        (FilterSettings(no_op=True), range(20)),
        (FilterSettings(types=("NoOpRecord", "TopicRecord")), [0, 1, 2]),
        (FilterSettings(topics=("wanted",)), [1, 3, 5, 7, 11, 13, 18]),
        (FilterSettings(brokers=(5,)), [4, 6, 10, 14, 16, 17]),
        (FilterSettings(topics=("wanted",), brokers=(5,)), [1, 3, 4, 5, 6, 7, 10, 11, 13, 14, 16, 17, 18]),
        (FilterSettings(types=("PartitionRecord",), topics=("wanted",)), [3]),
        (FilterSettings(topics=("nothing",), no_op=True), [13]),
    ],
)
def test_records_are_taken_by_type_topic_and_broker(settings: FilterSettings, taken: list[int]) -> None:
    chosen = Filter(settings)
    assert [number for number, each in enumerate(ALL) if chosen.takes(exported(each))] == list(taken)


def test_a_topic_that_was_created_before_is_known() -> None:
    chosen = Filter(FilterSettings(topics=("wanted",)))
    assert chosen.needs_topic_ids
    change = exported(PartitionChangeRecord(0, uuid(1), leader=2))
    assert not chosen.takes(change)
    chosen.learn(exported(topic_record(1, "wanted")))
    assert chosen.takes(change)
    assert not Filter(FilterSettings(brokers=(1,))).needs_topic_ids


def test_what_can_not_be_decoded_is_taken_unless_its_type_is_not_wanted() -> None:
    unknown = of_value(b"\x01\x64\x00\x07")
    assert Filter(FilterSettings(topics=("wanted",))).takes(unknown)
    assert not Filter(FilterSettings(types=("TopicRecord",))).takes(unknown)
