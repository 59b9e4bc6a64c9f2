"""Write down what became of the controllers. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import quantiles
from typing import Final

from compat.campaigns.strangers.phases import Phase, Trial
from compat.campaigns.strangers.rules import CREATE_GOAL_MS, shortest_leadership_s

COLUMN: Final = 14
NAME: Final = 26
MOST_VIOLATIONS: Final = 50


def describe(trials: Sequence[Trial], header: Sequence[tuple[str, str]]) -> str:
    """Return the result as text; ``header`` has the first lines, as names and values."""
    lines = [f"{name:<{NAME}}{value}" for name, value in header]
    for trial in trials:
        lines += ["", *_trial(trial)]
    violations = [line for trial in trials for line in trial.violations]
    lines += ["", f"{'violations':<{NAME}}{len(violations):,}", *violations[:MOST_VIOLATIONS]]
    if len(violations) > MOST_VIOLATIONS:
        lines.append(f"... and {len(violations) - MOST_VIOLATIONS:,} more")
    return "\n".join(lines) + "\n"


def _trial(trial: Trial) -> Iterator[str]:
    yield trial.name
    yield _row("", [phase.name for phase in trial.phases])
    for name, value in ROWS:
        yield _row(name, [value(phase) for phase in trial.phases])
    longest_ms = {phase.name: _longest(phase.figures.creations_ms) for phase in trial.phases}
    if "outsiders" in longest_ms:
        verdict = "reached" if longest_ms["outsiders"] <= CREATE_GOAL_MS else "missed"
        yield _line(
            "longest create-topic",
            f"{longest_ms['outsiders']:.1f} ms with outsiders, goal {CREATE_GOAL_MS:.0f} ms: {verdict}; "
            f"{longest_ms['quiet']:.1f} ms without",
        )
    if trial.well_after_restart_s is not None:
        yield _line(
            "well after a restart", f"{trial.well_after_restart_s:.1f} s after all nodes were started"
        )
    yield _line("topics", f"{trial.acknowledged:,} acknowledged, {trial.unknown:,} with unknown result")
    yield _line("topics compared", "on every node" if trial.is_compared else "no: the run was broken off")


def _row(name: str, values: Sequence[str]) -> str:
    return f"  {name:<{NAME - 2}}" + "".join(f"{value:>{COLUMN}}" for value in values)


def _line(name: str, text: str) -> str:
    return f"  {name:<{NAME - 2}}{text}"


def _longest(times_ms: Sequence[float]) -> float:
    return max(times_ms, default=0.0)


def _of_deeds(value: Callable[[Phase], str]) -> Callable[[Phase], str]:
    return lambda phase: "-" if phase.deeds is None else value(phase)


def _percentile(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return max(values, default=0.0)
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _shortest(phase: Phase) -> str:
    shortest_s = shortest_leadership_s(phase.leaderships)
    return "-" if shortest_s is None else f"{shortest_s:.1f} s"


def _seconds(after_s: float | None) -> str:
    return "-" if after_s is None else f"{after_s:.1f} s"


def _count_of(phase: Phase) -> int:
    return 0 if phase.deeds is None else phase.deeds.sent


def _count(name: str) -> Callable[[Phase], str]:
    return _of_deeds(lambda phase: f"{getattr(phase.deeds, name):,}")


ROWS: Final[tuple[tuple[str, Callable[[Phase], str]], ...]] = (
    ("seconds", lambda phase: f"{phase.took_s:.0f}"),
    ("restarts of nodes", lambda phase: f"{phase.restarts}"),
    ("seed", lambda phase: "-" if phase.seed is None else f"{phase.seed}"),
    ("strangers' requests", _count("sent")),
    ("... a second", _of_deeds(lambda phase: f"{_count_of(phase) / phase.took_s:.0f}")),
    ("... answered", _count("answered")),
    ("... votes granted", _count("granted")),
    ("... pre-votes granted", _count("granted_pre_votes")),
    ("... connections closed", _count("closed")),
    ("nodes at the fake leader", _count("visits")),
    ("... asking for a voter", _count("questions")),
    ("looks at the nodes", lambda phase: f"{phase.looks:,}"),
    ("leaders elected", lambda phase: f"{len(phase.leaderships)}"),
    ("shortest leadership", _shortest),
    ("epoch before", lambda phase: f"{phase.epochs[0]:,}"),
    ("epoch after", lambda phase: f"{phase.epochs[1]:,}"),
    ("topics created", lambda phase: f"{len(phase.figures.creations_ms):,}"),
    ("create-topic p50", lambda phase: f"{_percentile(phase.figures.creations_ms, 50):.1f} ms"),
    ("create-topic p99", lambda phase: f"{_percentile(phase.figures.creations_ms, 99):.1f} ms"),
    ("longest create-topic", lambda phase: f"{_longest(phase.figures.creations_ms):.1f} ms"),
    ("heartbeat p99", lambda phase: f"{_percentile(phase.figures.heartbeats_ms, 99):.1f} ms"),
    ("longest heartbeat", lambda phase: f"{_longest(phase.figures.heartbeats_ms):.1f} ms"),
    ("well after last request", lambda phase: _seconds(phase.well_after_s)),
    ("well after the starts", lambda phase: _seconds(phase.well_after_starts_s)),
    ("brokers seen fenced", lambda phase: f"{phase.figures.fenced}"),
    ("clients' failures", lambda phase: f"{len(phase.figures.failures)}"),
    ("cores of the nodes", lambda phase: f"{phase.cores:.2f}"),
    ("cores of the strangers", _of_deeds(lambda phase: f"{phase.strangers_cores:.2f}")),
)
