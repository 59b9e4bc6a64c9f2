"""The command behind `make campaign`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.sim.campaign import Tally, main, run_seed
from tests.sim.planted_bugs import planted


def test_a_campaign_writes_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "result.txt"
    arguments = ["--seeds", "3", "--first", "7", "--seconds", "5", "--jobs", "2", "--result", str(result)]
    assert main(arguments) == 0
    said = result.read_text()
    assert said in capsys.readouterr().out
    rows = dict(line.split(maxsplit=1) for line in said.splitlines()[2:])
    assert rows["seeds"] == "3 (7 to 9), as cores, controllers, changing voters"
    assert rows["runs"] == "9"
    assert rows["violations"] == "0"


def test_a_campaign_ends_when_its_time_is_over(tmp_path: Path) -> None:
    result = tmp_path / "result.txt"
    assert main(["--hours", "0", "--result", str(result)]) == 0
    assert "0 (1000000 to 1000000)" in result.read_text()


def test_a_failing_seed_is_minimised() -> None:
    tally = Tally(11, 1)
    with planted("the_high_watermark_is_off_by_one"):
        tally.add(11, run_seed(11, 10))
    failed = tally.violations[0]
    assert failed.options.seconds < 10
    assert f"seed 11: {failed.violation}" in tally.report()
    assert msgspec.json.encode(failed.options).decode() in tally.report()
