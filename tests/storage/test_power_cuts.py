"""Flushed data survives a power cut, and what a cut leaves is never taken for corruption."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
