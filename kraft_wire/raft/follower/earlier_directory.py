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
from kraft_wire.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    ReplicaState,
)
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

    It may have ended a moment ago. So it is in use only if it has fetched since the last question.
    """
    state, described = quorum.state, only_partition(response.topics)
    earlier = quorum.history.voters.get(quorum.config.node_id)
    if not isinstance(state, Follower) or earlier is None or described is None or described.error_code:
        return
    following, last = state.following, _last_fetch(described, earlier.key)
    before, following.earlier_directory = following.earlier_directory, last
    if _is_silent(quorum, described, last):
        following.earlier_directory = LastFetch(last.replica, last.at_ms, is_gone=True)
        following.next_membership_ms = quorum.now.monotonic_ms
    elif before is not None and before.replica == last.replica and before.at_ms < last.at_ms:
        text = (
            f"another controller has node.id {earlier.key.id}: directory {earlier.key.directory_id} fetches"
        )
        quorum.emit(JoinRefused(call.peer.id, ErrorCode.DUPLICATE_VOTER, text))


def handle_description_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """The leader is asked again after a fetch timeout."""


def _last_fetch(described: DescribedPartition, replica: ReplicaKey) -> LastFetch:
    found = (each for each in described.current_voters if _key(each).matches(replica))
    return LastFetch(replica, max((each.last_fetch_timestamp for each in found), default=-1))


def _key(replica: ReplicaState) -> ReplicaKey:
    return ReplicaKey(replica.replica_id, replica.replica_directory_id)


def _is_silent(quorum: QuorumState, described: DescribedPartition, last: LastFetch) -> bool:
    """Whether the replica hasn't fetched for a fetch timeout, by the leader's clock: its own entry has the
    present time."""
    own = (each for each in described.current_voters if each.replica_id == described.leader_id)
    now_ms = max((each.last_fetch_timestamp for each in own), default=last.at_ms)
    return last.at_ms < 0 or now_ms - last.at_ms >= quorum.config.fetch_timeout_ms
