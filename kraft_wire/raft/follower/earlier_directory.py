"""Ask the leader whether the directory that the log has for this node's id is still in use (auto-join).

A controller with a new disk removes its earlier directory. But another controller may run with the same
node.id by mistake, on that directory. Java's removes it without a question: two such controllers take each
other's place for ever. So this node asks with DescribeQuorum first, and gives way to a directory that still
fetches.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.describe_quorum_response import PartitionData as DescribedPartition
from kraft_wire.raft.door.request_checks import METADATA_PARTITION, only_partition
from kraft_wire.raft.effects import JoinRefused
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, LastFetch

QUESTION: Final = DescribeQuorumRequest(
    topics=[
        TopicData(topic_name=CLUSTER_METADATA, partitions=[PartitionData(partition_index=METADATA_PARTITION)])
    ]
)


def handle_description(quorum: QuorumState, call: Call, response: DescribeQuorumResponse) -> None:
    """Note that the earlier directory is gone, or report that it isn't.

    It may have ended a moment ago. So it is gone when it hasn't fetched for a fetch timeout, by this node's
    clock: the leader's may be changed. It is in use if it has fetched since the last question.
    """
    state, described = quorum.state, only_partition(response.topics)
    earlier = quorum.history.voters.get(quorum.config.node_id)
    if not isinstance(state, Follower) or earlier is None or described is None or described.error_code:
        return
    following, now_ms = state.following, quorum.now.monotonic_ms
    before, last = following.earlier_directory, _last_fetch(described, earlier.key, now_ms)
    if before is not None and before._replace(since_ms=now_ms) == last:
        if now_ms - before.since_ms >= quorum.config.fetch_timeout_ms:
            following.earlier_directory = before._replace(is_gone=True)
            following.next_membership_ms = now_ms
        return
    following.earlier_directory = last
    following.next_membership_ms = now_ms + quorum.config.fetch_timeout_ms
    if before is not None and before.replica == last.replica and _has_fetched(before, last):
        text = (
            f"another controller has node.id {earlier.key.id}: directory {earlier.key.directory_id} fetches"
        )
        quorum.emit(JoinRefused(call.peer.id, ErrorCode.DUPLICATE_VOTER, text))


def handle_description_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """The leader is asked again after a fetch timeout."""


def _has_fetched(before: LastFetch, last: LastFetch) -> bool:
    return last.at_ms > before.at_ms or last.end_offset > before.end_offset


def _last_fetch(described: DescribedPartition, replica: ReplicaKey, now_ms: int) -> LastFetch:
    for each in described.current_voters:
        if ReplicaKey(each.replica_id, each.replica_directory_id).matches(replica):
            return LastFetch(replica, each.last_fetch_timestamp, each.log_end_offset, now_ms)
    return LastFetch(replica, -1, -1, now_ms)
