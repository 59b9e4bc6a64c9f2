"""Listen like the leader that strangers announce, and answer whoever believes them."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from compat.campaigns.strangers.drawing import ABSURD_EPOCHS, HIGHEST, OFFSETS
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    api_versions_response,
    begin_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_response,
    vote_response,
)
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.own_messages import voter_entry_response
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.registry import request_class
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.server_side import ServedApi, ServerSide, Slot

FAKE_ID: Final = 77
MAX_FRAME_BYTES: Final = 1 << 20
MAX_ENTRIES: Final = 1000
ERRORS: Final = (
    ErrorCode.NONE,
    ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


class FakeLeader:
    """A leader that claims any epoch, asks to cut the log, names snapshots, and sends records of its own."""

    def __init__(self, seed: int, node_ids: tuple[int, ...]) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.visits = 0
        self.questions = 0
        self._chance = random.Random(seed)
        self._node_ids = node_ids
        self._visitors: dict[threading.Thread, socket.socket] = {}
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    @property
    def visitors(self) -> int:
        """The visitors that are remembered: those who are there, and some who have just left."""
        return len(self._visitors)

    def close(self) -> None:
        """Stop listening, and close all connections."""
        _shut_down(self._server)
        self._acceptor.join()  # no visitor comes after this
        for thread, stream in self._visitors.items():
            _shut_down(stream)
            thread.join()
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closing the server ends the loop
            while True:
                stream, _ = self._server.accept()
                self.visits += 1
                self._visitors = {each: its for each, its in self._visitors.items() if each.is_alive()}
                thread = threading.Thread(target=self._serve, args=(stream,))
                self._visitors[thread] = stream
                thread.start()

    def _serve(self, stream: socket.socket) -> None:
        server = ServerSide(_served, MAX_FRAME_BYTES, lambda: None, _unanswerable)
        with stream, suppress(OSError, ProtocolError):
            while data := stream.recv(1 << 16):
                server.receive(data)
                while (frame := server.next_frame()) is not None:
                    request = server.take(frame)
                    answer = self._answer(request.message)
                    if answer is None:
                        return
                    request.slot.answer(answer)
                ready = server.take_ready()
                stream.sendall(ready)
                server.sent(len(ready))

    def _answer(self, request: Message) -> Message | None:
        match request:
            case ApiVersionsRequest():
                return _versions()
            case FetchRequest():
                return self._fetched(request)
            case FetchSnapshotRequest():
                return self._snapshot()
            case VoteRequest():
                return self._voted(request)
            case BeginQuorumEpochRequest():
                return self._announced(request)
            case VoterEntryRequest():
                return self._entry()
            case _:
                return None

    def _epoch(self, asked: int) -> int:
        near = asked + self._chance.choice((-1, 0, 1, 1 << 16))
        return self._chance.choice((min(max(near, 0), HIGHEST), *ABSURD_EPOCHS))

    def _leader_id(self) -> int:
        return self._chance.choice((FAKE_ID, *self._node_ids))

    def _fetched(self, request: FetchRequest) -> fetch_response.FetchResponse:
        chance = self._chance
        asked = request.topics[0].partitions[0]
        epoch, leader_id = self._epoch(asked.current_leader_epoch), self._leader_id()
        partition = fetch_response.PartitionData(
            error_code=chance.choice(ERRORS),
            high_watermark=chance.choice(OFFSETS),
            log_start_offset=chance.choice(OFFSETS),
            current_leader=fetch_response.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
            records=b"",
        )
        match chance.randrange(4):
            case 0:
                partition.diverging_epoch = fetch_response.EpochEndOffset(epoch=0, end_offset=0)
            case 1:
                partition.snapshot_id = fetch_response.SnapshotId(end_offset=10**9, epoch=max(0, epoch))
            case 2:
                partition.records = encode_batch(asked.fetch_offset, max(0, epoch), 0, [_foreign_record()])
        topic = fetch_response.FetchableTopicResponse(
            topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition]
        )
        node = fetch_response.NodeEndpoint(node_id=leader_id, host="127.0.0.1", port=self.port)
        return fetch_response.FetchResponse(responses=[topic], node_endpoints=[node])

    def _snapshot(self) -> fetch_snapshot_response.FetchSnapshotResponse:
        data = encode_batch(0, 1, 0, [_foreign_record()])
        partition = fetch_snapshot_response.PartitionSnapshot(
            snapshot_id=fetch_snapshot_response.SnapshotId(end_offset=10**9, epoch=1),
            current_leader=fetch_snapshot_response.LeaderIdAndEpoch(FAKE_ID, self._epoch(1)),
            size=len(data),
            position=0,
            unaligned_records=data,
        )
        topic = fetch_snapshot_response.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])
        return fetch_snapshot_response.FetchSnapshotResponse(topics=[topic])

    def _voted(self, request: VoteRequest) -> vote_response.VoteResponse:
        epoch = self._epoch(request.topics[0].partitions[0].replica_epoch)
        partition = vote_response.PartitionData(
            leader_id=self._leader_id(), leader_epoch=epoch, vote_granted=True
        )
        topic = vote_response.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
        return vote_response.VoteResponse(topics=[topic])

    def _entry(self) -> voter_entry_response.VoterEntryResponse:
        """Answer as the voter that is asked: this is its address."""
        self.questions += 1
        here = voter_entry_response.Endpoint("CONTROLLER", "127.0.0.1", self.port)
        return voter_entry_response.VoterEntryResponse(endpoints=[here], max_kraft_version=1)

    def _announced(
        self, request: BeginQuorumEpochRequest
    ) -> begin_quorum_epoch_response.BeginQuorumEpochResponse:
        """Answer as the voter that is asked for, with any epoch."""
        self.questions += 1
        epoch = self._epoch(request.topics[0].partitions[0].leader_epoch)
        partition = begin_quorum_epoch_response.PartitionData(
            error_code=self._chance.choice(ERRORS), leader_id=self._leader_id(), leader_epoch=epoch
        )
        topic = begin_quorum_epoch_response.TopicData(CLUSTER_METADATA, [partition])
        return begin_quorum_epoch_response.BeginQuorumEpochResponse(topics=[topic])


@contextmanager
def fake_leader(seed: int, node_ids: tuple[int, ...]) -> Iterator[FakeLeader]:
    """Run a fake leader until the block ends."""
    leader = FakeLeader(seed, node_ids)
    try:
        yield leader
    finally:
        leader.close()


def _shut_down(stream: socket.socket) -> None:
    with suppress(OSError):  # it is closed, or its other side is
        stream.shutdown(socket.SHUT_RDWR)


def _foreign_record() -> bytes:
    return encode_metadata_record(TopicRecord(name="foreign", topic_id=Uuid(b"\x07" * 16)), 0)


def _versions() -> api_versions_response.ApiVersionsResponse:
    served = (
        ApiVersionsRequest,
        BeginQuorumEpochRequest,
        FetchRequest,
        FetchSnapshotRequest,
        VoteRequest,
        VoterEntryRequest,
    )
    return api_versions_response.ApiVersionsResponse(
        api_keys=[
            api_versions_response.ApiVersion(each.API_KEY, each.MIN_VERSION, each.MAX_VERSION)
            for each in served
        ]
    )


def _served(api_key: int, version: int) -> ServedApi:
    return ServedApi(request_class(api_key), MAX_ENTRIES)


def _unanswerable(slot: Slot, error: ProtocolError) -> None:
    raise error
