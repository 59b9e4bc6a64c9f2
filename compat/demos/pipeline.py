"""Turn a cluster's metadata log into tables: ``python -m compat.demos.pipeline [--report FILE]``.

Start three of our controllers and three real brokers, cause some failures, keep the tables up to date, query
them, write the report, and start a controller from the metadata as it was before a topic was deleted. Then
stop and remove everything but the report.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from compat.demos.progress import Progress, ms_since, run_demo
from compat.harness import clients, kcat
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.metadata_values import describe_record, split_values
from compat.harness.kafka.nodes import OurController, run_command
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import wait_until

BROKERS = 3
PARTITIONS = 6
RESTORED_ID = 200
COMMAND_TIMEOUT_S = 300.0
REPORT = Path("build/pipeline-demo.html")
TABLES = ("leadership", "isr_history", "under_replicated", "broker_sessions", "failovers", "config_changes")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="compat.demos.pipeline", description=__doc__)
    parser.add_argument(
        "--report", type=Path, default=REPORT, metavar="FILE", help="the report's file (default: %(default)s)"
    )
    report: Path = parser.parse_args(arguments).report
    report.parent.mkdir(parents=True, exist_ok=True)
    return run_demo(lambda folder, progress: run(folder, report, progress))


def run(folder: Path, report: Path, progress: Progress) -> None:
    lake = folder / "lake"
    with ToolServer(folder / "tools.log") as tools, Workspace(folder) as workspace:
        quorum = start(workspace, tools, progress)
        update_tables(quorum, lake, progress)
        cause_failures(quorum, progress)
        update_tables(quorum, lake, progress)
        stop(quorum, progress)
        progress.begin("reading the derived tables")
        for table in TABLES:
            progress.result(f"rows of {table}: {column(lake, table, 'cluster').num_rows}")
        progress.begin("writing the report with kraft-wire pipeline report (5 to 20 s)")
        kraft_wire("pipeline", "report", f"--target={lake}", f"--out={report}")
        progress.result(f"{report}, {report.stat().st_size / 1024:,.0f} KiB")
        restore(quorum, lake, progress)
    progress.result(f"the report stays in {report}")


def start(workspace: Workspace, tools: ToolServer, progress: Progress) -> ControllerQuorum:
    progress.begin("starting a quorum of three kraft-wire controllers")
    quorum = ControllerQuorum(workspace, tools, ["ours", "ours", "ours"])
    quorum.format()
    quorum.start()
    progress.result(f"cluster {quorum.cluster_id}; {quorum.leader().name} is the active controller")
    progress.begin(f"starting {BROKERS} Apache Kafka {NEWEST_KAFKA} brokers on Java (10 to 40 s)")
    began = time.monotonic()
    quorum.start_brokers(BROKERS)
    progress.result(f"all registered and unfenced in {ms_since(began)}")
    progress.begin("creating topics `orders` and `payments`")
    admin = clients.admin(quorum.bootstrap)  # quorum.admin() would log warnings when brokers stop
    for topic in ("orders", "payments"):
        clients.create_topic(admin, topic, PARTITIONS, BROKERS)
    wait_until(lambda: in_sync(quorum, "orders") == BROKERS, "all replicas of `orders` to be in sync")
    progress.result(f"{PARTITIONS} partitions with {BROKERS} replicas each, all in sync")
    return quorum


def in_sync(quorum: ControllerQuorum, topic: str) -> int:
    """Return the size of the smallest ISR of the topic's partitions, as broker 1 sees them."""
    seen = broker_metadata.partitions(quorum.brokers[1], topic).values()
    return min((len(partition.isr) for partition in seen), default=0)


def update_tables(quorum: ControllerQuorum, lake: Path, progress: Progress) -> None:
    progress.begin("updating the tables with kraft-wire pipeline run --once (up to a minute)")
    began = time.monotonic()
    kraft_wire(
        "pipeline", "run", f"--bootstrap-controllers={quorum.address_list}", f"--target={lake}", "--once"
    )
    records = column(lake, "records", "offset").num_rows
    progress.result(f"{records:,} records in the lake, after {ms_since(began)}")


def cause_failures(quorum: ControllerQuorum, progress: Progress) -> None:
    progress.begin("killing broker 3 (fenced after 3 s without heartbeats)")
    quorum.brokers[3].kill()
    wait_until(lambda: in_sync(quorum, "orders") == BROKERS - 1, "broker 3 to leave the ISRs")
    progress.result("broker 3 is fenced; its replicas left the ISRs")
    former = quorum.leader()
    progress.begin(f"stopping {former.name}, the active controller")
    former.stop()
    progress.result(f"{quorum.leader().name} is the active controller now")
    progress.begin(f"starting broker 3 and {former.name} again (5 to 20 s)")
    quorum.brokers[3].start()
    quorum.brokers[3].wait_until_ready()
    former.start()
    wait_until(lambda: in_sync(quorum, "orders") == BROKERS, "broker 3 to be in sync again")
    progress.result("all replicas are in sync")
    progress.begin("deleting topic `payments`")
    clients.delete_topic(clients.admin(quorum.bootstrap), "payments")
    broker_metadata.wait_for_absence(quorum.brokers.values(), "payments")
    progress.result("no broker lists it any more")


def stop(quorum: ControllerQuorum, progress: Progress) -> None:
    progress.begin("stopping all brokers and controllers (5 to 20 s)")
    for broker in quorum.brokers.values():
        broker.stop()
    for controller in quorum.controllers.values():
        controller.stop()


def restore(quorum: ControllerQuorum, lake: Path, progress: Progress) -> None:
    """Restore the metadata as of the record before the topic's removal, and start a controller on it."""
    removed = column(lake, "records", "offset", pc.field("type") == "RemoveTopicRecord")
    before = removed.column("offset")[0].as_py() - 1
    past = OurController(quorum.workspace, RESTORED_ID)
    progress.begin(f"restoring the metadata as of offset {before} with kraft-wire pipeline restore")
    kraft_wire(
        "pipeline",
        "restore",
        f"--target={lake}",
        f"--cluster={quorum.cluster_id}",
        f"--as-of-offset={before}",
        f"--into={past.data_folder}",
        f"--node-id={RESTORED_ID}",
    )
    progress.begin("starting a controller on the restored folder")
    past.start()
    past.wait_until_ready()
    progress.result(f"active; kcat reads these topics from it: {', '.join(topics_of(past))}")
    past.stop()


def topics_of(controller: OurController) -> list[str]:
    """Return the names in the TopicRecords of the controller's log."""
    consumed = kcat.consume_bytes(controller.address, "__cluster_metadata", *kcat.LENGTH_PREFIXED)
    records = [describe_record(value) for value in split_values(consumed)]
    return [record.data["name"] for record in records if record.type == "TOPIC_RECORD"]


def column(lake: Path, table: str, name: str, only: pc.Expression | None = None) -> Any:
    return ds.dataset(lake / table, format="parquet", partitioning="hive").to_table(
        columns=[name], filter=only
    )


def kraft_wire(*arguments: str) -> None:
    """Run ``kraft-wire`` with these arguments; raise ProcessFailed if it fails."""
    done = run_command(*arguments, timeout_s=COMMAND_TIMEOUT_S)
    if done.returncode:
        raise ProcessFailed(f"kraft-wire {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
