"""Log the limits that clients and operators meet."""

from __future__ import annotations

from kraft_wire.configs.own_keys import HELD_BYTES_KEY
from kraft_wire.server.config.server_config import ServerConfig
from kraft_wire.server.logging import get_logger
from kraft_wire.wire.entry_count import LIMIT_KEY

log = get_logger(__name__)


def report_limits(config: ServerConfig, max_connections: int, file_limit: int) -> None:
    """Log the limits by their keys. ``max_connections`` are no more than the open files allow."""
    limits = {
        LIMIT_KEY: config.settings.kraft_wire_max_request_entries,
        HELD_BYTES_KEY: config.sockets.kraft_wire_max_held_bytes,
        "kraft.wire.answer.when.known.ms": config.settings.kraft_wire_answer_when_known_ms,
        "socket.request.max.bytes": config.sockets.socket_request_max_bytes,
        "max.connections": max_connections,
    }
    log.info("limits", **limits, open_files=file_limit)
