"""Ask a controller over the wire which node leads, with the tests' own client."""

from __future__ import annotations

from compat.harness.processes import ManagedProcess, ProcessFailed
from compat.harness.waiting import wait_until
from kraft_wire.protocol.messages import describe_quorum_request as quorum
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from tests.support.wire_client import ConnectionClosed, FrameClient, WireClient

__all__ = ["ConnectionClosed", "FrameClient", "WireClient", "describe_quorum", "wait_until_active"]


def describe_quorum(client: WireClient) -> DescribeQuorumResponse:
    """Return the quorum of the metadata log, as the node describes it."""
    partition = quorum.PartitionData(partition_index=0)
    topic = quorum.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return client.call(quorum.DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)


def wait_until_active(process: ManagedProcess, port: int, timeout_s: float) -> None:
    """Wait until the node on ``port`` leads and the first record of its epoch is committed."""

    def leads() -> bool:
        if not process.running:
            raise ProcessFailed(f"{process.name} ended with {process.exit_code}\n{process.tail()}")
        try:
            with WireClient(port, timeout_s=5.0) as client:
                response = describe_quorum(client)
        except OSError:
            return False  # not listening yet
        partition = response.topics[0].partitions[0]
        return partition.error_code == 0 and partition.leader_id >= 0 and partition.high_watermark > 0

    wait_until(leads, f"{process.name} to lead", timeout_s)
