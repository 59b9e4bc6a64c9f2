"""How many connections the operating system's limit of open files allows.

Every connection is an open file, and so is everything that the log needs. Without a bound of its own a crowd
of clients would take the files that the next segment, snapshot or checkpoint must be written to, and a
controller that can't write must end.
"""

from __future__ import annotations

import resource

RESERVED_FILES = 128
"""For segments, snapshots, checkpoints, the pipes of the snapshot's process, and late imports."""

UNLIMITED = 1_000_000


def raise_file_limit() -> None:
    """Take all the open files that this process may have (as Java does)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:  # such a system has another limit, which it doesn't tell
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def file_limit() -> int:
    """How many open files this process may have now: somebody may change that while it runs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def max_connections(file_limit: int) -> int:
    """What is left for connections; half where there is little."""
    return max(file_limit - RESERVED_FILES, file_limit // 2)
