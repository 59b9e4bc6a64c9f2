"""Run a cluster through every kind of event, so that its controller, Java's or ours, writes all record
types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from compat.harness import clients
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import JvmBroker
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments, until_read
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from kraft_wire.log.batch import encode_batch, record_values, split_batches
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record

RELEASE: Final = "4.3"
"""The newest release that the metadata shell of 4.3.1 can read."""
PROPERTIES: Final = {"metadata.log.max.record.bytes.between.snapshots": "5000"}
BROKER_PROPERTIES: Final = {"replica.high.watermark.checkpoint.interval.ms": "500", "broker.rack": "west"}
BROKERS: Final = 3
LOG_DIRS: Final = 2


class EventfulCluster:
    """One controller and three brokers with two log dirs each. Each method causes one kind of event.

    ``security`` holds properties that the controller and all brokers get."""

    def __init__(
        self,
        workspace: Workspace,
        tool_server: ToolServer,
        kind: ControllerKind,
        security: Mapping[str, str],
    ) -> None:
        self.workspace = workspace
        self.tools = KafkaTools(tool_server)
        self.quorum = ControllerQuorum(workspace, tool_server, [kind], properties={**PROPERTIES, **security})
        self._security = security
        (self.controller,) = self.quorum.controllers.values()
        self.admin = self.quorum.admin

    @property
    def brokers(self) -> dict[int, JvmBroker]:
        return self.quorum.brokers

    @property
    def bootstrap(self) -> str:
        """The address of broker 1, which never stops."""
        return self.brokers[1].address

    def written(self) -> list[Message]:
        """Return the records that are now in the controller's log."""
        data = b"".join(path.read_bytes() for path in segments(self.controller.data_folder))
        return [
            decode_metadata_record(value)[0]
            for batch in split_batches(data)[0]
            if not batch.header.is_control
            for value in record_values(batch)
        ]

    def wait_for_record(self, wanted: Callable[[Message], bool], what: str) -> None:
        wait_until(lambda: any(map(wanted, self.written())), what)

    # The controller.

    def start_controller(self) -> None:
        self.quorum.format("--release-version", RELEASE)
        self._run()

    def _run(self) -> None:
        self.controller.start()
        self.controller.wait_until_ready()

    def restart_in_a_transaction(self) -> None:
        """Stop the controller, append an open transaction to its log, and start it; it must abort that."""
        self.controller.stop()
        _begin_a_transaction(segments(self.controller.data_folder)[-1])
        self._run()
        self.wait_for_record(
            lambda record: isinstance(record, AbortTransactionRecord), "the transaction to be aborted"
        )

    # The brokers.

    def add_brokers(self) -> None:
        for node_id in range(1, BROKERS + 1):
            self.quorum.add_broker(node_id, {**BROKER_PROPERTIES, **self._security}, LOG_DIRS)

    def start_brokers(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        self.quorum.wait_until_brokers_are_ready()

    def kill(self, broker_id: int) -> None:
        """Kill a broker and wait until broker 1 sees it fenced."""
        self.brokers[broker_id].kill()
        left = {id for id, broker in self.brokers.items() if broker.running_process.running}
        wait_until(
            lambda: broker_metadata.live_brokers(self.brokers[1]) == left, f"broker {broker_id} to be fenced"
        )

    def start_again(self, broker_id: int) -> None:
        self.brokers[broker_id].start()
        self.brokers[broker_id].wait_until_ready()

    def unregister(self, broker_id: int) -> None:
        """Unregister a broker after a controlled shutdown."""
        self.brokers[broker_id].stop()
        self.tools.unregister(self.bootstrap, broker_id)
        del self.brokers[broker_id]

    def cordon_a_log_dir(self, broker_id: int) -> None:
        folder = self.brokers[broker_id].log_folders(LOG_DIRS)[1]
        self.configure("brokers", str(broker_id), "--add-config", f"cordoned.log.dirs={folder}")
        self.wait_for_record(
            lambda record: (
                isinstance(record, BrokerRegistrationChangeRecord) and bool(record.cordoned_log_dirs)
            ),
            f"broker {broker_id} to have a cordoned log dir",
        )

    def break_a_log_dir(self, broker_id: int) -> None:
        """Make a log dir fail: replace the file of its high watermarks by a folder."""
        broken = self.brokers[broker_id].log_folders(LOG_DIRS)[1] / "replication-offset-checkpoint"
        wait_until(broken.exists, f"{broken}")
        broken.unlink()
        (broken / "in the way").mkdir(parents=True)
        self.wait_for_record(
            lambda record: (
                isinstance(record, BrokerRegistrationChangeRecord) and len(record.log_dirs) == LOG_DIRS - 1
            ),
            f"broker {broker_id} to lose a log dir",
        )

    # Topics and configs.

    def create_topic_on(self, name: str, *assignments: list[int]) -> None:
        clients.create_topic_on(self.admin(), name, assignments)
        broker_metadata.wait_for_topic([self.brokers[1]], name, len(assignments))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with Kafka's tool; an older admin client might still ask a broker that was
        killed."""
        self.tools.topics(self.bootstrap, "--delete", "--topic", name)
        broker_metadata.wait_for_absence([self.brokers[1]], name)

    def configure(self, kind: str, name: str, *change: str) -> None:
        """Change a config; ``kind`` is an entity type of the tool, such as topics; "" is the default
        entity."""
        entity = ("--entity-name", name) if name else ("--entity-default",)
        options = ("--alter", "--entity-type", kind, *entity, *change)
        until_read(lambda: self.tools.configs(self.bootstrap, *options))

    def elect(self, election: str, topic: str, leader: int) -> None:
        """Run a "preferred" or "unclean" election that makes this broker the leader."""
        partition = ("--topic", topic, "--partition", "0")
        self.tools.leader_election(self.bootstrap, "--election-type", election, *partition)
        self.wait_until_led_by(topic, leader)

    def wait_until_led_by(self, topic: str, leader: int) -> None:
        wait_until(
            lambda: broker_metadata.leaders(self.brokers[1], topic) == {leader},
            f"broker {leader} to lead {topic}",
        )


def _begin_a_transaction(segment: Path) -> None:
    """Append an open transaction to a segment. Controllers leave none behind: they write theirs at once."""
    header = split_batches(segment.read_bytes())[0][-1].header
    change = ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1")
    values = [encode_metadata_record(record, 0) for record in (BeginTransactionRecord("never ended"), change)]
    with segment.open("ab") as log:
        log.write(encode_batch(header.next_offset, header.leader_epoch, header.max_timestamp, values))
