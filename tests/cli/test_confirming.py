"""The question before a change, and what is said of an interruption."""

from __future__ import annotations

import io
import os
import sys

import pytest

from kraft_wire.cli.errors import EXIT_INTERRUPTED, Interrupted, exit_status_of
from kraft_wire.cli.quorum import NotConfirmed
from kraft_wire.cli.quorum.confirming import confirm, interruption_says
from kraft_wire.cli.quorum.connecting import led_quorum, settings_of


class Terminal(io.StringIO):
    """A terminal on which somebody has typed this text, and then Ctrl-D."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return READABLE


READABLE = os.open(os.devnull, os.O_RDONLY)


def interrupted() -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize("typed", ["", "no\n", "\n"])
def test_another_answer_or_ctrl_d_does_not_confirm(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with pytest.raises(NotConfirmed, match="nothing was changed: not confirmed"):
        confirm()


def test_yes_confirms(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    confirm()
    assert capsys.readouterr().out == "Type yes to go on: "


def test_ctrl_c_at_the_question_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("builtins.input", interrupted)
    with pytest.raises(Interrupted, match="interrupted: nothing was changed") as raised:
        confirm()
    assert exit_status_of(raised.value) == EXIT_INTERRUPTED


def test_ctrl_c_while_a_command_waits_says_what_was_changed() -> None:
    settings = settings_of("127.0.0.1:1", None, 1000)
    with pytest.raises(Interrupted, match="interrupted: nothing was changed"), led_quorum(settings):
        raise KeyboardInterrupt
    with (
        pytest.raises(Interrupted, match="interrupted: it was sent"),
        led_quorum(settings),
        interruption_says("interrupted: it was sent"),
    ):
        raise KeyboardInterrupt
