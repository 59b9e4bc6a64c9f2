"""Tamper with the flushes of a running process."""

from __future__ import annotations

from compat.harness.processes import ManagedProcess, Workspace

FLUSHES = "fsync,fdatasync"


def inject_into_flushes(
    workspace: Workspace, name: str, process: ManagedProcess, injection: str
) -> ManagedProcess:
    """Start strace on all threads of a process. ``injection`` is what its option ``inject`` does to a flush,
    such as ``error=EIO:when=1``."""
    attaching = ["strace", "-f", "-p", str(process.pid), "-o", "/dev/null"]
    injecting = ["-e", f"trace={FLUSHES}", "-e", f"inject={FLUSHES}:{injection}"]
    return workspace.start(name, [*attaching, *injecting])
