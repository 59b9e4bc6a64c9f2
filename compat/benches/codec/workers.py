"""Run each codec in a process of its own, so that codecs don't affect each other; lines of text control
them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from compat.benches import tiers
from compat.benches.codec.codecs import KAFKA_PYTHON, KIO, OURS_COMPILED, OURS_PURE
from compat.harness.kafka.jars import find_jars, java, tool_server_classes
from compat.harness.paths import ROOT
from compat.harness.processes import ProcessFailed, die_with_parent

JAVA = "Java"
JAVA_KAFKA = "4.4.0"
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-Xshare:auto")


class Codec(msgspec.Struct, frozen=True):
    """The command and the environment that start a codec's worker."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


def python_codec(name: str, environment: Mapping[str, str]) -> Codec:
    return Codec(name, (sys.executable, "-m", "compat.benches.codec.worker", name), environment)


def java_codec(classes: Path) -> Codec:
    """Compile the worker of Kafka's own codec into ``classes``."""
    class_path = find_jars(JAVA_KAFKA).class_path
    (compiler,) = tool_server_classes().parent.glob("compiler/ecj-*.jar")
    source = ROOT / "compat" / "java" / "CodecSpeed.java"
    options = ("--release", "17", "-nowarn", "-classpath", class_path, "-d", str(classes))
    subprocess.run([java(), "-jar", str(compiler), *options, str(source)], check=True)
    return Codec(JAVA, (java(), *JAVA_OPTIONS, "-cp", f"{classes}:{class_path}", "CodecSpeed"), {})


def codecs(
    names: Sequence[str], classes: Path, compiled_environment: Mapping[str, str] | None
) -> list[Codec]:
    """Return the codecs with these names. Java's worker is compiled into ``classes``; our compiled codec is
    left out if it has no environment."""
    found = []
    for name in names:
        if name == JAVA:
            found.append(java_codec(classes))
        elif name != OURS_COMPILED:
            found.append(python_codec(name, tiers.PURE))
        elif compiled_environment is not None:
            found.append(python_codec(name, compiled_environment))
    return found


class Worker:
    """The running process of a codec."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._process = subprocess.Popen(
            codec.command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **codec.environment},
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def load(self, message: str, version: int, *payloads: bytes) -> str | None:
        """Load a message and return the library's version; None if it lacks the message.

        Raises ProcessFailed if the codec doesn't encode the bytes that it decoded.
        """
        answer = self._ask(" ".join(("load", message, str(version), *(data.hex() for data in payloads))))
        return None if answer == "none" else answer.removeprefix("ready ")

    def time_ns(self, operation: str, loops: int) -> int:
        """Return the time of ``loops`` calls: "decode" of each payload, or "encode" of the first one."""
        return int(self._ask(f"{operation} {loops}"))

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None
        answer = self._process.stdout.readline()
        if not answer:
            raise self._failed()
        return answer.strip()

    def _failed(self) -> ProcessFailed:
        """Return the error for a process that has ended; its own message is on standard error."""
        return ProcessFailed(f"the codec {self.codec.name} ended with {self._process.wait()}")


ALL_CODECS = (OURS_PURE, OURS_COMPILED, KIO, KAFKA_PYTHON, JAVA)
