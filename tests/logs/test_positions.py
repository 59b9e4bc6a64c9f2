"""Positions, and their JSON in options and checkpoints."""

from __future__ import annotations

import pytest

from kraft_wire.logs.positions import (
    LogPosition,
    Positions,
    parse_positions,
    positions_from,
    positions_json,
    positions_tree,
)

BOTH: Positions = {"one": LogPosition(3, 107), "another": LogPosition(2, 50, snapshot=True)}


def test_json_says_what_the_positions_are() -> None:
    text = positions_json(BOTH)
    expected = '{"another":{"epoch":2,"offset":50,"snapshot":true},"one":{"epoch":3,"offset":107}}'
    assert text == expected
    assert parse_positions(text) == BOTH


def test_a_tree_is_what_json_stands_for() -> None:
    tree = positions_tree(BOTH)
    assert tree["one"] == {"epoch": 3, "offset": 107}
    assert positions_from(tree) == BOTH


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("latest", "malformed"),
        ("[]", "Expected `object`"),
        ('{"one": 5}', "Expected `object`, got `int`"),
        ('{"one": {"offset": 5}}', "required field `epoch`"),
        ('{"one": {"epoch": 1, "offset": -5}}', ">= 0"),
        ('{"one": {"epoch": 1, "offset": 5, "partition": 0}}', "unknown field `partition`"),
    ],
)
def test_what_are_no_positions_is_an_error_that_says_why(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_positions(text)
