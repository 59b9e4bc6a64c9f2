"""A Spark stream follows live quorums of Java's controllers and of ours when their leaders are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.config_writes import write_to_quorum
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from tests.support.spark_readers import Row, batch

BOOTSTRAP = "bootstrap.controllers"


class Following:
    """A query that writes what a quorum commits into a table."""

    def __init__(self, spark: SparkSession, folder: Path, addresses: str) -> None:
        self._spark, self._folder = spark, folder
        read = spark.readStream.format("kraft").option(BOOTSTRAP, addresses)
        self._rows = read.option("startingOffsets", "earliest").load()
        self.query = self._start()

    def _start(self) -> StreamingQuery:
        write = self._rows.writeStream.format("parquet")
        write = write.option("checkpointLocation", str(self._folder / "checkpoint"))
        return write.start(str(self._folder / "table"))

    def restart(self) -> None:
        self.query.stop()
        self.query = self._start()

    def rows(self) -> list[Row]:
        """Return all rows that were written so far, in the order of the log."""
        table = self._spark.read.schema(self._rows.schema).parquet(str(self._folder / "table"))
        found: list[Row] = table.orderBy("offset").toArrow().cast(RECORDS_SCHEMA).to_pylist()
        return found

    def wait_for(self, value: str) -> list[Row]:
        """Wait for the row of a config with this value, and return all rows."""

        def there() -> list[Row]:
            exception = self.query.exception()
            assert exception is None, exception
            rows = self.rows()
            return rows if any(f'"{value}"' in row["json"] for row in rows) else []

        return wait_until(there, f"{value} to be written", 120.0)


@pytest.mark.parametrize("kind", ["java", "ours"])
def test_a_query_goes_on_when_the_leader_is_killed(
    spark: SparkSession,
    workspace: Workspace,
    tool_server: ToolServer,
    tmp_path: Path,
    kind: ControllerKind,
) -> None:
    quorum = ControllerQuorum(workspace, tool_server, [kind] * 3)
    quorum.format()
    quorum.start()
    quorum.leader()
    following = Following(spark, tmp_path, quorum.address_list)
    try:
        write_to_quorum(quorum, range(10))
        following.wait_for("1000009")
        quorum.leader().kill()
        write_to_quorum(quorum, range(10, 20))
        following.wait_for("1000019")
        following.restart()
        write_to_quorum(quorum, range(20, 25))
        rows = following.wait_for("1000024")
    finally:
        following.query.stop()
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    on_disk = batch(quorum.leader().data_folder)[: len(rows)]
    assert rows == [{**row, "committed": True} for row in on_disk]
    assert len({row["epoch"] for row in rows}) > 1


def test_a_batch_is_the_readers_and_shows_no_password(
    spark: SparkSession, workspace: Workspace, tool_server: ToolServer
) -> None:
    quorum = ControllerQuorum(workspace, tool_server, ["ours"])
    quorum.format()
    quorum.start()
    quorum.leader()
    write_to_quorum(quorum, range(5))
    read = spark.read.format("kraft").option(BOOTSTRAP, quorum.address_list).option("table", "config")
    found = read.load().toArrow().to_pylist()
    assert found == batch(None, **{BOOTSTRAP: quorum.address_list, "table": "config"})
    secured = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "reader",
        "kafka.sasl.password": "hunter-2",
        "default.api.timeout.ms": "2000",
    }
    unread = read.options(**secured).load()
    plan = unread._jdf.queryExecution().toString()
    assert "hunter-2" not in plan
    with pytest.raises(PySparkException, match="SaslHandshakeRequest") as error:
        unread.count()
    assert "hunter-2" not in str(error.value)
