"""A JVM that says what Kafka's generated classes make of messages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Thread, Timer
from types import TracebackType
from typing import IO, Self

import msgspec

from compat.harness.jars import KafkaJars, codec_judge_classes, java
from compat.harness.processes import ProcessFailed, die_with_parent
from compat.harness.tool_server import JVM_OPTIONS

DEADLINE_S = 300.0
"""For the answers to one batch; so late, the JVM hangs."""


class JavaClass(msgspec.Struct, frozen=True):
    """One of Kafka's generated message classes."""

    name: str
    first_version: int
    last_version: int
    has_json: bool


class JavaCodec:
    """Runs as long as the ``with`` block."""

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                _close_quietly(stream)

    def classes(self) -> list[JavaClass]:
        """Every generated message class of this Kafka."""
        (answer,) = self.ask([["classes"]])
        rows = [row.split() for row in answer]
        return [JavaClass(row[0], int(row[1]), int(row[2]), row[3] == "true") for row in rows]

    def ask(self, requests: Sequence[Sequence[str]]) -> list[list[str]]:
        """The words of every request's answer, in order. Raises ProcessFailed when the JVM ends or hangs."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        lines = ["\t".join(request) + "\n" for request in requests]
        # Both pipes are small: what is asked goes in while what is answered comes out.
        feeder = Thread(target=_feed, args=(stdin, lines), daemon=True)
        deadline = Timer(DEADLINE_S, self._process.kill)
        deadline.daemon = True
        feeder.start()
        deadline.start()
        try:
            return [self._answer(stdout, line) for line in lines]
        finally:
            deadline.cancel()
            feeder.join(DEADLINE_S)

    def _answer(self, stdout: IO[bytes], request: str) -> list[str]:
        line = stdout.readline()
        if not line.endswith(b"\n"):
            self.close()
            log = self._log_path.read_text(errors="replace")
            raise ProcessFailed(f"the codec judge did not answer {request[:500]!r}\n{log}")
        return line[:-1].decode("ascii").split("\t")


def _feed(stdin: IO[bytes], lines: Sequence[str]) -> None:
    try:
        stdin.writelines(line.encode("ascii") for line in lines)
        stdin.flush()
    except BrokenPipeError:
        return  # the JVM is gone, which whoever reads its answers finds out


def _close_quietly(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return  # unsent bytes for a process that is gone
