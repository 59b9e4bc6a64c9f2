"""The replay of dynamic configurations."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kraft_wire.metadata.configs import Configs, ResourceType
from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.config_record import ConfigRecord

BROKER = ResourceType.BROKER
MANY = 3_000
"""If each of so many changes kept all values of the resource, they would take 100 MB or more."""
BYTES = 10_000_000


@pytest.fixture
def journal() -> Journal:
    journal = Journal()
    journal.recording = True
    return journal


def replay(configs: Configs, journal: Journal, values: dict[str, str | None]) -> None:
    for name, value in values.items():
        journal.offset += 1
        configs.replay(ConfigRecord(BROKER, "", name, value), journal.offset)


@contextmanager
def few_bytes_at_any_time() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < BYTES
    finally:
        tracemalloc.stop()


def test_many_keys_of_one_resource_take_memory_for_each_key_once(journal: Journal) -> None:
    configs = Configs(journal)
    with few_bytes_at_any_time():
        replay(configs, journal, {f"key-{number}": "1" for number in range(MANY)})
        replay(configs, journal, {f"key-{number}": None for number in range(1, MANY)})
    assert configs.get(BROKER, "") == {"key-0": "1"}
    journal.undo_to(MANY)
    assert len(configs.get(BROKER, "")) == MANY
    journal.undo_to(0)
    assert list(configs.resources()) == []


def test_a_resource_whose_last_value_was_removed_comes_back_with_the_undo(journal: Journal) -> None:
    configs = Configs(journal)
    replay(configs, journal, {"a": "1", "b": "2"})
    replay(configs, journal, {"a": None, "b": None})
    assert list(configs.resources()) == []
    replay(configs, journal, {"b": "3"})
    redo = journal.undo_with_redo(2)
    assert configs.get(BROKER, "") == {"a": "1", "b": "2"}
    journal.redo(redo)
    assert configs.get(BROKER, "") == {"b": "3"}
    journal.undo_to(3)
    assert configs.get(BROKER, "") == {"b": "2"}


def test_the_removal_of_a_value_that_is_not_set_changes_nothing(journal: Journal) -> None:
    configs = Configs(journal)
    replay(configs, journal, {"a": None})
    replay(configs, journal, {"b": "1"})
    replay(configs, journal, {"a": None})
    assert configs.get(BROKER, "") == {"b": "1"}


def test_selected_values_have_the_given_keys(journal: Journal) -> None:
    configs = Configs(journal)
    replay(configs, journal, {f"key-{number}": str(number) for number in range(100)})
    assert configs.selected(BROKER, "", {"key-7", "key-99", "other"}) == {"key-7": "7", "key-99": "99"}
    assert configs.selected(BROKER, "1", {"key-7"}) == {}
