"""What each exporter has exported: the file, and the pauses between attempts."""

from __future__ import annotations

import pytest

from kraft_wire.configs.exporter_orders import Start
from kraft_wire.exporters.positions import Kept, parse_positions, positions_text, wanted_from
from kraft_wire.exporters.retries import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, pause_ms
from kraft_wire.log.errors import MalformedFile


def test_positions_are_read_as_they_were_written() -> None:
    kept = Kept({"b": 5, "a": 0})
    text = positions_text("c", kept)
    assert text == '{"version":1,"cluster":"c","positions":{"a":0,"b":5}}\n'
    assert parse_positions(text, "c") == kept


def test_resets_are_read_as_they_were_written() -> None:
    kept = Kept({"b": 5}, {"a": "tail@1"})
    text = positions_text("c", kept)
    assert text == '{"version":2,"cluster":"c","positions":{"b":5},"resets":{"a":"tail@1"}}\n'
    assert parse_positions(text, "c") == kept


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "exporters.json: "),
        ("[]", "exporters.json: "),
        ('{"version":3,"cluster":"c","positions":{}}', "version 3 is unknown"),
        ('{"version":1,"cluster":"d","positions":{}}', "holds positions of cluster d, not of c"),
        ('{"version":1,"cluster":"c","positions":{"a":-1}}', ">= 0"),
    ],
)
def test_what_can_not_be_used_is_said(text: str, problem: str) -> None:
    with pytest.raises(MalformedFile, match=problem):
        parse_positions(text, "c")


def test_an_exporter_that_was_removed_is_gone() -> None:
    kept = Kept({"a": 1, "b": 2}, {"a": "tail@1", "c": "0@2"})
    assert kept.of(["b", "c"]) == Kept({"b": 2}, {"c": "0@2"})


@pytest.mark.parametrize(
    ("positions", "starts", "expected"),
    [
        ({"a": 5, "b": 2}, {"a": "tail", "b": 0}, 2),
        ({"a": 5, "gone": 2}, {"a": "tail"}, 5),
        ({"a": 5}, {"a": "tail", "b": "snapshot+tail"}, 5),
        ({"a": 5}, {"a": "tail", "b": 0}, 0),
        ({}, {"a": "tail"}, None),
        ({}, {}, None),
    ],
)
def test_the_log_keeps_what_any_exporter_needs(
    positions: dict[str, int], starts: dict[str, Start], expected: int | None
) -> None:
    assert wanted_from(positions, starts) == expected


def test_pauses_grow_up_to_a_limit_and_for_ever() -> None:
    full = [pause_ms(failures, 1.0) for failures in range(1, 12)]
    assert full[:4] == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS, 8 * FIRST_PAUSE_MS]
    assert full == sorted(full)
    assert full[-1] == pause_ms(10**6, 1.0) == LONGEST_PAUSE_MS
    assert [pause_ms(failures, 0.0) for failures in range(1, 12)] == [pause // 2 for pause in full]
