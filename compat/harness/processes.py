"""Processes whose output is kept and which never outlive the workspace that started them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from compat.harness.waiting import WaitTimeout, wait_until

TAIL_LINES = 60


class ProcessFailed(AssertionError):
    """A process ended, or refused to end, against expectation. The message carries the end of its log."""


def die_with_parent() -> None:
    """In the child: be killed when the parent is, even where that gets no chance to clean up (Linux)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class ManagedProcess:
    """A running process. Standard output and error go to one file, ``log_path``."""

    def __init__(
        self, name: str, argv: Sequence[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C reaches the parent alone, which stops its children
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number where a signal ended it."""
        return self._process.poll()

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """The exit code. Raises ProcessFailed when the process is still running after ``timeout_s``."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessFailed(f"{self.name} did not end within {timeout_s:g} s\n{self.tail()}") from None

    def terminate(self, timeout_s: float = 30.0) -> int:
        """SIGTERM, then wait: the exit code."""
        self.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL, then wait. Harmless when the process has ended."""
        self._process.kill()
        self._process.wait()

    def kill_with_children(self) -> None:
        """SIGKILL to it and all that it has started, then wait until they are gone."""
        family = _process_tree(self.pid) if self.running else []
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        wait_until(lambda: not any(map(_is_there, family)), f"{self.name} and its children to be gone")

    def resident_bytes(self) -> int:
        """Memory that the process and its children have in RAM now (Linux: VmRSS)."""
        return sum(_resident_bytes(pid) for pid in _process_tree(self.pid))

    def cpu_seconds(self) -> float:
        """What the process and its children that still run have spent on a processor (Linux)."""
        return sum(_cpu_seconds(pid) for pid in _process_tree(self.pid))

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace")

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The end of the log under a heading, for failure messages."""
        last = self.log_text().splitlines()[-lines:]
        return "\n".join([f"--- {self.name}: last lines of {self.log_path}", *last])

    def find_in_log(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.log_text(), re.MULTILINE)

    def wait_for_log(self, pattern: str, timeout_s: float = 60.0) -> re.Match[str]:
        """The first match of ``pattern`` in the log; raises ProcessFailed when it does not come."""

        def found_or_ended() -> re.Match[str] | bool | None:
            ended = not self.running  # read before the log, so that a last line is not missed
            return self.find_in_log(pattern) or ended

        try:
            found = wait_until(found_or_ended, f"{self.name} to log /{pattern}/", timeout_s)
        except WaitTimeout as timeout:
            raise ProcessFailed(f"{timeout}\n{self.tail()}") from None
        if not isinstance(found, re.Match):
            raise ProcessFailed(f"{self.name} ended with {self.exit_code} before /{pattern}/\n{self.tail()}")
        return found


def _process_tree(pid: int) -> list[int]:
    """The process, its children, their children ..."""
    children = (
        int(child)
        for listed in Path(f"/proc/{pid}/task").glob("*/children")
        for child in listed.read_text().split()
    )
    return [pid, *(descendant for child in children for descendant in _process_tree(child))]


def _is_there(pid: int) -> bool:
    """Whether a process still holds files: one that nobody has waited for doesn't."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    if match is None:
        raise ProcessFailed(f"process {pid} has no resident memory: it has ended")
    return int(match[1]) * 1024


def _cpu_seconds(pid: int) -> float:
    # Fields 14 and 15 of proc_pid_stat(5); the second, the command's name in parentheses, may hold anything.
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Workspace:
    """A folder and the processes that live in it. Leaving it kills what still runs, latest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[ManagedProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        """Start a process; its log is ``logs/NAME.N.log``, N counting the starts under one name."""
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True, parents=True)
        nth = 1 + sum(process.name == name for process in self.processes)
        process = ManagedProcess(name, argv, logs / f"{name}.{nth}.log", environment)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()

    def tails(self) -> str:
        """The end of every log, for a failed test's report."""
        return "\n\n".join(process.tail() for process in self.processes)
