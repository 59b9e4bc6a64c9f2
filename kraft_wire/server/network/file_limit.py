"""Limit connections by the number of files that the process may have open.

Every connection is an open file, and the log needs open files too. Without a limit, many clients could take
the files that the next segment, snapshot or checkpoint needs, and a controller that can't write has to stop.
The connections to other controllers come first (``Peers.files``), clients share the rest with the log.
"""

from __future__ import annotations

import resource

RESERVED_FILES = 128
"""Files for segments, snapshots, checkpoints, the pipes of the snapshot process, and late imports."""

UNLIMITED = 1_000_000


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, as Java does."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:  # such a system has another limit, which can't be asked for
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def file_limit() -> int:
    """Return how many files this process may have open. The limit may be changed while it runs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def max_connections(files: int) -> int:
    """Return how many of the files that clients share with the log are left for connections: at least half of
    them."""
    return max(files - RESERVED_FILES, files // 2, 0)
