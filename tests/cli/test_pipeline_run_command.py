"""What ``kraft-wire pipeline run`` refuses before it starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.cli import main


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "give either --source or --bootstrap-controllers"),
        (
            ["--source", "/logs", "--bootstrap-controllers", "localhost:9093"],
            "give either --source or --bootstrap-controllers",
        ),
        (["--source", "/logs", "--option", "tail"], "--option tail: give NAME=VALUE"),
        (["--source", "/logs", "--setting", "=1"], "--setting =1: give NAME=VALUE"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "run", "--target", str(tmp_path / "lake"), *words]) == 1
    assert capsys.readouterr().err == f"kraft-wire: {reason}\n"
    assert not (tmp_path / "lake").exists()
