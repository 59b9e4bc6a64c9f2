"""Answer in a voter's name at another address: say that this voter leads a later epoch, and send records."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_response,
    fetch_response,
    vote_response,
)
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.own_messages.voter_entry_response import Endpoint, VoterEntryResponse
from kraft_wire.protocol.registry import request_class
from kraft_wire.wire.framing import FrameReader
from kraft_wire.wire.headers import decode_request_header, encode_response
from tests.support.wire_client import HOST, MAX_FRAME_BYTES, RECEIVE_BYTES


class Impostor:
    """A program at a port of loopback that claims to be voter ``id``, and to lead ``epoch``."""

    def __init__(self, id: int, epoch: int, versions: ApiVersionsResponse) -> None:
        self.id = id
        self.epoch = epoch
        self.asked: list[type[Message]] = []
        self._versions = versions
        self._server = socket.create_server((HOST, 0))
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        port: int = self._server.getsockname()[1]
        return port

    def close(self) -> None:
        for each in (self._server, *self._connections):
            with suppress(OSError):  # the other side has closed it
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._connections.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        frames = FrameReader(MAX_FRAME_BYTES)
        with suppress(OSError):
            while data := connection.recv(RECEIVE_BYTES):
                frames.feed(data)
                while (frame := frames.next_frame()) is not None:
                    answer = self._answer(frame)
                    connection.sendall(len(answer).to_bytes(4) + answer)

    def _answer(self, frame: bytes) -> bytes:
        header, position = decode_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        request, _ = request_class(key).decode_from(frame, version, position)
        self.asked.append(type(request))
        response = ANSWERS[type(request)](self, request)
        return encode_response(key, version, header.correlation_id, response)

    def _answer_versions(self, request: ApiVersionsRequest) -> Message:
        return self._versions

    def _answer_begin(self, request: BeginQuorumEpochRequest) -> Message:
        partition = begin_quorum_epoch_response.PartitionData(
            error_code=ErrorCode.FENCED_LEADER_EPOCH, leader_id=self.id, leader_epoch=self.epoch
        )
        topic = begin_quorum_epoch_response.TopicData(CLUSTER_METADATA, [partition])
        node = begin_quorum_epoch_response.NodeEndpoint(self.id, HOST, self.port)
        return begin_quorum_epoch_response.BeginQuorumEpochResponse(topics=[topic], node_endpoints=[node])

    def _answer_entry(self, request: VoterEntryRequest) -> Message:
        """Say that the voter wants this address."""
        return VoterEntryResponse(
            endpoints=[Endpoint("CONTROLLER", HOST, self.port)], min_kraft_version=0, max_kraft_version=1
        )

    def _answer_vote(self, request: VoteRequest) -> Message:
        epoch = request.topics[0].partitions[0].replica_epoch
        partition = vote_response.PartitionData(leader_id=-1, leader_epoch=epoch, vote_granted=True)
        return vote_response.VoteResponse(topics=[vote_response.TopicData(CLUSTER_METADATA, [partition])])

    def _answer_fetch(self, request: FetchRequest) -> Message:
        """Say that this voter leads. One that believes that gets a record, and hears that it is committed."""
        asked = request.topics[0].partitions[0]
        leader = fetch_response.LeaderIdAndEpoch(leader_id=self.id, leader_epoch=self.epoch)
        partition = fetch_response.PartitionData(
            error_code=ErrorCode.FENCED_LEADER_EPOCH, current_leader=leader, high_watermark=-1, records=b""
        )
        if asked.current_leader_epoch == self.epoch:
            records = [LeaderChangeMessage(leader_id=self.id)]
            partition.error_code = ErrorCode.NONE
            partition.records = encode_control_batch(asked.fetch_offset, self.epoch, 0, records)
            partition.high_watermark = asked.fetch_offset + 1
        topic = fetch_response.FetchableTopicResponse(
            topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition]
        )
        node = fetch_response.NodeEndpoint(node_id=self.id, host=HOST, port=self.port)
        return fetch_response.FetchResponse(responses=[topic], node_endpoints=[node])


ANSWERS: Final[Mapping[type[Message], Callable[[Impostor, Any], Message]]] = {
    ApiVersionsRequest: Impostor._answer_versions,
    BeginQuorumEpochRequest: Impostor._answer_begin,
    VoteRequest: Impostor._answer_vote,
    FetchRequest: Impostor._answer_fetch,
    VoterEntryRequest: Impostor._answer_entry,
}
"""Any other request ends its connection, with a traceback."""


@contextmanager
def impostor(id: int, epoch: int, versions: ApiVersionsResponse) -> Iterator[Impostor]:
    """Run an impostor whose ApiVersions are those of a controller."""
    running = Impostor(id, epoch, versions)
    try:
        yield running
    finally:
        running.close()
