"""Options as Spark passes them: names in lower case, all values text."""

from __future__ import annotations

import re

import pytest

from kraft_wire.logs.positions import LogPosition
from kraft_wire.spark.options import COMMITTED, EARLIEST, LATEST, BadOption, Options, parse_options

PATH = {"path": "/logs"}


def parsed(**options: str) -> Options:
    return parse_options({**PATH, **{name.lower(): text for name, text in options.items()}})


def test_what_is_not_said_has_defaults() -> None:
    assert parsed() == Options(("/logs",))
    assert parsed().starting_offsets is None
    assert parsed().ending_offsets == LATEST


def test_everything_that_can_be_said() -> None:
    one = '{"one": {"epoch": 1, "offset": 5}}'
    options = parsed(
        table="partition_change",
        columns="offset, topic_id",
        tail="committed",
        startingOffsets="earliest",
        endingOffsets=one,
        failOnDataLoss="FALSE",
        corrupt="row",
        maxOffsetsPerTrigger="1000",
        pushFilters="true",
    )
    assert options == Options(
        ("/logs",),
        "partition_change",
        ("offset", "topic_id"),
        COMMITTED,
        EARLIEST,
        {"one": LogPosition(1, 5)},
        fail_on_data_loss=False,
        corrupt="row",
        max_offsets_per_trigger=1000,
        push_filters=True,
    )
    assert parsed(maxBytesPerTrigger="5").max_bytes_per_trigger == 5


def test_paths_are_one_or_several() -> None:
    assert parse_options({"paths": '["/a", "/b*"]'}).paths == ("/a", "/b*")
    assert parsed(paths='["/a"]').paths == ("/logs", "/a")
    with pytest.raises(BadOption, match="path: give a folder"):
        parse_options({})


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("table", "partitons", "there is no 'partitons'; there are records, corrupt, abort_transaction"),
        ("columns", "ofset", "records has no ofset; it has cluster, offset"),
        ("tail", "some", "tail: 'some' is not all or committed"),
        ("startingOffsets", "first", "startingOffsets: 'first' is not earliest, latest, snapshot, or JSON"),
        ("startingOffsets", '{"one": 5}', "startingOffsets: .* is not .*Expected `object`"),
        ("endingOffsets", "earliest", "endingOffsets: 'earliest' is not latest, or JSON"),
        ("failOnDataLoss", "no", "failOnDataLoss: 'no' is not true or false"),
        ("corrupt", "skip", "corrupt: 'skip' is not fail or row"),
        ("maxOffsetsPerTrigger", "0", "maxOffsetsPerTrigger: '0' is not a number above 0"),
        ("maxBytesPerTrigger", "1m", "maxBytesPerTrigger: '1m' is not a number above 0"),
        ("pushFilters", "1", "pushFilters: '1' is not true or false"),
        ("paths", "/a", "paths: '/a' is not a JSON list"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_with_what_it_may_be(name: str, text: str, what: str) -> None:
    with pytest.raises(BadOption, match=what):
        parsed(**{name: text})


def test_one_limit_is_enough() -> None:
    with pytest.raises(BadOption, match="give one of them"):
        parsed(maxOffsetsPerTrigger="1", maxBytesPerTrigger="1")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tial", " (did you mean tail?)"),
        ("startingOffset", " (did you mean startingOffsets?)"),
        ("sasl.mechanism", " (did you mean kafka.sasl.mechanism?)"),
        ("x", ""),
    ],
)
def test_an_option_that_is_misspelt_is_no_default(name: str, hint: str) -> None:
    message = re.escape(f"{name.lower()}: no such option{hint}; there are path, ")
    with pytest.raises(BadOption, match=message):
        parsed(**{name: "committed"})


def test_the_names_of_all_options_are_known() -> None:
    """Also those of the connection to a quorum."""
    options = {"bootstrap.controllers": "one:9093", "cluster.id": "two", "kafka.security.protocol": "SSL"}
    assert parse_options({**options, "request.timeout.ms": "1", "default.api.timeout.ms": "2"}).quorum
