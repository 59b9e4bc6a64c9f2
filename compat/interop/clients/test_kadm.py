"""franz-go's kadm administers a cluster of our controller as one of Java's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import NEWEST_KAFKA, Cluster
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.paths import KADM, MissingComponent

EXPECTED = """\
create kadm-a: ok
create kadm-b: ok
create again kadm-a: TOPIC_ALREADY_EXISTS
grow kadm-a: ok
list kadm-a: 3
alter topic kadm-a: ok
alter topic wrongly kadm-a: INVALID_CONFIG
alter brokers : ok
describe topic kadm-a: cleanup.policy=compact retention.ms=5000
move kadm-a-0: ok
move kadm-b-0: NO_REASSIGNMENT_IN_PROGRESS
list moves : none is left
elect kadm-b-0: ELECTION_NOT_NEEDED
elect kadm-b-1: ELECTION_NOT_NEEDED
quota ann: ok
scram ann: ok
describe scram ann: one credential
delete kadm-a: ok
delete kadm-b: ok
delete kadm-never: UNKNOWN_TOPIC_OR_PARTITION
"""


@pytest.fixture(params=["ours", "java"])
def cluster(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    for workspace in make_workspace(tmp_path_factory.mktemp("kadm")):
        cluster = Cluster(workspace, tool_server, request.param, NEWEST_KAFKA)
        cluster.start(log_dir_counts=[1, 1])
        yield cluster


def test_kadm_administers_topics_configs_moves_quotas_and_users(cluster: Cluster) -> None:
    if not KADM.exists():
        raise MissingComponent(f"{KADM} is missing: run `make kadm`")
    done = subprocess.run([KADM, cluster.bootstrap], capture_output=True, text=True, timeout=180, check=False)
    assert sorted(done.stdout.splitlines()) == sorted(EXPECTED.splitlines()), done.stderr
    assert done.returncode == 0
