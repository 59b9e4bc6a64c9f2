"""``python -m compat.archive_classes NAME``: make the class archive of Spark, or of a version of Kafka."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext

from compat.bench_spark.logs import write_life
from compat.harness import clients
from compat.harness.class_archives import FOLDER, SPARK, making_archive
from compat.harness.cluster import random_cluster_id
from compat.harness.jars import find_jars
from compat.harness.nodes import QUICK_JVM, JvmBroker
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.spark import FEW_ROWS, JAVA_OPTIONS, quick_session
from compat.harness.tool_server import ToolServer
from kraft_wire.spark.tables.partitions import leadership
from kraft_wire.spark.tables.typed_records import RecordsTables


def archive_kafka(version: str, folder: Path) -> None:
    """What a broker loads that is its own controller."""
    with ToolServer(folder / "tools.log") as tools, Workspace(folder) as workspace:
        controller = f"{HOST}:{free_port()}"
        broker = JvmBroker(workspace, 1, find_jars(version), tools, controller)
        listeners = f"PLAINTEXT://{broker.address},CONTROLLER://{controller}"
        broker.change_properties({"process.roles": "broker,controller", "listeners": listeners})
        broker.jvm_options = (*QUICK_JVM, *making_archive(version))
        broker.format(random_cluster_id(), "--standalone")
        broker.start()
        broker.wait_until_ready()
        clients.create_topic(clients.admin(broker.address), "topic", 1, 1)
        clients.produce(broker.address, "topic", [b"message"], idempotent=True)
        clients.consume(broker.address, "topic", 1)
        broker.stop()


def archive_spark(folder: Path) -> None:
    """What a stream makes it load, and a derived table."""
    options = [JAVA_OPTIONS, *making_archive(SPARK)]
    spark = quick_session({**FEW_ROWS, "spark.driver.extraJavaOptions": " ".join(options)})
    log, records, derived = (str(folder / name) for name in ("log", "records", "derived"))
    write_life(Path(log), 3_000)
    stream = spark.readStream.format("kraft").option("startingOffsets", "earliest").load(log).writeStream
    writer = stream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(records).awaitTermination()
    leadership(RecordsTables(spark.read.parquet(records))).write.parquet(derived)
    assert spark.read.parquet(derived).toArrow().num_rows
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def main() -> None:
    _, name = sys.argv
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        if name == SPARK:
            archive_spark(Path(folder))
        else:
            archive_kafka(name, Path(folder))


if __name__ == "__main__":
    main()
