"""Read the voters and the registrations of controllers from the log of a running quorum."""

from __future__ import annotations

from kraft_wire.client.live_log import LiveLog, LogEnds
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.raft.recovery.evidence import QuorumHistory


def read_history(quorum: QuorumClient, found: QuorumHistory) -> None:
    """Add the oldest snapshot and all committed records after it.

    After an error ``found`` has what was read before. Raises QuorumError, LogError, ProtocolError.
    """
    log = LiveLog(quorum)
    _read_all(quorum, log, log.ends(), found)


class GrowingHistory:
    """The history of a running quorum. Each reading goes on where the one before ended."""

    def __init__(self, quorum: QuorumClient) -> None:
        self._quorum = quorum
        self._found = QuorumHistory()
        self._end_offset: int | None = None

    def read(self) -> QuorumHistory:
        """Return everything that is committed. Raises QuorumError, LogError, ProtocolError."""
        log = LiveLog(self._quorum)
        ends, begin = log.ends(), self._end_offset
        self._end_offset = None  # after an error all is read again
        if begin is None or begin < ends.log_start_offset:
            self._found = QuorumHistory()
            _read_all(self._quorum, log, ends, self._found)
        elif begin < ends.high_watermark:
            _read_log(log, begin, ends.high_watermark, self._found)
        self._end_offset = max(begin or 0, ends.high_watermark)
        return self._found


def _read_all(quorum: QuorumClient, log: LiveLog, ends: LogEnds, found: QuorumHistory) -> None:
    oldest = log.oldest_snapshot(ends)
    if oldest is not None:
        pages = snapshot_batches(quorum, oldest)
        found.take_snapshot(oldest, (batch for page in pages for batch in split_batches(page)[0]))
    _read_log(log, ends.log_start_offset, ends.high_watermark, found)


def _read_log(log: LiveLog, offset: int, end_offset: int, found: QuorumHistory) -> None:
    for served in log.batches(offset, end_offset):
        for position, header in served.batches:
            found.take(Batch(header, served.data[position : position + header.size_bytes]))
