"""A cluster's history becomes tables: ``python -m compat.demo_pipeline [--report FILE]``.

Starts three controllers of ours and three real brokers, lets things happen to them, keeps the tables up to
date, asks them what happened, writes the report, and boots a controller from the metadata as it was before a
topic was deleted. Then everything is stopped and removed, but for the report.
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

from compat.harness import clients, kcat, views
from compat.harness.cluster import NEWEST_KAFKA
from compat.harness.controllers import ControllerQuorum
from compat.harness.metadata_values import describe_record, split_values
from compat.harness.nodes import OurController, run_command
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.story import Story, ms_since, tell_it
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import wait_until

BROKERS = 3
PARTITIONS = 6
RESTORED_ID = 200
COMMAND_TIMEOUT_S = 300.0
REPORT = Path("build/pipeline-demo.html")
TABLES = ("leadership", "isr_history", "under_replicated", "broker_sessions", "failovers", "config_changes")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="compat.demo_pipeline", description=__doc__)
    parser.add_argument("--report", type=Path, default=REPORT, metavar="FILE", help="where the report goes")
    report: Path = parser.parse_args(arguments).report
    report.parent.mkdir(parents=True, exist_ok=True)
    return tell_it(lambda folder, story: run(folder, report, story))


def run(folder: Path, report: Path, story: Story) -> None:
    lake = folder / "lake"
    with ToolServer(folder / "tools.log") as tools, Workspace(folder) as workspace:
        quorum = start(workspace, tools, story)
        keep(quorum, lake, story)
        let_things_happen(quorum, story)
        keep(quorum, lake, story)
        stop(quorum, story)
        for table in TABLES:
            story.tell(f"the lake's table {table}: {column(lake, table, 'cluster').num_rows} rows")
        kraft_wire("pipeline", "report", f"--target={lake}", f"--out={report}")
        story.tell(f"kraft-wire pipeline report: {report}, {report.stat().st_size / 1024:,.0f} KiB")
        go_back(quorum, lake, story)
    story.tell("nothing is left running; the folder is removed, the report is not")


def start(workspace: Workspace, tools: ToolServer, story: Story) -> ControllerQuorum:
    quorum = ControllerQuorum(workspace, tools, ["ours", "ours", "ours"])
    quorum.format()
    quorum.start()
    story.tell(f"three controllers of cluster {quorum.cluster_id}; {quorum.leader().name} leads")
    began = time.monotonic()
    quorum.start_brokers(BROKERS)
    story.tell(f"{BROKERS} Apache Kafka {NEWEST_KAFKA} brokers registered and unfenced in {ms_since(began)}")
    admin = clients.admin(quorum.bootstrap)  # not the quorum's own, which complains of brokers that stop
    for topic in ("orders", "payments"):
        clients.create_topic(admin, topic, PARTITIONS, BROKERS)
    wait_until(lambda: in_sync(quorum, "orders") == BROKERS, "all of `orders` in sync")
    story.tell(f"topics `orders` and `payments` made, {PARTITIONS} partitions of {BROKERS} replicas each")
    return quorum


def in_sync(quorum: ControllerQuorum, topic: str) -> int:
    """How many replicas of its worst partition are in sync, as broker 1 sees it."""
    seen = views.partitions(quorum.brokers[1], topic).values()
    return min((len(partition.isr) for partition in seen), default=0)


def keep(quorum: ControllerQuorum, lake: Path, story: Story) -> None:
    began = time.monotonic()
    kraft_wire(
        "pipeline", "run", f"--bootstrap-controllers={quorum.address_list}", f"--target={lake}", "--once"
    )
    records = column(lake, "records", "offset").num_rows
    story.tell(f"kraft-wire pipeline run: {records:,} records in the lake, in {ms_since(began)}")


def let_things_happen(quorum: ControllerQuorum, story: Story) -> None:
    quorum.brokers[3].kill()
    wait_until(lambda: in_sync(quorum, "orders") == BROKERS - 1, "broker 3 to be missed")
    story.tell("broker 3 killed; its replicas are out of sync")
    former = quorum.leader()
    former.stop()
    story.tell(f"{former.name} stopped; {quorum.leader().name} leads")
    quorum.brokers[3].start()
    quorum.brokers[3].wait_until_ready()
    former.start()
    wait_until(lambda: in_sync(quorum, "orders") == BROKERS, "broker 3 to be in sync again")
    story.tell(f"broker 3 and {former.name} are back; everything is in sync")
    clients.delete_topic(clients.admin(quorum.bootstrap), "payments")
    views.wait_for_absence(quorum.brokers.values(), "payments")
    story.tell("topic `payments` deleted")


def stop(quorum: ControllerQuorum, story: Story) -> None:
    for broker in quorum.brokers.values():
        broker.stop()
    for controller in quorum.controllers.values():
        controller.stop()
    story.tell("the cluster is stopped")


def go_back(quorum: ControllerQuorum, lake: Path, story: Story) -> None:
    """To the record before the one that removed the topic."""
    removed = column(lake, "records", "offset", pc.field("type") == "RemoveTopicRecord")
    before = removed.column("offset")[0].as_py() - 1
    past = OurController(quorum.workspace, RESTORED_ID)
    kraft_wire(
        "pipeline",
        "restore",
        f"--target={lake}",
        f"--cluster={quorum.cluster_id}",
        f"--as-of-offset={before}",
        f"--into={past.data_folder}",
        f"--node-id={RESTORED_ID}",
    )
    story.tell(f"kraft-wire pipeline restore: the metadata as of offset {before}")
    past.start()
    past.wait_until_ready()
    topics = ", ".join(topics_of(past))
    past.stop()
    story.tell(f"a controller booted from that; kcat reads the topics {topics} from it; stopped")


def topics_of(controller: OurController) -> list[str]:
    """Those whose records its log holds."""
    consumed = kcat.consume_bytes(controller.address, "__cluster_metadata", *kcat.LENGTH_PREFIXED)
    records = [describe_record(value) for value in split_values(consumed)]
    return [record.data["name"] for record in records if record.type == "TOPIC_RECORD"]


def column(lake: Path, table: str, name: str, only: pc.Expression | None = None) -> Any:
    return ds.dataset(lake / table, format="parquet", partitioning="hive").to_table(
        columns=[name], filter=only
    )


def kraft_wire(*arguments: str) -> None:
    """Raises ProcessFailed."""
    done = run_command(*arguments, timeout_s=COMMAND_TIMEOUT_S)
    if done.returncode:
        raise ProcessFailed(f"kraft-wire {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
