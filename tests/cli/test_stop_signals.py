"""The first signal asks a command to stop, and another one stops it."""

from __future__ import annotations

import os
import signal
import time

import pytest

from kraft_wire.cli.stop_signals import StopSignals


def kill(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_the_first_signal_is_noted_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    with StopSignals("in a moment") as signals:
        kill(signal.SIGTERM)
        assert signals.came == signal.SIGTERM
        kill(signal.SIGTERM)  # to the process's group
    assert capsys.readouterr().err == "in a moment\n"


def test_one_more_signal_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    with StopSignals("in a moment") as signals:
        kill(signal.SIGINT)
        later_s = time.monotonic() + 2
        monkeypatch.setattr(time, "monotonic", lambda: later_s)
        with pytest.raises(KeyboardInterrupt):
            kill(signal.SIGTERM)
        assert signals.came == signal.SIGINT


def test_signals_are_then_what_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopSignals("in a moment"):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
