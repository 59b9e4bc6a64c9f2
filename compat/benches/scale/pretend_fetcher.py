"""Pretend to be a broker that follows the metadata log: one long-polling Fetch, as a JVM broker sends it.

Requests are encoded once; only their offsets change. Of a response only what stands at fixed places is read.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from typing import Final

from compat.harness.processes import ProcessFailed
from kraft_wire.log.files import CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import encode_request

MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 8 * 1024 * 1024
RECEIVE_BYTES: Final = 1 << 16
_SIZE: Final = struct.Struct(">i")
_CODE: Final = struct.Struct(">h")
_OFFSET: Final = struct.Struct(">q")
_PARTITION_ERROR_AT: Final = 41
"""In the frame of a response from version 17 on, with its length: after headers, topic id and index."""
_HIGH_WATERMARK_AT: Final = 43
_RECORDS_AT: Final = 72
"""The size of the records, plus one, as an unsigned varint; then the batches."""
_BATCH_SIZE_AT: Final = 8
_LAST_OFFSET_DELTA_AT: Final = 23
_BATCH_OVERHEAD: Final = 12
_UNLIKELY_OFFSETS: Final = 0x1122334455667788, 0x2122334455667788


class FetchFrame:
    """A Fetch of one replica. ``with_offsets`` puts other offsets into the same bytes."""

    def __init__(
        self, version: int, cluster_id: str, replica_id: int, directory: Uuid, leader_epoch: int
    ) -> None:
        offset, high_watermark = _UNLIKELY_OFFSETS
        partition = FetchPartition(
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=leader_epoch,
            replica_directory_id=directory,
        )
        if version >= 18:
            partition.high_watermark = high_watermark
        request = FetchRequest(
            cluster_id=cluster_id,
            replica_state=ReplicaState(replica_id, -1),
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=MAX_BYTES,
            topics=[FetchTopic(topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition])],
        )
        client_id = f"raft-client-{replica_id}"
        self._bytes = bytearray(frame(encode_request(FetchRequest.API_KEY, version, 0, client_id, request)))
        self._offset_at = self._bytes.index(_OFFSET.pack(offset))
        self._high_watermark_at = self._bytes.find(_OFFSET.pack(high_watermark))

    def with_offsets(self, offset: int, high_watermark: int) -> bytearray:
        """Return the request from this offset on, of a replica that knows this high watermark."""
        _OFFSET.pack_into(self._bytes, self._offset_at, offset)
        if self._high_watermark_at >= 0:
            _OFFSET.pack_into(self._bytes, self._high_watermark_at, high_watermark)
        return self._bytes


class PretendFetcher:
    """A replica that has the log up to ``end_offset`` and knows that it is committed up to ``known_end``.

    ``progressed(had, has, knew, knows, data)`` is called when one of these offsets grew; ``data`` is the
    response that made it grow.
    """

    __slots__ = ("_frame", "_high_watermark", "_left", "_progressed", "answers", "end_offset", "socket")

    def __init__(
        self,
        connected: socket.socket,
        request: FetchFrame,
        end_offset: int,
        progressed: Callable[[int, int, int, int, bytes], None],
    ) -> None:
        self.socket = connected
        self.end_offset = end_offset
        self.answers = 0
        self._frame = request
        self._high_watermark = 0
        self._left = b""
        self._progressed = progressed

    def fetch(self) -> None:
        """Send the next Fetch."""
        self.socket.send(self._frame.with_offsets(self.end_offset, self._high_watermark))

    def readable(self) -> None:
        """Read what has come, and fetch again after a whole response. Raises ProcessFailed for an error."""
        data = self._left + self.socket.recv(RECEIVE_BYTES)
        if len(data) < _SIZE.size or len(data) < _SIZE.size + _SIZE.unpack_from(data)[0]:
            self._left = data
            return
        self._left = b""
        self.answers += 1
        (error,) = _CODE.unpack_from(data, _PARTITION_ERROR_AT)
        if error:
            raise ProcessFailed(f"a Fetch was answered with {ErrorCode(error).name}")
        had, knew = self.end_offset, min(self.end_offset, self._high_watermark)
        (self._high_watermark,) = _OFFSET.unpack_from(data, _HIGH_WATERMARK_AT)
        self.end_offset = has = max((end for end, _, _ in batches_of(data)), default=had)
        self.fetch()
        knows = min(has, self._high_watermark)
        if has > had or knows > knew:
            self._progressed(had, has, knew, knows, data)


def batches_of(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield for each batch in a response's frame: its end offset, and where it begins and ends there."""
    position, size, shift = _RECORDS_AT, 0, 0
    while (byte := data[position]) & 0x80:
        size |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
    position += 1
    records_end = position + (size | byte << shift) - 1
    while position < records_end:
        (base_offset,) = _OFFSET.unpack_from(data, position)
        last_offset = base_offset + _SIZE.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)[0]
        stop = position + _BATCH_OVERHEAD + _SIZE.unpack_from(data, position + _BATCH_SIZE_AT)[0]
        yield last_offset + 1, position, stop
        position = stop
