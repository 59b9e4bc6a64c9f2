"""Expected exceptions become one line; others are defects with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.cli.errors import (
    EXIT_FAILED,
    EXIT_USAGE,
    CommandError,
    UsageError,
    exit_status_of,
    explain,
    run_server,
)
from kraft_wire.controller.node.activation import ActivationError
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.metadata.errors import FeatureError, ReplayError
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.raft.errors import CannotStart, InvariantViolated
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.logging import LEVELS, UnknownLogSetting
from kraft_wire.storage.errors import FolderLocked


@pytest.mark.parametrize(
    "error",
    [
        ActivationError("the log is unfinished"),
        CannotStart("no voter"),
        CommandError("give one"),
        ConfigError("f", ["x"]),
        CorruptBatch(1, 2, "no"),
        DecodeError("Message", "field", 3, "no"),
        FeatureError("no such"),
        FolderLocked(Path("/data/.lock")),
        UnknownLogSetting("level", "loud", LEVELS, "--log-level"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_expected_errors_speak_for_themselves(error: Exception) -> None:
    assert explain(error) == str(error)


def test_errors_of_the_system_name_the_file() -> None:
    assert explain(FileNotFoundError(2, "No such file or directory", "/x")) == "/x: No such file or directory"
    assert explain(OSError(98, "Address already in use")) == "Address already in use"
    assert explain(OSError("plain")) == "plain"


@pytest.mark.parametrize(
    "error",
    [
        InvariantViolated("two leaders"),
        KeyError("x"),
        ReplayError("TopicRecord", 4, "no"),
        TypeError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_defects_need_their_traceback(error: Exception) -> None:
    assert explain(error) is None


@pytest.mark.parametrize(
    ("error", "event", "has_traceback"),
    [
        (FolderLocked(Path("/data/.lock")), f"fatal: {FolderLocked(Path('/data/.lock'))}", False),
        (InvariantViolated("two leaders"), "fatal: internal error: InvariantViolated: two leaders", True),
    ],
)
def test_what_ends_a_server_is_an_entry_of_its_log_with_the_cause_first(
    error: Exception, event: str, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def run() -> int:
        raise error

    assert run_server(run) == EXIT_FAILED
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == event
    assert record.__dict__["fields"] == {"error": type(error).__name__}
    assert (record.exc_info is not None) == has_traceback


def test_a_server_that_ends_in_peace_says_how() -> None:
    assert run_server(lambda: 129) == 129


def test_wrong_usage_has_an_exit_status_of_its_own() -> None:
    assert exit_status_of(UsageError("give one")) == EXIT_USAGE == 2
    assert exit_status_of(UnknownLogSetting("level", "loud", LEVELS, "--log-level")) == EXIT_USAGE
    assert exit_status_of(CommandError("no")) == exit_status_of(OSError("no")) == EXIT_FAILED
