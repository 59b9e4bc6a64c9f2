"""The start of a controller."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

from tests.support.controller_process import GIVE_UP_S, formatted

CONNECTS_AT_THE_LOADING = """
import socket, sys
from kraft_wire.server import main
from kraft_wire.server.config.server_config import load_server_config

def build_node(config, store, apis, endpoints, now, positions):
    with socket.socket() as client:
        sys.exit(client.connect_ex(("127.0.0.1", endpoints[0].port)))

main.build_node = build_node
main.run(load_server_config(sys.argv[1]))
"""
"""A controller that ends with the result of connecting to it when it begins to load the log."""


def test_connections_are_refused_while_the_log_is_loaded(tmp_path: Path) -> None:
    """A broker that connects meanwhile goes to another controller at once."""
    command = [sys.executable, "-c", CONNECTS_AT_THE_LOADING, str(formatted(tmp_path))]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=GIVE_UP_S)
    assert ended.returncode == errno.ECONNREFUSED, ended.stderr.decode()
