"""Run processes whose output is kept, and which never outlive the workspace that started them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from compat.harness.waiting import PATIENCE_S, WaitTimeout, wait_until

TAIL_LINES = 60


class ProcessFailed(AssertionError):
    """A process ended unexpectedly, or didn't end. The message contains the end of its log."""


@contextmanager
def suspended(*processes: ManagedProcess) -> Iterator[None]:
    """Suspend processes with SIGSTOP during the block, and resume them with SIGCONT."""
    with ExitStack() as resuming:
        for process in processes:
            process.send_signal(signal.SIGSTOP)
            resuming.callback(process.send_signal, signal.SIGCONT)
        yield


def die_with_parent() -> None:
    """In a child process: ask the kernel to kill it when the parent dies, even without cleanup (Linux)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class ManagedProcess:
    """A started process. Standard output and standard error go to one file, ``log_path``."""

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
                start_new_session=True,  # Ctrl-C reaches only the parent, which stops its children
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the process runs, minus the signal's number if a signal ended it."""
        return self._process.poll()

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Wait for the exit code. Raises ProcessFailed if the process still runs after ``timeout_s``."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessFailed(f"{self.name} did not end within {timeout_s:g} s\n{self.tail()}") from None

    def terminate(self, timeout_s: float = PATIENCE_S) -> int:
        """Send SIGTERM, wait, and return the exit code."""
        self.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """Send SIGKILL and wait. Does nothing if the process has ended."""
        self._process.kill()
        self._process.wait()

    def kill_with_children(self) -> None:
        """Send SIGKILL to the process and all its descendants, and wait until all have ended."""
        family = _process_tree(self.pid) if self.running else []
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        wait_until(lambda: not any(map(_is_there, family)), f"{self.name} and its children to end")

    def resident_bytes(self) -> int:
        """Return the resident memory of the process and its descendants (Linux: VmRSS)."""
        return sum(_resident_bytes(pid) for pid in _process_tree(self.pid))

    def cpu_seconds(self) -> float:
        """Return the processor time of the process and its running descendants (Linux)."""
        return sum(_cpu_seconds(pid) for pid in _process_tree(self.pid))

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace")

    def tail(self, lines: int = TAIL_LINES) -> str:
        """Return the end of the log under a heading, for failure messages."""
        last = self.log_text().splitlines()[-lines:]
        return "\n".join([f"--- {self.name}: last lines of {self.log_path}", *last])

    def find_in_log(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.log_text(), re.MULTILINE)

    def wait_for_log(self, pattern: str, timeout_s: float = PATIENCE_S) -> re.Match[str]:
        """Wait for the first match of ``pattern`` in the log; raises ProcessFailed if it doesn't come."""

        def found_or_ended() -> re.Match[str] | bool | None:
            ended = not self.running  # read before the log, so that the last line is not missed
            return self.find_in_log(pattern) or ended

        try:
            found = wait_until(found_or_ended, f"{self.name} to log /{pattern}/", timeout_s)
        except WaitTimeout as timeout:
            raise ProcessFailed(f"{timeout}\n{self.tail()}") from None
        if not isinstance(found, re.Match):
            raise ProcessFailed(f"{self.name} ended with {self.exit_code} before /{pattern}/\n{self.tail()}")
        return found


def _process_tree(pid: int) -> list[int]:
    """Return the ids of the process and all its descendants."""
    children = (
        int(child)
        for listed in Path(f"/proc/{pid}/task").glob("*/children")
        for child in listed.read_text().split()
    )
    return [pid, *(descendant for child in children for descendant in _process_tree(child))]


def _is_there(pid: int) -> bool:
    """Whether a process still holds files. A zombie, which nobody has waited for, doesn't."""
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
    """A folder and the processes that run in it. Leaving it kills those still running, the latest first."""

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
        """Start a process with the log ``logs/NAME.N.log``; N counts the starts under one name."""
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
        """Return the end of every log, for a failed test's report."""
        return "\n\n".join(process.tail() for process in self.processes)
