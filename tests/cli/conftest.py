"""Fixtures for the tests of several commands."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.server_stand_in import ServerStandIn


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    """Commands configure logging for the whole process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ServerStandIn:
    """The server as commands see it."""
    stand_in = ServerStandIn()
    monkeypatch.setitem(sys.modules, "kraft_wire.server.main", stand_in)
    return stand_in


@pytest.fixture
def controller_file(tmp_path: Path) -> Path:
    """The properties of a controller of a dynamic quorum, with two folders."""
    return write_properties(
        tmp_path / "controller.properties",
        {
            "process.roles": "controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9193",
            "controller.listener.names": "CONTROLLER",
            "listeners": "CONTROLLER://:9193",
            "log.dirs": f"{tmp_path / 'data'},{tmp_path / 'more'}",
        },
    )


@pytest.fixture
def broker_file(tmp_path: Path) -> Path:
    """The properties of a broker."""
    return write_properties(
        tmp_path / "broker.properties",
        {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9193",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(tmp_path / "broker"),
        },
    )


def write_properties(path: Path, properties: dict[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path
