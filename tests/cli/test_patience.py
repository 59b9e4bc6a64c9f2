"""What a command waits for is said when it takes a while, and once."""

from __future__ import annotations

import pytest

from kraft_wire.cli.quorum import patience
from kraft_wire.cli.quorum.patience import no_leader_yet, said_if_slow
from kraft_wire.wire.address import Address
from tests.support.live_quorum import settings
from tests.support.waiting import wait_until

Capture = pytest.CaptureFixture[str]


def test_a_slow_step_says_what_it_waits_for(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SAID_AFTER_S", 0.0)
    with said_if_slow("waiting for the commit"):
        wait_until(lambda: capsys.readouterr().err == "kraft-wire: waiting for the commit\n", "the word")


def test_a_step_that_is_over_says_nothing(capsys: Capture) -> None:
    with pytest.raises(ZeroDivisionError), said_if_slow("waiting for the commit"):
        raise ZeroDivisionError
    assert capsys.readouterr().err == ""


def test_the_same_problems_are_said_once(capsys: Capture) -> None:
    say = no_leader_yet(settings("c1:9093", api_timeout_ms=1500))
    for problem in ("Connection refused", "Connection refused", "timed out"):
        say({Address("c1", 9093): problem})
    assert capsys.readouterr().err.splitlines() == [
        "kraft-wire: no leader yet, asking for up to 1.5 s: c1:9093: Connection refused",
        "kraft-wire: no leader yet, asking for up to 1.5 s: c1:9093: timed out",
    ]
