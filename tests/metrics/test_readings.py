"""The values of the metrics of a whole node."""

from __future__ import annotations

import msgspec

from kraft_wire.controller.node.events import CommittedBatches
from kraft_wire.metadata.partitions.partition import NO_LEADER
from kraft_wire.metrics.definitions import DEFINITIONS
from kraft_wire.metrics.process import DiskUse
from kraft_wire.metrics.readings import read
from kraft_wire.metrics.windows import Histogram
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.raft.events import CanLead
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.controller.controller_harness import uuid
from tests.controller.node.node_requests import register_broker
from tests.metrics.counted import CountedController, active, leaderless, process


def test_a_leader_has_every_metric() -> None:
    assert active().values().keys() == DEFINITIONS.keys()


def test_a_node_that_does_not_lead_lacks_only_those_of_leaders() -> None:
    controller = leaderless()
    assert not controller.node.core.is_leader
    missing = DEFINITIONS.keys() - controller.values().keys()
    assert missing == {name for name, each in DEFINITIONS.items() if each.on_leader_only}


def test_leader_metrics_are_reset() -> None:
    controller = active()
    controller.step(CanLead(False))
    controller.tick()
    assert controller.values()["role"] == {"resigned": 1}
    assert not any(DEFINITIONS[name].on_leader_only for name in controller.values())
    controller.step(CanLead(True))
    controller.live(10_000)
    assert controller.node.core.is_leader
    values = controller.values()
    assert (values["observers"], values["voter_change_in_progress"]) == (0, 0)


def test_a_node_has_voted_or_not() -> None:
    controller = leaderless()
    quorum = controller.node.core._quorum
    assert controller.values()["role"] == {"unattached": 1}
    quorum.state = msgspec.structs.replace(quorum.state, voted=ReplicaKey(7, uuid(7)))
    values = controller.values()
    assert values["role"] == {"unattached-voted": 1}
    assert values["voted_for_id"] == 7


def test_the_quorum_of_one() -> None:
    controller = active()
    values, core = controller.values(), controller.node.core
    assert values["role"] == {"leader": 1}
    assert values["leader_id"] == values["voted_for_id"] == core.key.id
    assert values["epoch"] == values["log_end_epoch"] == core.epoch
    assert values["high_watermark"] == values["log_end_offset"] == controller.disk.end_offset
    assert values["last_committed_offset"] == values["last_applied_offset"] == controller.disk.end_offset - 1
    assert values["unapplied_records"] == values["replay_stopped"] == 0
    assert values["active"] == values["voters"] == 1


def test_a_node_that_knows_nothing_yet() -> None:
    values = CountedController().values()
    assert values["high_watermark"] == values["last_committed_offset"] == values["last_applied_offset"] == -1
    assert values["active"] == 0


def test_brokers_and_features() -> None:
    controller = active()
    controller.ask("broker", register_broker(5), 4)
    controller.flush()
    values = controller.values()
    assert values["brokers_fenced"] == 1
    assert values["brokers_active"] == values["brokers_in_controlled_shutdown"] == 0
    assert values["broker_state"] == {"5": 10}
    levels = values["finalized_level"]
    assert isinstance(levels, dict)
    supported = values["highest_supported_level"]
    assert isinstance(supported, dict)
    assert all(level <= supported[name] for name, level in levels.items())
    assert levels["metadataVersion"] == controller.state.metadata.stable_metadata_version


def test_what_a_leader_knows_of_voters_and_brokers() -> None:
    controller = active()
    controller.ask("broker", register_broker(5), 4)
    controller.flush()
    epoch = controller.state.metadata.brokers[5].epoch
    controller.ask("beat", BrokerHeartbeatRequest(broker_id=5, broker_epoch=epoch), 1)
    controller.now_ms += 1_500
    values = controller.values()
    assert values["broker_silent_seconds"] == {"5": 1.5}
    assert (values["voters_silent"], values["failures_left"], values["voters_without_address"]) == (0, 0, 0)
    assert values["voter_lag_records"] == {}, "it is alone"
    assert values["voted_for_directory"] == {str(controller.node.core.key.directory_id): 1}


def test_what_waits() -> None:
    controller = active()
    controller.ask("broker", register_broker(5), 4)
    controller.now_ms += 2_000
    values = controller.values()
    assert (values["uncommitted_seconds"], values["unflushed_seconds"]) == (2, 2)
    controller.flush()
    values = controller.values()
    assert (values["uncommitted_seconds"], values["unflushed_seconds"]) == (0, 0)


def test_readiness_is_a_metric_as_well() -> None:
    assert active().values()["ready"] == 1
    values = leaderless().values()
    assert values["ready"] == 0
    checks = values["check"]
    assert isinstance(checks, dict)
    assert (checks["leader"], checks["disk"]) == (0, 1)


def test_what_the_process_knows() -> None:
    controller = active()
    steps = Histogram((1, 10))
    for took_ms in (0.5, 0.5, 7):
        steps.add(took_ms)
    controller.now_ms += 1_000
    known = process(steps=steps, cpu_ms=250, disk=DiskUse(3, 100, 40), warnings={"slow step": 2})
    controller.counted.started_ms = controller.now_ms - 1_000
    values = read(controller.node, controller.counted, known, controller.now)
    assert values["steps"] == 3
    quantiles = values["step_duration_quantile_seconds"]
    assert isinstance(quantiles, dict)
    assert (quantiles["0.5"], quantiles["0.99"]) == (0.001, 0.01)
    assert values["event_loop_idle_ratio"] == 0.75
    assert (values["log_bytes"], values["disk_bytes"], values["disk_free_bytes"]) == (3, 100, 40)
    assert values["log_warnings"] == {"slow step": 2}


def test_static_voters_are_ignored_if_the_log_has_voters() -> None:
    controller = active()
    known = process(has_static_voters=True)
    assert controller.node.core.kraft_version == 0
    assert read(controller.node, controller.counted, known, controller.now)["static_voters_ignored"] == 0


def test_partitions_without_a_leader_and_with_another_than_the_preferred_one() -> None:
    controller = active()
    for broker_id in (1, 2):
        controller.ask(broker_id, register_broker(broker_id), 4)
    topic = TopicRecord("t", uuid(9))
    controller.state.metadata.replay(topic, 100)
    for index, (leader, replicas) in enumerate([(1, (1, 2)), (2, (1, 2)), (NO_LEADER, (2, 1))]):
        partition = PartitionRecord(
            partition_id=index, topic_id=uuid(9), replicas=replicas, isr=replicas, leader=leader
        )
        controller.state.metadata.replay(partition, 101 + index)
    values = controller.values()
    assert values["topics"] == 1
    assert values["partitions"] == 3
    assert values["partitions_offline"] == 1
    assert values["partitions_led_by_others"] == 2


def test_the_lag_of_a_standby_is_the_age_of_what_it_applied() -> None:
    controller = leaderless()
    assert controller.values()["applied_lag_seconds"] == 0
    last = controller.disk.batches[-1]
    event = CommittedBatches([last], last.header.next_offset)
    controller.counted.stepped(event, [], controller.now)
    assert controller.values()["applied_lag_seconds"] == 0, "it is still active"
    controller.node._decisions.deactivate()
    age_ms = controller.now.wall_ms - last.header.max_timestamp
    controller.now_ms += 2_500
    assert controller.values()["applied_lag_seconds"] == (age_ms + 2_500) / 1000
