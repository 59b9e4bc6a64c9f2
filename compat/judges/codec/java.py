"""Run Kafka's generated message classes in a JVM, and ask what they make of messages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

import msgspec

from compat.harness.kafka.jars import KafkaJars, codec_judge_classes, java
from compat.harness.kafka.tool_server import JVM_OPTIONS
from compat.harness.processes import ProcessFailed, die_with_parent

DEADLINE_S = 300.0
"""The time for one answer. If it takes longer, the JVM hangs."""


class JavaClass(msgspec.Struct, frozen=True):
    """One of Kafka's generated message classes."""

    name: str
    first_version: int
    last_version: int
    has_json: bool


class JavaCodec:
    """The JVM, which runs during the ``with`` block. It works on the requests while the caller goes on."""

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
        # Pipes are small: without these threads both sides would soon wait for each other.
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
        """Return every generated message class of this Kafka."""
        (answer,) = self.ask([["classes"]])
        rows = [row.split() for row in answer]
        return [JavaClass(row[0], int(row[1]), int(row[2]), row[3] == "true") for row in rows]

    def ask(self, requests: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the words of every answer, in order. Raises ProcessFailed if the JVM ends or hangs."""
        self.send(requests)
        return self.receive(len(requests))

    def send(self, requests: Sequence[Sequence[str]]) -> None:
        """Queue these requests after the earlier ones."""
        if requests:
            self._requests.put("".join("\t".join(request) + "\n" for request in requests).encode("ascii"))

    def receive(self, count: int) -> list[list[str]]:
        """Wait for the next answers. Raises ProcessFailed if the JVM ends or hangs."""
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
            raise ProcessFailed(f"the JVM of the codec judge ended or hung\n{log}")
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
            return  # the JVM has ended; the reader of its answers reports that

    def _drain(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with stdout:
            for line in stdout:
                self._answers.put(line)
        self._answers.put(b"")
