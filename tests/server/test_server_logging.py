"""Structured logs: what a line holds, on a terminal and elsewhere."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.server.logging import (
    FORMAT_VARIABLE,
    LEVEL_VARIABLE,
    UnknownLogSetting,
    configure,
    get_logger,
    log_format,
    log_level,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def json_lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_holds_the_event_its_fields_and_where_it_came_from() -> None:
    stream = io.StringIO()
    configure("info", stream)
    get_logger("kraft_wire.server.node").bind(node_id=3).info("broker registered", broker_id=1, host="a b\n")
    (line,) = json_lines(stream)
    assert line.pop("time")
    assert line == {
        "level": "info",
        "logger": "kraft_wire.server.node",
        "event": "broker registered",
        "node_id": 3,
        "broker_id": 1,
        "host": "a b\n",
    }


def test_a_terminal_gets_one_readable_line_with_control_characters_escaped() -> None:
    stream = Terminal()
    configure("debug", stream)
    get_logger("kraft_wire.server.peer").debug("frame refused", peer="127.0.0.1:9", reason="bad\nname")
    clock, rest = stream.getvalue().split(" ", 1)
    assert len(clock) == len("12:00:00.000")
    assert rest == "DEBUG   peer: frame refused peer=127.0.0.1:9 reason='bad\\nname'\n"


def test_levels_below_the_configured_one_are_silent() -> None:
    stream = io.StringIO()
    configure("warning", stream)
    log = get_logger("x")
    log.info("no")
    log.debug("no")
    log.warning("yes")
    log.error("yes too")
    assert [line["event"] for line in json_lines(stream)] == ["yes", "yes too"]


def test_configuring_again_replaces_the_destination() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", first)
    configure("info", second)
    get_logger("x").info("once")
    assert first.getvalue() == ""
    assert len(json_lines(second)) == 1


def test_an_exception_carries_its_traceback() -> None:
    stream = io.StringIO()
    configure("info", stream)
    try:
        raise RuntimeError("broken invariant")
    except RuntimeError:
        get_logger("x").exception("stopping", offset=7)
    (line,) = json_lines(stream)
    assert line["level"] == "error"
    assert line["offset"] == 7
    assert "RuntimeError: broken invariant" in str(line["traceback"])


@pytest.mark.parametrize(
    "value",
    ["\ud800", object(), b"\xff", {1: "x"}, float("inf"), 1 << 70, {"k": {object()}}, Uuid(bytes(16)), None],
)
def test_no_value_costs_the_event(value: object) -> None:
    for stream in (io.StringIO(), Terminal()):
        configure("info", stream)
        get_logger("x").info("odd value", value=value)
        assert "odd value" in stream.getvalue()
        assert stream.getvalue().count("\n") == 1


def test_a_field_that_is_named_like_the_line_s_own_keeps_both() -> None:
    stream = io.StringIO()
    configure("info", stream)
    get_logger("x").info("started", level=5)
    (line,) = json_lines(stream)
    assert (line["level"], line["level_"]) == ("info", 5)


def test_other_libraries_lines_come_out_in_the_same_form() -> None:
    stream = io.StringIO()
    configure("info", stream)
    logging.getLogger("elsewhere").warning("lost %d", 3)
    (line,) = json_lines(stream)
    assert (line["logger"], line["event"]) == ("elsewhere", "lost 3")


def test_the_level_comes_from_the_option_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEVEL_VARIABLE, raising=False)
    assert log_level(None) == "info"
    monkeypatch.setenv(LEVEL_VARIABLE, "DEBUG")
    assert log_level(None) == "debug"
    assert log_level("error") == "error"
    with pytest.raises(
        UnknownLogSetting, match=r"--log-level: unknown log level 'loud'; use one of debug, info"
    ):
        log_level("loud")


def test_the_format_comes_from_the_option_then_the_environment_then_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(FORMAT_VARIABLE, raising=False)
    assert log_format(None) is None
    monkeypatch.setenv(FORMAT_VARIABLE, "json")
    assert log_format(None) == "json"
    assert log_format("text") == "text"
    monkeypatch.setenv(FORMAT_VARIABLE, "yaml")
    with pytest.raises(
        UnknownLogSetting, match=f"{FORMAT_VARIABLE}: unknown log format 'yaml'; use one of text, json"
    ):
        log_format(None)
    for stream in (io.StringIO(), Terminal()):
        configure("info", stream, "text")
        get_logger("x").info("started")
        configure("info", stream, "json")
        get_logger("x").info("started")
        text, json_text = stream.getvalue().splitlines()
        assert text.endswith("INFO    x: started")
        assert json.loads(json_text)["event"] == "started"


def test_a_list_is_its_items_in_text() -> None:
    terminal = Terminal()
    configure("info", terminal)
    get_logger("x").info("started", voters=["1@a:9093", "2@b c"], none=[])
    assert terminal.getvalue().endswith("started voters=1@a:9093,'2@b c' none=none\n")


def test_none_is_null_in_json_and_none_in_text() -> None:
    terminal, machine = Terminal(), io.StringIO()
    for stream in (terminal, machine):
        configure("info", stream)
        get_logger("x").info("role changed", leader_id=None)
    assert terminal.getvalue().endswith("role changed leader_id=none\n")
    assert json_lines(machine)[0]["leader_id"] is None


def test_a_closed_stderr_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    configure("info")
    get_logger("x").error("nobody reads this")
