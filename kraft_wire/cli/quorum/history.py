"""Read the voters and the registrations of controllers from the log of a running quorum."""

from __future__ import annotations

from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.raft.recovery.evidence import QuorumHistory


def read_history(quorum: QuorumClient, found: QuorumHistory) -> None:
    """Add the oldest snapshot and all committed records after it.

    After an error ``found`` has what was read before. Raises QuorumError, LogError, ProtocolError.
    """
    log = LiveLog(quorum)
    ends = log.ends()
    oldest = log.oldest_snapshot(ends)
    if oldest is not None:
        pages = snapshot_batches(quorum, oldest)
        found.take_snapshot(oldest, (batch for page in pages for batch in split_batches(page)[0]))
    for served in log.batches(ends.log_start_offset, ends.high_watermark):
        for position, header in served.batches:
            found.take(Batch(header, served.data[position : position + header.size_bytes]))
