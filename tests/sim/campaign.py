"""Run a long campaign: seed after seed on all CPUs, each with raft cores alone, with whole controllers,
and with voters that change. The result of the last campaign is in campaign.txt, in this folder.

python -m tests.sim.campaign --hours 8 --first 1000000
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path

import msgspec

from kraft_wire.cli.sim import commit, print_result
from kraft_wire.sim.minimise import Minimiser
from kraft_wire.sim.options import Options
from kraft_wire.sim.simulation import Result, simulate
from kraft_wire.sim.swarm import controllers_of, membership_of, options_of

RESULT = Path(__file__).parent / "campaign.txt"
TELL_EVERY_S = 30
SECONDS_AN_HOUR = 3600


def runs_of(seed: int, seconds: int) -> list[Options]:
    """Return the runs that a seed stands for."""
    return [options_of(seed, seconds), controllers_of(seed, seconds), membership_of(seed, seconds)]


def run_seed(seed: int, seconds: int) -> list[Result]:
    """Run the runs of a seed in this process, and minimise those that fail."""
    results = [simulate(options) for options in runs_of(seed, seconds)]
    return [result if result.violation is None else Minimiser(result).minimise() for result in results]


class Tally:
    """The results of a campaign so far."""

    def __init__(self, first: int, jobs: int) -> None:
        self.first = self.last = first
        self.seeds = 0
        self.violations: list[Result] = []
        self._jobs = jobs
        self._runs = 0
        self._events = 0
        self._acknowledged = 0
        self._simulated_seconds = 0.0
        self._commit = commit()
        self._began_s = time.monotonic()

    def add(self, seed: int, results: Sequence[Result]) -> None:
        self.seeds += 1
        self.last = max(self.last, seed)
        for result in results:
            self._runs += 1
            self._events += result.events
            self._acknowledged += result.acknowledged
            self._simulated_seconds += result.simulated_seconds
            if result.violation is not None:
                self.violations.append(result)

    @property
    def real_hours(self) -> float:
        return (time.monotonic() - self._began_s) / SECONDS_AN_HOUR

    def __str__(self) -> str:
        per_second = self._events / max(self.real_hours * SECONDS_AN_HOUR, 0.001)
        return (
            f"{self.seeds} seeds, {self._simulated_seconds / SECONDS_AN_HOUR:.1f} simulated hours in"
            f" {self.real_hours:.2f}, {per_second:,.0f} events/s, {len(self.violations)} violations"
        )

    def report(self) -> str:
        """Return the text of campaign.txt."""
        rows = {
            "commit": self._commit,
            "finished": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "seeds": f"{self.seeds:,} ({self.first} to {self.last}), as cores, controllers, changing voters",
            "runs": f"{self._runs:,}",
            "simulated hours": f"{self._simulated_seconds / SECONDS_AN_HOUR:,.1f}",
            "real hours": f"{self.real_hours:.2f} on {self._jobs} cores",
            "events": f"{self._events:,}",
            "acknowledged": f"{self._acknowledged:,}",
            "violations": f"{len(self.violations)}",
        }
        lines = ["The last long run of the simulator, as `make campaign` left it.", ""]
        lines += [f"{name:<16} {value}" for name, value in rows.items()]
        for failed in self.violations:
            replay = msgspec.json.encode(failed.options).decode()
            lines += ["", f"seed {failed.options.seed}: {failed.violation}", f"  {replay}"]
        return "\n".join(lines) + "\n"


def leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Campaign:
    """A campaign. It keeps all CPUs busy until all seeds are done or the time is over."""

    def __init__(
        self, tally: Tally, seeds: Iterator[int], deadline_s: float, jobs: int, seconds: int
    ) -> None:
        self._tally = tally
        self._seeds = seeds
        self._deadline_s = deadline_s
        self._jobs = jobs
        self._seconds = seconds
        self._under_way: dict[Future[list[Result]], int] = {}

    def run(self) -> None:
        with ProcessPoolExecutor(self._jobs, initializer=leave_ctrl_c_to_the_parent) as pool:
            told_s = time.monotonic()
            self._refill(pool)
            while self._under_way:
                done, _ = wait(self._under_way, timeout=TELL_EVERY_S, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(future)
                self._refill(pool)
                if time.monotonic() - told_s >= TELL_EVERY_S:
                    told_s = time.monotonic()
                    print(self._tally, flush=True)

    def _refill(self, pool: ProcessPoolExecutor) -> None:
        if time.monotonic() >= self._deadline_s:
            return
        for seed in islice(self._seeds, self._jobs + 1 - len(self._under_way)):
            self._under_way[pool.submit(run_seed, seed, self._seconds)] = seed

    def _take(self, future: Future[list[Result]]) -> None:
        results = future.result()
        self._tally.add(self._under_way.pop(future), results)
        for result in results:
            if result.violation is not None:
                print_result(result)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, help="how many seeds; 1,000 without --hours")
    parser.add_argument("--hours", type=float, help="start no more seeds after so many hours")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    parser.add_argument("--seconds", type=int, default=120, help="simulated seconds of a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes")
    parser.add_argument("--result", type=Path, default=RESULT, help="the file for the result")
    asked = parser.parse_args(arguments)
    for name in ("seeds", "hours", "seconds", "jobs"):
        value = getattr(asked, name)
        if value is not None and (value < 0 or (value == 0 and name != "hours")):
            parser.error(f"--{name} can't be {value}")
    wanted = 1_000 if asked.seeds is None and asked.hours is None else asked.seeds
    seeds = count(asked.first) if wanted is None else iter(range(asked.first, asked.first + wanted))
    deadline_s = float("inf") if asked.hours is None else time.monotonic() + asked.hours * SECONDS_AN_HOUR
    tally = Tally(asked.first, asked.jobs)
    try:
        Campaign(tally, seeds, deadline_s, asked.jobs, asked.seconds).run()
    except KeyboardInterrupt:
        print("stopped before its end")
    asked.result.write_text(tally.report())
    print(tally.report())
    return 1 if tally.violations else 0


if __name__ == "__main__":
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
