"""A real server whose disk fails: it ends at once, and all that it acknowledged is there afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.controller_process import Client, ControllerProcess, formatted

KEY = "message.max.bytes"
FIRST = 1_000_000
MAX_WRITES = 500


def failing(calls: str, when: str, error: str = "EIO") -> list[str]:
    """Run what follows with system calls that fail; each thread counts its own."""
    inject = f"inject={calls}:error={error}:when={when}"
    return [
        "strace",
        "--follow-forks",
        "--seccomp-bpf",
        "-o",
        "/dev/null",
        "-e",
        f"trace={calls}",
        "-e",
        inject,
    ]


def write_until_it_dies(client: Client) -> int:
    """The last value that was acknowledged."""
    value = FIRST
    try:
        for value in range(FIRST, FIRST + MAX_WRITES):
            client.set_config(KEY, str(value))
    except OSError:
        return value - 1
    raise AssertionError(f"{MAX_WRITES} writes were acknowledged, and no flush failed")


def acknowledged_before_it_dies(file: Path, within: list[str]) -> int:
    """Write to a server until its disk fails; it says so and ends."""
    acknowledged = FIRST - 1
    with ControllerProcess(file, within) as controller:
        try:
            with controller.client() as client:
                acknowledged = write_until_it_dies(client)
        except (AssertionError, OSError):
            # It may end before it serves anybody.
            if "failed: " not in controller.text:
                raise
        assert controller.ended() == 1
        assert "failed: " in controller.text
        assert "Traceback" not in controller.text
    return acknowledged


def found_again(file: Path) -> int:
    with ControllerProcess(file) as controller, controller.client() as client:
        return int(client.config(KEY) or FIRST - 1)


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 20, 50])
def test_a_flush_that_fails_ends_it(tmp_path: Path, nth: int) -> None:
    file = formatted(tmp_path)
    acknowledged = acknowledged_before_it_dies(file, failing("fsync,fdatasync", str(nth)))
    # The last write may be on the disk without having been acknowledged.
    assert found_again(file) in (acknowledged, acknowledged + 1)


def test_the_flush_is_not_tried_again(tmp_path: Path) -> None:
    """Only one flush fails: the next one would succeed, with the data gone."""
    file = formatted(tmp_path)
    with ControllerProcess(file, failing("fdatasync", "30")) as controller:
        with controller.client() as client:
            acknowledged = write_until_it_dies(client)
        assert controller.ended() == 1
        end = json.loads(controller.text.splitlines()[-1])
        assert (end["level"], end["error"]) == ("error", "DiskFailed")
        assert end["event"].startswith("fatal: ")
        assert end["event"].endswith("Input/output error; the disk is not to be trusted")
    assert found_again(file) in (acknowledged, acknowledged + 1)


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_write_that_fails_ends_it(tmp_path: Path, error: str) -> None:
    file = formatted(tmp_path)
    acknowledged = acknowledged_before_it_dies(file, failing("pwrite64", "60", error))
    assert found_again(file) in (acknowledged, acknowledged + 1)


@pytest.mark.parametrize("nth", [1, 2])
def test_a_rename_that_fails_ends_it(tmp_path: Path, nth: int) -> None:
    file = formatted(tmp_path)
    with ControllerProcess(file, failing("rename,renameat,renameat2", str(nth))) as controller:
        assert controller.ended() == 1
        assert "renaming it to" in controller.text
    assert found_again(file) == FIRST - 1
