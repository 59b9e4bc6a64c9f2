"""Describe events in a few words, for the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.events import Event, Flushed, Propose, RequestFailed, ResponseReceived, RpcRequest


def describe(event: Event | ApiRequest) -> str:
    """Return a description of an event."""
    match event:
        case RpcRequest():
            return f"asked {describe_message(event.request)}"
        case ResponseReceived():
            return f"told {describe_message(event.response)}"
        case ApiRequest():
            return f"asked {describe_message(event.request)}"
        case Flushed():
            return f"flushed {event.end_offset}"
        case Propose():
            return f"propose {event.records.count}"
        case RequestFailed():
            return f"failed {event.request_id} {event.failure.name}"
        case _:
            return type(event).__name__


def describe_message(message: Message) -> str:
    """Return the few fields that distinguish one message of a class from another."""
    say = _SAY.get(type(message))
    return type(message).__name__ if say is None else say(message)


def _leader(node_id: int) -> str:
    return "no leader" if node_id < 0 else f"leader {node_id}"


def _fetch(request: FetchRequest) -> str:
    asked = request.topics[0].partitions[0]
    return (
        f"Fetch {request.replica_state.replica_id} epoch {asked.current_leader_epoch}"
        f" from {asked.last_fetched_epoch}/{asked.fetch_offset} hw {asked.high_watermark}"
    )


def _fetched(response: FetchResponse) -> str:
    if not response.responses:
        return f"Fetch error {response.error_code}"
    answer = response.responses[0].partitions[0]
    text = (
        f"Fetch error {answer.error_code} epoch {answer.current_leader.leader_epoch}"
        f" {_leader(answer.current_leader.leader_id)} hw {answer.high_watermark}"
        f" bytes {len(answer.records or b'')}"
    )
    if answer.diverging_epoch.epoch >= 0:
        text += f" diverging {answer.diverging_epoch.epoch}/{answer.diverging_epoch.end_offset}"
    if answer.snapshot_id.epoch >= 0:
        text += f" snapshot {answer.snapshot_id.epoch}/{answer.snapshot_id.end_offset}"
    return text


def _fetch_snapshot(request: FetchSnapshotRequest) -> str:
    asked = request.topics[0].partitions[0]
    id = asked.snapshot_id
    return f"FetchSnapshot {request.replica_id} {id.epoch}/{id.end_offset} at {asked.position}"


def _fetched_snapshot(response: FetchSnapshotResponse) -> str:
    if not response.topics:
        return f"FetchSnapshot error {response.error_code}"
    answer = response.topics[0].partitions[0]
    return (
        f"FetchSnapshot error {answer.error_code} at {answer.position}"
        f" bytes {len(answer.unaligned_records or b'')}"
    )


def _vote(request: VoteRequest) -> str:
    asked = request.topics[0].partitions[0]
    kind = "PreVote" if asked.pre_vote else "Vote"
    return (
        f"{kind} {asked.replica_id} epoch {asked.replica_epoch} has"
        f" {asked.last_offset_epoch}/{asked.last_offset}"
    )


def _voted(response: VoteResponse) -> str:
    if not response.topics:
        return f"Vote error {response.error_code}"
    answer = response.topics[0].partitions[0]
    verdict = "yes" if answer.vote_granted else "no"
    return f"Vote {verdict} error {answer.error_code} epoch {answer.leader_epoch} {_leader(answer.leader_id)}"


def _begin(request: BeginQuorumEpochRequest) -> str:
    asked = request.topics[0].partitions[0]
    return f"BeginQuorumEpoch {asked.leader_id} epoch {asked.leader_epoch}"


def _end(request: EndQuorumEpochRequest) -> str:
    asked = request.topics[0].partitions[0]
    return f"EndQuorumEpoch {asked.leader_id} epoch {asked.leader_epoch}"


_SAY: Final[dict[type[Message], Callable[[Any], str]]] = {
    FetchRequest: _fetch,
    FetchResponse: _fetched,
    FetchSnapshotRequest: _fetch_snapshot,
    FetchSnapshotResponse: _fetched_snapshot,
    VoteRequest: _vote,
    VoteResponse: _voted,
    BeginQuorumEpochRequest: _begin,
    EndQuorumEpochRequest: _end,
}
