"""The administration clients of other projects are told the same by our controller and by Java's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import NEWEST_KAFKA, Cluster, ControllerKind
from compat.harness.kafka.tool_server import ToolServer
from compat.judges.admin_clients import aio, confluent, kafka_python

Administer = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def clusters(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """A cluster of ours and one of Java's, with two brokers each."""
    kinds: tuple[ControllerKind, ...] = ("ours", "java")
    with ExitStack() as stack:
        workspaces = [
            stack.enter_context(contextmanager(make_workspace)(tmp_path_factory.mktemp(kind)))
            for kind in kinds
        ]
        clusters = [
            Cluster(workspace, tool_server, kind, NEWEST_KAFKA)
            for workspace, kind in zip(workspaces, kinds, strict=True)
        ]
        for cluster in clusters:
            cluster.start(log_dir_counts=[1, 1])
        yield clusters


@pytest.mark.parametrize(
    ("administer", "least_steps"),
    [(confluent.administer, 40), (kafka_python.administer, 30), (aio.administer, 15)],
    ids=["confluent-kafka", "kafka-python", "aiokafka"],
)
def test_an_administrator_is_told_the_same(
    clusters: list[Cluster], administer: Administer, least_steps: int
) -> None:
    ours, java = (administer(cluster.bootstrap) for cluster in clusters)
    assert ours == java
    assert len(java) >= least_steps
