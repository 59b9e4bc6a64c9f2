"""One process a codec, so that no codec's garbage or imports weigh on another; they are driven by lines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from compat.bench_codec import tiers
from compat.bench_codec.codecs import KAFKA_PYTHON, KIO, OURS_COMPILED, OURS_PURE
from compat.harness.jars import find_jars, java, tool_server_classes
from compat.harness.paths import ROOT
from compat.harness.processes import ProcessFailed, die_with_parent

JAVA = "Java"
JAVA_KAFKA = "4.4.0"
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-Xshare:auto")


class Codec(msgspec.Struct, frozen=True):
    """How the worker of a codec is started."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


def python_codec(name: str, environment: Mapping[str, str]) -> Codec:
    return Codec(name, (sys.executable, "-m", "compat.bench_codec.worker", name), environment)


def java_codec(classes: Path) -> Codec:
    """Kafka's own codec; its worker is compiled into ``classes``."""
    class_path = find_jars(JAVA_KAFKA).class_path
    (compiler,) = tool_server_classes().parent.glob("compiler/ecj-*.jar")
    source = ROOT / "compat" / "java" / "CodecSpeed.java"
    options = ("--release", "17", "-nowarn", "-classpath", class_path, "-d", str(classes))
    subprocess.run([java(), "-jar", str(compiler), *options, str(source)], check=True)
    return Codec(JAVA, (java(), *JAVA_OPTIONS, "-cp", f"{classes}:{class_path}", "CodecSpeed"), {})


def codecs(
    names: Sequence[str], classes: Path, compiled_environment: Mapping[str, str] | None
) -> list[Codec]:
    """The codecs of these names, Java's worker compiled into ``classes``; ours compiled where it has an
    environment."""
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
    """A running codec."""

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
        """The library's version; None where it lacks the message.

        Raises ProcessFailed where it doesn't write back the bytes that it read.
        """
        answer = self._ask(" ".join(("load", message, str(version), *(data.hex() for data in payloads))))
        return None if answer == "none" else answer.removeprefix("ready ")

    def time_ns(self, operation: str, loops: int) -> int:
        """How long so many calls took: of "decode" for each payload, of "encode" for one of them."""
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
        """What it said is on standard error already."""
        return ProcessFailed(f"the codec {self.codec.name} ended with {self._process.wait()}")


ALL_CODECS = (OURS_PURE, OURS_COMPILED, KIO, KAFKA_PYTHON, JAVA)
