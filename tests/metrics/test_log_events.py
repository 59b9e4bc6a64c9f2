"""A metric and a log event of the same thing have the same name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraft_wire.metrics.definition import PREFIX, Definition
from kraft_wire.metrics.definitions import DEFINITIONS
from tests.support.log_events import logged_events

ROOT = Path(__file__).parents[2]
LOGGED = logged_events()
NAMED = {name: each for name, each in DEFINITIONS.items() if each.event}


def words(definition: Definition) -> str:
    """Return the words of a metric's name, without its kind and unit, and without plurals."""
    name = definition.name.removeprefix(PREFIX).removesuffix("_total")
    if definition.unit:
        name = name.removesuffix(f"_{definition.unit}")
    return re.sub(r"s\b", "", name.replace("_", " "))


@pytest.mark.parametrize("definition", NAMED.values(), ids=NAMED)
def test_it_is_logged_under_the_metrics_name(definition: Definition) -> None:
    assert definition.event in LOGGED
    assert words(definition) == re.sub(r"s\b", "", definition.event)


def test_an_event_with_a_metrics_words_says_so() -> None:
    named = {each.event for each in NAMED.values()}
    by_words = {words(each): each.name for each in DEFINITIONS.values()}
    unsaid = {
        event: by_words[words_of_event]
        for event in LOGGED - named
        if (words_of_event := re.sub(r"s\b", "", event)) in by_words
    }
    assert unsaid == {}


def test_the_page_has_the_events_and_metrics_that_are_the_same() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    table = page.split("### Names in the log")[1].split("Every warning")[0]
    rows = dict(re.findall(r"^\| `([^`]+)` \| `(\w+)` \|$", table, re.MULTILINE))
    assert rows == {each.event: each.name for each in NAMED.values()}


def test_the_page_has_events_that_are_logged() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    exceptions = page.split("Some names differ")[1].split("### The quorum")[0]
    events = {
        event
        for row in re.findall(r"^\| (`[^|]+) \|", exceptions, re.MULTILINE)
        for event in re.findall(r"`([^`]+)`", row)
    }
    assert len(events) > 5
    from_records = {"broker fenced", "broker unfenced"}  # chosen by a condition
    assert events - from_records <= LOGGED
