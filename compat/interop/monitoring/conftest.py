"""Prometheus, and the quorums that a file's tests run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.tool_server import ToolServer
from compat.interop.monitoring.watched import Site


@pytest.fixture(scope="module")
def site(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for workspace in make_workspace(tmp_path_factory.mktemp("monitoring")):
        yield Site(workspace, tool_server)
