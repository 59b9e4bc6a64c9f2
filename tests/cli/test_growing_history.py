"""The history of a running quorum is read on from where it was read before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraft_wire.cli.quorum.history import GrowingHistory
from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.quorum import QuorumClient
from tests.support.controller_process import ControllerProcess, formatted
from tests.support.live_quorum import QUIET, TRIMMED, address_of, settings, write


def _read_from(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the offsets from which the log is read from now on."""
    found: list[int] = []
    real = LiveLog.batches

    def batches(self: LiveLog, start_offset: int, *given: Any) -> Any:
        found.append(start_offset)
        return real(self, start_offset, *given)

    monkeypatch.setattr(LiveLog, "batches", batches)
    return found


def test_only_what_is_new_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = formatted(tmp_path, QUIET)
    with ControllerProcess(file) as controller, QuorumClient(settings(address_of(controller))) as quorum:
        history, read_from = GrowingHistory(quorum), _read_from(monkeypatch)
        first = history.read()
        assert len(first.changes) == 1
        with controller.client() as client:
            write(client, range(3))
            end_offset = LiveLog(quorum).ends().high_watermark
            assert history.read() is first
            assert history.read() is first, "and nothing if there is nothing new"
            write(client, range(3, 4))
        history.read()
        assert len(first.changes) == 1
        assert read_from == [0, end_offset - 3, end_offset]


def test_a_log_that_was_trimmed_meanwhile_is_read_from_its_snapshot(tmp_path: Path) -> None:
    file = formatted(tmp_path, TRIMMED)
    with ControllerProcess(file) as controller, QuorumClient(settings(address_of(controller))) as quorum:
        history = GrowingHistory(quorum)
        first = history.read()
        with controller.client() as client:
            write(client, range(600))
        controller.wait_for("log trimmed")
        again = history.read()
        assert again is not first
        assert [change.voters for change in again.changes] == [change.voters for change in first.changes]
