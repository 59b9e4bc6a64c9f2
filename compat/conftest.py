"""Fixtures of the interop tests: workspaces whose logs are shown on failure, one tool server for a
session."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.processes import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

open_workspaces: list[Workspace] = []


SLOWEST = (
    "test_behaviour.py",
    "test_every_record_type.py",
    "test_reconfiguration.py",
    "test_rolling_upgrade.py",
    "test_spark_pipeline_kills.py",
    "test_quorum.py",
    "test_cluster.py",
    "test_spark_pipeline.py",
    "test_chaos.py",
    "test_lost_majority.py",
    "test_spark_tables.py",
    "test_codec_judge.py",
    "test_restored_folder.py",
    "test_spark_connect.py",
    "test_observer.py",
    "test_migrate_check.py",
    "test_spark_declarative.py",
    "test_migration.py",
    "test_change_commands.py",
    "test_live_java.py",
    "test_storage_alarms.py",
    "test_cluster_alarms.py",
    "test_quorum_alarms.py",
)
"""The files that run first, in this order: a slow file at the end would leave all but one process idle."""


def make_workspace(folder: Path) -> Iterator[Workspace]:
    """Open a workspace in a fixture of any scope: `yield from make_workspace(...)`."""
    with Workspace(folder) as workspace:
        open_workspaces.append(workspace)
        yield workspace
        open_workspaces.remove(workspace)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("codec judge")
    group.addoption("--judge-cases", type=int, default=50_000, metavar="N", help="the least number of cases")
    group.addoption("--judge-seed", type=int, default=1, metavar="S", help="the seed of the random cases")
    chaos = parser.getgroup("chaos")
    chaos.addoption("--chaos-seed", type=int, default=1, metavar="S", help="the seed of the random faults")
    pipeline = parser.getgroup("pipeline")
    pipeline.addoption("--kills", type=int, default=2, metavar="N", help="how often the pipeline is killed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest files first, and let files with Spark take turns with the others: on a busy machine,
    Spark's Python workers start later than the 10 s that it allows."""
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(SLOWEST)))
    files = list(dict.fromkeys(item.path for item in items))
    turns: dict[Path, int] = {}
    for with_spark in (True, False):
        turns |= {file: turn for turn, file in enumerate(f for f in files if _has_spark(f) is with_spark)}
    items.sort(key=lambda item: (turns[item.path], not _has_spark(item.path)))


def _has_spark(file: Path) -> bool:
    return file.parent.name == "spark"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace for one test."""
    yield from make_workspace(tmp_path)


@pytest.fixture(scope="session")
def tool_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolServer]:
    with ToolServer(tmp_path_factory.mktemp("tools") / "tool-server.log") as server:
        yield server


@pytest.fixture(scope="session")
def tools(tool_server: ToolServer) -> KafkaTools:
    return KafkaTools(tool_server)


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A Spark session that starts quickly; a test file may define its settings as SPARK_SETTINGS."""
    from compat.harness.tables.spark_session import QUICK, quick_session

    started = quick_session(getattr(request.module, "SPARK_SETTINGS", QUICK))
    yield started
    started.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of every process's log to a failed test's report."""
    report = yield
    if report.failed:
        for workspace in open_workspaces:
            report.sections.append((f"processes in {workspace.folder}", workspace.tails()))
    return report
