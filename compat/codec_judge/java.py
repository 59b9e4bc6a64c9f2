"""A JVM that says what Kafka's generated classes make of messages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

import msgspec

from compat.harness.jars import KafkaJars, codec_judge_classes, java
from compat.harness.processes import ProcessFailed, die_with_parent
from compat.harness.tool_server import JVM_OPTIONS

DEADLINE_S = 300.0
"""For one answer; so late, the JVM hangs."""


class JavaClass(msgspec.Struct, frozen=True):
    """One of Kafka's generated message classes."""

    name: str
    first_version: int
    last_version: int
    has_json: bool


class JavaCodec:
    """Runs as long as the ``with`` block. It works on what it was sent while the caller does other things."""

    def __init__(self, jars: KafkaJars, log_path: Path) -> None:
        self.jars = jars
        self._log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    java(),
                    "-Xmx512m",
                    *JVM_OPTIONS,
                    "-cp",
                    f"{codec_judge_classes()}:{jars.class_path}",
                    "CodecJudge",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        # Pipes are small: without a thread at either end, each side would soon wait for the other.
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._threads = [Thread(target=self._feed, daemon=True), Thread(target=self._drain, daemon=True)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._requests.put(None)
        for thread in self._threads:
            thread.join()

    def classes(self) -> list[JavaClass]:
        """Every generated message class of this Kafka."""
        (answer,) = self.ask([["classes"]])
        rows = [row.split() for row in answer]
        return [JavaClass(row[0], int(row[1]), int(row[2]), row[3] == "true") for row in rows]

    def ask(self, requests: Sequence[Sequence[str]]) -> list[list[str]]:
        """The words of every request's answer, in order. Raises ProcessFailed when the JVM ends or hangs."""
        self.send(requests)
        return self.receive(len(requests))

    def send(self, requests: Sequence[Sequence[str]]) -> None:
        """Have Java answer these after what it was sent before."""
        if requests:
            self._requests.put("".join("\t".join(request) + "\n" for request in requests).encode("ascii"))

    def receive(self, count: int) -> list[list[str]]:
        """The next answers. Raises ProcessFailed when the JVM ends or hangs."""
        return [self._answer() for _ in range(count)]

    def _answer(self) -> list[str]:
        try:
            line = self._answers.get(timeout=DEADLINE_S)
        except Empty:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            self._answers.put(b"")
            log = self._log_path.read_text(errors="replace")
            raise ProcessFailed(f"the codec judge's JVM has ended, or hung\n{log}")
        return line[:-1].decode("ascii").split("\t")

    def _feed(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with stdin:
                while (lines := self._requests.get()) is not None:
                    stdin.write(lines)
                    stdin.flush()
        except BrokenPipeError:
            return  # the JVM is gone, which whoever waits for its answers finds out

    def _drain(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with stdout:
            for line in stdout:
                self._answers.put(line)
        self._answers.put(b"")
