"""Run Kafka's tools one after the other in one JVM (the Java half is compat/java/ToolServer.java)."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote_plus

import msgspec

from compat.harness.kafka.jars import KafkaJars, java, tool_server_classes
from compat.harness.paths import TOOL_LOGGING
from compat.harness.processes import ProcessFailed, die_with_parent
from compat.harness.waiting import PATIENCE_S

JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""Options for a quick start and low processor use."""
THREAD_DUMP_S = 5.0


class ToolTimeout(ProcessFailed):
    """The tool did not return in time; its JVM was killed."""


class ToolResult(msgspec.Struct, frozen=True):
    """The exit code and output of a tool. ``stderr`` includes the warnings that it logged."""

    command: str
    exit_code: int
    stdout: str
    stderr: str

    def check(self) -> Self:
        """Return this result; raises ProcessFailed if the tool failed."""
        if self.exit_code != 0:
            raise ProcessFailed(f"{self.command}: exit code {self.exit_code}\n{self.stdout}\n{self.stderr}")
        return self


class ToolServer:
    """The JVM of the tools. It starts with the first call and ends with ``close`` (or the ``with`` block)."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """The process id; None while the JVM doesn't run."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the JVM now, not with the first call: it stays in the network namespace of its start."""
        self._running()

    def run(
        self, jars: KafkaJars, main_class: str, arguments: Sequence[str | Path], timeout_s: float = PATIENCE_S
    ) -> ToolResult:
        """Run one tool. Raises ToolTimeout, or ProcessFailed if the tool ends the JVM."""
        words = [str(argument) for argument in arguments]
        command = " ".join([main_class, *words])
        request = " ".join(quote_plus(word) for word in [jars.class_path, main_class, *words])
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
            reader = _DeadlineReader(process.stdout, time.monotonic() + timeout_s)
            exit_code, out_bytes, err_bytes = (int(word) for word in reader.line().split())
            stdout = reader.exactly(out_bytes).decode(errors="replace")
            stderr = reader.exactly(err_bytes).decode(errors="replace")
        except (TimeoutError, EOFError, BrokenPipeError) as failure:
            doing = _threads(process) if isinstance(failure, TimeoutError) else ""
            self.close()
            log = self._log_path.read_text(errors="replace")
            kind = ToolTimeout if isinstance(failure, TimeoutError) else ProcessFailed
            raise kind(f"{command}: {failure or type(failure).__name__}\n{log}\n{doing}") from failure
        return ToolResult(command, exit_code, stdout, stderr)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None and not stream.closed:
                _close_quietly(stream)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            scratch = self._log_path.parent / "tool-server-tmp"
            scratch.mkdir(parents=True, exist_ok=True)
            with self._log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    [
                        java(),
                        "-Xmx256m",
                        *JVM_OPTIONS,
                        f"-Dlog4j2.configurationFile={TOOL_LOGGING}",
                        f"-Djava.io.tmpdir={scratch}",  # the metadata shell leaves folders there
                        "-cp",
                        str(tool_server_classes()),
                        "ToolServer",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
        return self._process


def _threads(process: subprocess.Popen[bytes]) -> str:
    """Return the JVM's thread dump, which it writes to its standard output on SIGQUIT."""
    assert process.stdout is not None
    process.send_signal(signal.SIGQUIT)
    reader = _DeadlineReader(process.stdout, time.monotonic() + THREAD_DUMP_S)
    lines: list[bytes] = []
    try:
        while not lines or not lines[-1].startswith(b"JNI global ref"):
            lines.append(reader.line())
    except (TimeoutError, EOFError) as end:
        lines.append(f"({end})\n".encode())
    return b"".join(lines).decode(errors="replace")


def _close_quietly(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return  # unsent bytes for a process that has ended


class _DeadlineReader:
    """A reader of a pipe that gives up at a deadline."""

    def __init__(self, stream: IO[bytes], deadline: float) -> None:
        self._descriptor = stream.fileno()
        self._deadline = deadline
        self._pending = bytearray()

    def line(self) -> bytes:
        while (end := self._pending.find(b"\n")) < 0:
            self._receive()
        return self._take(end + 1)

    def exactly(self, size: int) -> bytes:
        while len(self._pending) < size:
            self._receive()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._pending[:size])
        del self._pending[:size]
        return taken

    def _receive(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            if not selector.select(max(0.0, self._deadline - time.monotonic())):
                raise TimeoutError("no answer in time")
        received = os.read(self._descriptor, 1 << 16)
        if not received:
            raise EOFError("the tool ended the JVM")
        self._pending += received
