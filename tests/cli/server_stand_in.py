"""A stand-in for the server, for tests of the command line alone."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from kraft_wire.server.config.server_config import ServerConfig


class ServerStandIn(ModuleType):
    """Takes the place of ``kraft_wire.server.main``: keeps the configurations instead of serving them."""

    def __init__(self) -> None:
        super().__init__("kraft_wire.server.main")
        self.configs: list[ServerConfig] = []
        self.exit_code = 0
        self.refuses: Exception | None = None

    def run(self, config: ServerConfig, when_bound: Callable[[], None] | None = None) -> int:
        self.configs.append(config)
        if self.refuses is not None:
            raise self.refuses
        if when_bound is not None:
            when_bound()
        return self.exit_code
