"""Flushed data survives a power cut, and what a cut leaves is never taken for corruption."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.power_disk import IN_MEMORY, PowerDisk

CUTS = 100


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_flushed_survives_power_cuts(seed: int) -> None:
    """Cut the power of a real file system. This needs root, for a loop device and a mount."""
    script = Path(__file__).with_name("power_cutter.py")
    environment = {**os.environ, "PYTHONPATH": str(script.parents[2])}  # tests.support
    command = [sys.executable, str(script), str(seed), str(CUTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    cuts, while_opening, written, epoch = map(int, done.stdout.split())
    assert cuts == CUTS > while_opening
    assert written > 0 and epoch > 0


def test_a_disk_comes_back_while_another_mount_namespace_holds_it(tmp_path: Path) -> None:
    with ExitStack() as closing:
        scratch = Path(closing.enter_context(tempfile.TemporaryDirectory(dir=IN_MEMORY)))
        disk = PowerDisk(scratch / "image", tmp_path / "disk")
        closing.callback(disk.unmount, "--lazy")
        file = disk.mount_point / "file"
        with file.open("w") as writing:
            writing.write("flushed")
            writing.flush()
            os.fsync(writing.fileno())
        holding = ["unshare", "--mount", "sh", "-c", "echo holding; read -r the_end"]
        holder = closing.enter_context(
            subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        closing.callback(holder.kill)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        disk.cut_power()
        disk.restore_power()
        assert file.read_text() == "flushed"
