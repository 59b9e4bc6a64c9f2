"""Produce, consume and list with kcat, which uses librdkafka as Debian ships it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from compat.harness.paths import MissingComponent
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import PATIENCE_S

LENGTH_PREFIXED = ("-f", "%R%s")
"""Options that print the length of each value as four bytes before the value, for values that are not
text."""


def _kcat(arguments: Sequence[str], stdin: str | None = None, timeout_s: float = PATIENCE_S) -> bytes:
    command = shutil.which("kcat")
    if command is None:
        raise MissingComponent("no `kcat` on the PATH: run `make kcat`")
    done = subprocess.run(
        [command, *arguments],
        input=None if stdin is None else stdin.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise ProcessFailed(
            f"kcat {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr.decode()}"
        )
    return done.stdout


def produce(address: str, topic: str, lines: Iterable[str], *options: str) -> None:
    """Produce one message for each line and wait for the acknowledgement of all in-sync replicas."""
    _kcat(
        ["-b", address, "-P", "-t", topic, "-X", "acks=all", *options], "".join(f"{line}\n" for line in lines)
    )


def consume(address: str, topic: str, *options: str) -> list[str]:
    """Return the values of all messages in the topic, partition after partition."""
    return consume_bytes(address, topic, *options).decode().splitlines()


def consume_bytes(address: str, topic: str, *options: str) -> bytes:
    """Return what kcat prints for all messages from the beginning to the end of the topic."""
    return _kcat(["-b", address, "-C", "-t", topic, "-o", "beginning", "-e", "-q", *options])


def metadata(address: str, *options: str) -> dict[str, Any]:
    """Return what ``kcat -L -J`` prints: {"brokers": [...], "topics": [...], ...}."""
    listed: dict[str, Any] = json.loads(_kcat(["-b", address, "-L", "-J", *options]))
    return listed
