"""Watch the largest memory that a process takes (Linux)."""

from __future__ import annotations

from pathlib import Path


def forget_peak(pid: int) -> None:
    """Let the peak begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_bytes(pid: int) -> int:
    """Return the largest resident memory since the peak was forgotten (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"process {pid} has no VmHWM")
