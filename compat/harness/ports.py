"""Find free TCP ports on loopback."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"

_handed_out: set[int] = set()


def free_port() -> int:
    """Return a port on which nothing listens, never the same one twice in this process.

    The operating system chooses the port. It isn't reserved; a node that can't bind it logs that.
    """
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in _handed_out:
            _handed_out.add(port)
            return port
