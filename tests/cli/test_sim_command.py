"""``kraft-wire sim``: what it prints around its runs."""

from __future__ import annotations

import pytest

from kraft_wire.cli import main
from kraft_wire.cli.sim import LEGEND

Capture = pytest.CaptureFixture[str]


def test_it_ends_with_how_many_seeds_passed(capsys: Capture) -> None:
    assert main(["sim", "--seeds", "2", "--seconds", "2"]) == 0
    first, second, summary = capsys.readouterr().out.splitlines()
    assert first.startswith("seed 1: ") and second.startswith("seed 2: ")
    assert summary == "2 seeds passed"
    assert main(["sim", "--seed", "2", "--seconds", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [second, "1 seed passed"]


def test_a_trace_begins_with_its_legend_and_has_the_same_hash(capsys: Capture) -> None:
    assert main(["sim", "--seconds", "2"]) == 0
    quiet = capsys.readouterr().out
    assert main(["sim", "--seconds", "2", "--trace"]) == 0
    traced = capsys.readouterr().out
    assert traced.startswith(LEGEND) and traced.endswith(quiet)
    assert traced.count(LEGEND) == 1
    start = traced.removeprefix(LEGEND).splitlines()[0].split()
    assert start[2:4] == ["Start", "->"]
    assert len(start) == len(["TIME", "NODE", "EVENT", "->"]) + 7 + len(["takes", "N"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--seeds", "0"], "--seconds and --seeds must be at least 1"),
        (["--options", "{}", "--seed", "3"], "--options describes the whole run: leave out --seed,"),
        (["--options", "x"], "--options isn't what a failed run printed: "),
    ],
)
def test_wrong_usage(words: list[str], complaint: str, capsys: Capture) -> None:
    assert main(["sim", *words]) == 2
    assert complaint in capsys.readouterr().err
