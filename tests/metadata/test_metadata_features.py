"""The features that a new cluster starts with, and those that are refused."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features.supported import (
    bootstrap_records,
    check_level,
    initial_levels,
    level_records,
    supported_ranges,
)


def test_what_a_controller_supports() -> None:
    assert supported_ranges() == {
        "metadata.version": (7, 33),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
    }
    assert supported_ranges(unstable=True)["metadata.version"] == (7, 34)


def test_the_latest_release_starts_with_everything() -> None:
    assert initial_levels() == {
        "metadata.version": 33,
        "kraft.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 2,
        "streams.version": 1,
    }


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        (7, {}),
        (21, {}),
        (22, {"group.version": 1}),
        (25, {"group.version": 1, "transaction.version": 2}),
        (27, {"group.version": 1, "transaction.version": 2, "eligible.leader.replicas.version": 1}),
    ],
)
def test_an_older_release_starts_with_less(release: int, levels: dict[str, int]) -> None:
    given = {name: level for name, level in initial_levels(release).items() if level > 0}
    assert given == {"metadata.version": release, "kraft.version": 1, **levels}


def test_bootstrap_records_begin_with_metadata_version_and_leave_kraft_version_out() -> None:
    records = bootstrap_records(30, {"share.version": 0, "transaction.version": 1})
    assert [(record.name, record.feature_level, at) for record, at in records] == [
        ("metadata.version", 30, 0),
        ("eligible.leader.replicas.version", 1, 0),
        ("group.version", 1, 0),
        ("streams.version", 1, 0),
        ("transaction.version", 1, 0),
    ]


def test_metadata_version_can_be_given_as_a_feature_but_not_twice() -> None:
    assert initial_levels(None, {"metadata.version": 25})["metadata.version"] == 25
    with pytest.raises(FeatureError, match="not both"):
        initial_levels(25, {"metadata.version": 25})


@pytest.mark.parametrize(
    ("release", "overrides", "reason"),
    [
        (None, {"foo.version": 1}, "foo.version is unknown"),
        (None, {"group.version": 2}, "group.version has no level 2; use 0 to 1"),
        (None, {"group.version": -1}, "group.version has no level -1"),
        (22, {"eligible.leader.replicas.version": 1}, r"needs metadata.version 23 \(4.0-IV1\)"),
        (34, {}, "4.5-IV0 is not stable yet"),
        (None, {"metadata.version": 6}, "metadata.version 6 is unknown"),
        (None, {"kraft.version": 0}, "does not go with this quorum"),
    ],
)
def test_impossible_combinations_are_refused(
    release: int | None, overrides: dict[str, int], reason: str
) -> None:
    with pytest.raises(FeatureError, match=reason):
        initial_levels(release, overrides)


def test_kraft_version_goes_with_the_kind_of_quorum() -> None:
    assert initial_levels(dynamic_quorum=False)["kraft.version"] == 0
    assert initial_levels(None, {"kraft.version": 0}, dynamic_quorum=False)["kraft.version"] == 0
    with pytest.raises(FeatureError, match=r"controller\.quorum\.voters"):
        initial_levels(None, {"kraft.version": 1}, dynamic_quorum=False)


def test_an_unstable_metadata_version_where_it_is_allowed() -> None:
    assert initial_levels(unstable=True)["metadata.version"] == 34


def test_check_level_looks_at_the_other_features() -> None:
    check_level("eligible.leader.replicas.version", 1, {"metadata.version": 23})
    check_level("group.version", 0, {})
    with pytest.raises(FeatureError, match=r"group.version 1 needs metadata.version 7 \(3.3-IV3\)"):
        check_level("group.version", 1, {})
    with pytest.raises(FeatureError, match="unknown"):
        check_level("foo", 1, {"metadata.version": 33})


def test_level_records_leave_out_what_is_off() -> None:
    records = level_records({"b": 1, "metadata.version": 33, "a": 0, "kraft.version": 1})
    assert [(record.name, record.feature_level) for record, _ in records] == [
        ("metadata.version", 33),
        ("b", 1),
    ]
