"""Seeds hold, and a run is the same every time."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from kraft_wire.cli import main
from kraft_wire.sim.minimise import Minimiser
from kraft_wire.sim.options import Options
from kraft_wire.sim.simulation import simulate
from kraft_wire.sim.swarm import options_of, schedule_of
from tests.sim.planted_bugs import planted
from tests.sim.scenario import assert_they_hold, seconds_of

SEEDS = 200
SEEDS_A_TEST = 10
SECONDS = 60
LONG_SECONDS = 120

REPEATED = """
from kraft_wire.sim.simulation import simulate
from kraft_wire.sim.swarm import controllers_of, membership_of, options_of
for seed in range(20):
    draw = {0: controllers_of, 1: membership_of}.get(seed % 5, options_of)
    print(seed, simulate(draw(seed, 20)).hash)
"""


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_seeds_hold(first: int) -> None:
    seeds = range(first, first + SEEDS_A_TEST)
    assert_they_hold(options_of(seed, seconds_of(seed, SECONDS, LONG_SECONDS)) for seed in seeds)


def test_a_seed_is_the_same_run_for_every_hash_seed_of_python() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", REPEATED],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    one, other = (run.communicate()[0].splitlines() for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert len(one) == 20
    assert one == other


def test_a_printed_trace_is_the_run_of_its_hash() -> None:
    lines: list[str] = []
    result = simulate(options_of(3, 10), lines.append)
    assert result.hash == simulate(options_of(3, 10)).hash
    assert len(lines) > 1_000


def test_options_survive_json() -> None:
    options = options_of(5)
    assert msgspec.json.decode(msgspec.json.encode(options), type=Options) == options


def test_a_failing_run_shrinks() -> None:
    with planted("damage_is_taken_for_a_torn_tail"):
        failed = simulate(options_of(6, 60))
        smallest = Minimiser(failed).minimise()
        assert simulate(smallest.options) == smallest, "it replays"
    assert failed.invariant == smallest.invariant
    assert len(schedule_of(smallest.options)) < len(schedule_of(failed.options)) / 2
    assert smallest.options.seconds < failed.options.seconds


def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--seed", "2", "--seconds", "5"]) == 0
    assert "simulated seconds" in capsys.readouterr().out
    with planted("the_high_watermark_is_off_by_one"):
        assert main(["sim", "--seed", "2", "--seconds", "5"]) == 1
    said = capsys.readouterr().out
    assert "MajorityReachedHighWatermark" in said
    assert "commit " in said
    options = said[said.index("--options ") :].split("'")[1]
    assert main(["sim", "--options", options]) == 0, "without the bug nothing is wrong"
    assert main(["sim", "--options", "{}"]) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--options", '{"seed":1,"bogus":3}'], "unknown field `bogus`"),
        (["--options", '{"seed":1,"disk":{"bogus":3}}'], "unknown field `bogus`"),
        (["--options", '{"seed":1,"seconds":-4}'], "`int` >= 1"),
        (["--options", '{"seed":1}', "--seed", "3"], "leave out --seed"),
        (["--seconds", "0"], "at least 1"),
    ],
)
def test_impossible_options_are_refused(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *arguments]) == 2
    assert reason in capsys.readouterr().err
