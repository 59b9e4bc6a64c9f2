"""Free TCP ports on loopback."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"

_handed_out: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on, never the same one twice in this process.

    The system chooses it. Nothing reserves it: a node that fails to bind says so in its log.
    """
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in _handed_out:
            _handed_out.add(port)
            return port
