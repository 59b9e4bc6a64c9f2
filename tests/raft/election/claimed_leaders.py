"""Let a node hear from a leader, and from those who only say that they lead."""

from __future__ import annotations

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import begin_quorum_epoch_request as begin
from kraft_wire.protocol.messages import fetch_response
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.raft.effects import Effect, SendRequest
from kraft_wire.raft.events import ResponseReceived, RpcRequest
from kraft_wire.raft.named_leader import NO_LEADER
from kraft_wire.raft.outgoing import FIRST_CLAIMED_ID
from tests.raft.core_quorum import QuorumNode
from tests.raft.lone_node import CLUSTER_ID, LISTENER

TOPIC = "__cluster_metadata"


def announcement(
    leader_id: int, epoch: int, *, host: str = "", voter_id: int = -1, cluster_id: str | None = CLUSTER_ID
) -> begin.BeginQuorumEpochRequest:
    """Return the BeginQuorumEpoch of a leader."""
    asked = begin.PartitionData(leader_id=leader_id, leader_epoch=epoch)
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        topics=[begin.TopicData(topic_name=TOPIC, partitions=[asked])],
        leader_endpoints=[begin.LeaderEndpoint(name=LISTENER, host=host or f"node-{leader_id}", port=9093)],
    )


def fetches(effects: list[Effect]) -> list[SendRequest]:
    """Return the Fetches to the leader, and those that search for it."""
    return [fetch for fetch in _all_fetches(effects) if fetch.peer.id > FIRST_CLAIMED_ID]


def _all_fetches(effects: list[Effect]) -> list[SendRequest]:
    requests = (effect for effect in effects if isinstance(effect, SendRequest))
    return [each for each in requests if isinstance(each.request, FetchRequest)]


def questions(effects: list[Effect], leader_id: int) -> list[SendRequest]:
    """Return the Fetches that ask a node whether it leads, because of a hint."""
    return [fetch for fetch in _all_fetches(effects) if fetch.peer.id == FIRST_CLAIMED_ID - leader_id]


def fetch_answer(
    leader_id: int, epoch: int, error: ErrorCode = ErrorCode.NONE, *, high_watermark: int = -1, host: str = ""
) -> fetch_response.FetchResponse:
    """Return an answer to a Fetch that names a leader, -1 for none."""
    leader = fetch_response.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
    partition = fetch_response.PartitionData(
        error_code=error, high_watermark=high_watermark, records=b"", current_leader=leader
    )
    topic = fetch_response.FetchableTopicResponse(topic=TOPIC, partitions=[partition])
    node = fetch_response.NodeEndpoint(node_id=leader_id, host=host or f"node-{leader_id}", port=9093)
    return fetch_response.FetchResponse(
        responses=[topic], node_endpoints=[] if leader_id == NO_LEADER else [node]
    )


def hint(node: QuorumNode, leader_id: int, epoch: int, *, host: str = "") -> list[Effect]:
    """Tell a node that another one leads."""
    return node.step(RpcRequest("begin", announcement(leader_id, epoch, host=host), 1, LISTENER))


def follow(node: QuorumNode, leader_id: int, epoch: int, *, host: str = "") -> list[Effect]:
    """Tell a node that another one leads, and let that one say so itself. Returns the effects of this
    answer."""
    (question,) = questions(hint(node, leader_id, epoch, host=host), leader_id)
    error = ErrorCode.NONE if epoch == node.running.epoch else ErrorCode.FENCED_LEADER_EPOCH
    effects = node.step(
        ResponseReceived(question.request_id, fetch_answer(leader_id, epoch, error, host=host))
    )
    assert node.running.leader_id == leader_id
    return effects


def resign(node: QuorumNode, leader_id: int) -> list[Effect]:
    """Let the leader that a node follows answer its Fetch: it doesn't lead any more."""
    asked = [fetch for fetch in fetches(node.effects) if fetch.peer.id == leader_id][-1]
    answer = fetch_answer(leader_id, node.running.epoch, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return node.step(ResponseReceived(asked.request_id, answer))
