"""The levels of this process's loggers, in Kafka's words."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kraft_wire.server.log_levels import log_levels, set_log_levels


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Two loggers, one below the other. The root's level stays as it is."""
    root_level = logging.root.level
    logging.getLogger("levels.of").setLevel(logging.NOTSET)
    logging.getLogger("levels.of.this").setLevel(logging.NOTSET)
    yield
    logging.root.setLevel(root_level)


def test_a_logger_has_the_level_of_the_one_above_it_until_it_has_its_own() -> None:
    set_log_levels({"levels.of": "ERROR"})
    assert log_levels()["levels.of.this"] == "ERROR"
    set_log_levels({"levels.of.this": "DEBUG"})
    assert logging.getLogger("levels.of.this").isEnabledFor(logging.DEBUG)
    assert (log_levels()["levels.of"], log_levels()["levels.of.this"]) == ("ERROR", "DEBUG")
    set_log_levels({"levels.of.this": None})
    assert log_levels()["levels.of.this"] == "ERROR"


def test_a_name_above_all_loggers_of_a_package_is_a_logger_too() -> None:
    assert "levels" in log_levels()


@pytest.mark.parametrize("level", ["FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"])
def test_each_level_is_named_as_it_was_set(level: str) -> None:
    set_log_levels({"root": level})
    assert log_levels()["root"] == level
