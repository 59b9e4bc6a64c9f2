"""Create a class archive: ``python -m compat.harness.kafka.archive_classes spark|KAFKA_VERSION``."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext

from compat.harness import clients
from compat.harness.kafka.class_archives import FOLDER, SPARK, making_archive
from compat.harness.kafka.cluster import random_cluster_id
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import QUICK_JVM, JvmBroker
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.tables.generated_logs import write_cluster_history
from compat.harness.tables.spark_session import FEW_ROWS, JAVA_OPTIONS, quick_session
from kraft_wire.spark.tables.partitions import leadership
from kraft_wire.spark.tables.typed_records import RecordsTables


def archive_kafka(version: str, folder: Path) -> None:
    """Archive the classes that a node loads which is broker and controller."""
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
    """Archive the classes that Spark loads for a stream and for a derived table."""
    options = [JAVA_OPTIONS, *making_archive(SPARK)]
    spark = quick_session({**FEW_ROWS, "spark.driver.extraJavaOptions": " ".join(options)})
    log, records, derived = (str(folder / name) for name in ("log", "records", "derived"))
    write_cluster_history(Path(log), 3_000)
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
