"""The table of metadata.version equals what Kafka 4.4.0's own class prints."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features import metadata_version


def test_levels_count_up_without_a_gap() -> None:
    assert [known.level for known in metadata_version.VERSIONS] == list(range(7, 35))
    assert metadata_version.name_of(metadata_version.MINIMUM) == "3.3-IV3"
    assert metadata_version.name_of(metadata_version.LATEST_PRODUCTION) == "4.4-IV2"
    assert metadata_version.name_of(metadata_version.LATEST_TESTING) == "4.5-IV0"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("3.3", 7),
        ("3.7", 19),
        ("3.9-IV0", 21),
        ("4.0", 25),
        ("4.0-IV3", 25),
        ("4.0.1", 25),
        ("4.0.x", 25),
        ("4.0-IV1", 23),
        ("4.3", 30),
        ("4.4", 33),
        ("4.4-IV0", 31),
        ("4.0-IV3.2", 25),
    ],
)
def test_a_release_version_is_read_as_kafka_storage_reads_it(text: str, level: int) -> None:
    assert metadata_version.parse_release_version(text) == level


@pytest.mark.parametrize("text", ["", "4", "3.2", "4.5", "4.5-IV0", "4.0-IV9", "latest"])
def test_an_unknown_or_unstable_release_is_refused_with_what_is_possible(text: str) -> None:
    with pytest.raises(FeatureError, match=r"3\.3-IV3, .*, 4\.4-IV2$"):
        metadata_version.parse_release_version(text)


def test_an_unstable_release_is_read_where_it_is_allowed() -> None:
    assert metadata_version.parse_release_version("4.5-IV0", unstable=True) == 34
    with pytest.raises(FeatureError, match=r"'4\.5'"):
        metadata_version.parse_release_version("4.5", unstable=True)


def test_name_of_an_unknown_level() -> None:
    with pytest.raises(FeatureError, match="known are 7 to 34"):
        metadata_version.name_of(35)


@pytest.mark.parametrize(
    ("one", "other", "changed"),
    [
        (33, 33, False),
        (33, 32, True),
        (32, 33, True),
        (31, 30, False),
        (30, 29, True),
        (22, 18, False),
        (23, 22, True),
        (25, 23, False),
        (34, 33, False),
        (33, 7, True),
    ],
)
def test_whether_the_metadata_changed_between_two_levels(one: int, other: int, changed: bool) -> None:
    assert metadata_version.metadata_changed_between(one, other) is changed


@pytest.mark.parametrize(
    ("level", "broker", "partition"),
    [
        (7, 1, 0),
        (8, 2, 0),
        (16, 2, 0),
        (17, 3, 1),
        (22, 3, 1),
        (23, 3, 2),
        (29, 3, 2),
        (30, 4, 2),
        (33, 4, 2),
    ],
)
def test_record_versions(level: int, broker: int, partition: int) -> None:
    assert metadata_version.register_broker_record_version(level) == broker
    assert metadata_version.partition_record_version(level) == partition
    assert metadata_version.partition_change_record_version(level) == partition


def test_controllers_register_from_3_7_iv0_on() -> None:
    assert metadata_version.register_controller_record_version(15) == 0
    with pytest.raises(FeatureError, match=r"3\.6-IV2"):
        metadata_version.register_controller_record_version(14)


def test_each_gate_opens_at_its_level() -> None:
    first = {
        metadata_version.migration_supported: 8,
        metadata_version.scram_supported: 11,
        metadata_version.transactions_supported: 13,
        metadata_version.delegation_tokens_supported: 14,
        metadata_version.controller_registration_supported: 15,
        metadata_version.directory_assignment_supported: 17,
        metadata_version.elr_supported: 23,
        metadata_version.cordoned_dirs_supported: 30,
        metadata_version.cidr_acls_supported: 32,
        metadata_version.unregister_controller_supported: 33,
    }
    for gate, level in first.items():
        assert gate(level) and not gate(level - 1), gate.__name__
    assert metadata_version.leader_epoch_bump_on_isr_shrink(
        11
    ) and not metadata_version.leader_epoch_bump_on_isr_shrink(12)
