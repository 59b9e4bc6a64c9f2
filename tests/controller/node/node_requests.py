"""Requests to a node, and a node with a broker."""

from __future__ import annotations

from kraft_wire.controller.settings import Settings
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.messages import broker_registration_request as registration
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.raft.election import elections
from kraft_wire.raft.events import RpcRequest
from tests.controller.controller_harness import CLUSTER_ID, directory
from tests.controller.lone_controller import LISTENER, LoneController, active_controller


def register_broker(broker_id: int = 1) -> registration.BrokerRegistrationRequest:
    ranges = {
        "metadata.version": (7, 33),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
    }
    return registration.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=directory(broker_id, 5),
        listeners=[registration.Listener("PLAINTEXT", "localhost", 9092, 0)],
        features=[registration.Feature(name, low, high) for name, (low, high) in ranges.items()],
        log_dirs=(directory(broker_id),),
    )


def create_topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


def controller_with_broker(settings: Settings | None = None) -> LoneController:
    """An active controller with broker 1 registered and unfenced."""
    controller = active_controller(settings)
    controller.ask("register", register_broker(), 4)
    controller.flush()
    epoch = controller.answer("register", BrokerRegistrationResponse).broker_epoch
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch)
    controller.ask("unfence", beat, 1)
    controller.flush()
    assert not controller.answer("unfence", BrokerHeartbeatResponse).is_fenced
    return controller


def consume(offset: int, max_wait_ms: int = 500) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=CLUSTER_METADATA, partitions=[partition])],
    )


def lose_leadership(controller: LoneController) -> None:
    """Let a node learn of a higher epoch. A lone voter believes nobody, so this is done by hand."""
    quorum = controller.node.core._quorum
    elections.become_unattached(quorum, quorum.epoch + 1)
    controller.step(RpcRequest("nothing", DescribeQuorumRequest(), 2, LISTENER))
