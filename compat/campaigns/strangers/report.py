"""Write down what became of the controllers. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import quantiles
from typing import Final

from compat.campaigns.strangers.phases import Phase, Trial
from compat.campaigns.strangers.rules import CREATE_GOAL_MS, WELL_WITHIN_S, shortest_leadership_s

COLUMN: Final = 14
NAME: Final = 26


def describe(trials: Sequence[Trial], header: Sequence[tuple[str, str]]) -> str:
    """Return the result as text; ``header`` has the first lines, as names and values."""
    lines = [f"{name:<{NAME}}{value}" for name, value in header]
    for trial in trials:
        lines += ["", *_trial(trial)]
    violations = [line for trial in trials for line in trial.violations]
    lines += ["", f"{'violations':<{NAME}}{len(violations)}", *violations]
    return "\n".join(lines) + "\n"


def _trial(trial: Trial) -> Iterator[str]:
    yield trial.name
    yield _row("", [phase.name for phase in trial.phases])
    for name, value in ROWS:
        yield _row(name, [value(phase) for phase in trial.phases])
    for phase in trial.phases:
        if phase.name == "outsiders":
            longest_ms = max(phase.figures.creations_ms, default=float("inf"))
            verdict = "reached" if longest_ms <= CREATE_GOAL_MS else "missed"
            yield _line(
                "longest with outsiders", f"{longest_ms:.1f} ms, goal {CREATE_GOAL_MS:.0f} ms: {verdict}"
            )
    yield _line("well after claimants", f"{_seconds(trial.well_after_s)}, within {WELL_WITHIN_S:g} s")
    yield _line(
        "well after a restart", f"{_seconds(trial.well_after_restart_s)} from the start of the processes"
    )
    yield _line("topics", f"{trial.acknowledged:,} acknowledged, {trial.unknown:,} with unknown result")


def _row(name: str, values: Sequence[str]) -> str:
    return f"  {name:<{NAME - 2}}" + "".join(f"{value:>{COLUMN}}" for value in values)


def _line(name: str, text: str) -> str:
    return f"  {name:<{NAME - 2}}{text}"


def _seconds(value: float | None) -> str:
    return "not" if value is None else f"{value:.1f} s"


def _of_deeds(value: Callable[[Phase], str]) -> Callable[[Phase], str]:
    return lambda phase: "-" if phase.deeds is None else value(phase)


def _percentile(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return max(values, default=0.0)
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _shortest(phase: Phase) -> str:
    shortest_s = shortest_leadership_s(phase.leaderships)
    return "-" if shortest_s is None else f"{shortest_s:.1f} s"


def _count(name: str) -> Callable[[Phase], str]:
    return _of_deeds(lambda phase: f"{getattr(phase.deeds, name):,}")


ROWS: Final[tuple[tuple[str, Callable[[Phase], str]], ...]] = (
    ("seconds", lambda phase: f"{phase.took_s:.0f}"),
    ("strangers' requests", _count("sent")),
    ("... answered", _count("answered")),
    ("... votes granted", _count("granted")),
    ("... pre-votes granted", _count("granted_pre_votes")),
    ("... connections closed", _count("closed")),
    ("nodes at the fake leader", _count("visits")),
    ("looks at the nodes", lambda phase: f"{phase.looks:,}"),
    ("changes of leader", lambda phase: f"{len(phase.leaderships)}"),
    ("shortest leadership", _shortest),
    ("epoch", lambda phase: f"{phase.epochs[0]} to {phase.epochs[1]}"),
    ("topics created", lambda phase: f"{len(phase.figures.creations_ms):,}"),
    ("create-topic p50", lambda phase: f"{_percentile(phase.figures.creations_ms, 50):.1f} ms"),
    ("create-topic p99", lambda phase: f"{_percentile(phase.figures.creations_ms, 99):.1f} ms"),
    ("longest create-topic", lambda phase: f"{max(phase.figures.creations_ms, default=0.0):.1f} ms"),
    ("heartbeat p99", lambda phase: f"{_percentile(phase.figures.heartbeats_ms, 99):.1f} ms"),
    ("longest heartbeat", lambda phase: f"{max(phase.figures.heartbeats_ms, default=0.0):.1f} ms"),
    ("brokers seen fenced", lambda phase: f"{phase.figures.fenced}"),
    ("clients' failures", lambda phase: f"{len(phase.figures.failures)}"),
    ("cores of the nodes", lambda phase: f"{phase.cores:.2f}"),
    ("cores of the strangers", _of_deeds(lambda phase: f"{phase.strangers_cores:.2f}")),
)
