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


def raise_file_limit() -> int:
    """Take all the open files that this process may have (as Java does); returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        # Such a system has another limit, which it doesn't tell: what is set works.
        return UNLIMITED if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def max_connections(file_limit: int) -> int:
    """What is left for connections; half where there is little."""
    return max(file_limit - RESERVED_FILES, file_limit // 2)
