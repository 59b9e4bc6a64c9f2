"""Keep the log in files: appends, flushes, truncation, and reads for the state machine and for consumers.

At most one flush is in flight; what is appended meanwhile is covered by the next one. A flush, a long read
and a search for timestamps run beside the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from kraft_wire.controller.node.events import CommittedBatches, TimestampsFound
from kraft_wire.log.batch import split_batches
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Flushed, LogTrimmed, LogTruncated
from kraft_wire.server.ports.background import Background, Feed
from kraft_wire.server.ports.flusher import Flusher
from kraft_wire.server.reports import files
from kraft_wire.server.timestamps import find_timestamps
from kraft_wire.storage.store import Store

READ_BYTES = 128 * 1024
"""Read and applied in one step: some 2,000 records, which take up to 50 ms if they are unusual."""


class LogFiles:
    """The log of one node (``NodeLogPort``)."""

    def __init__(
        self, store: Store, feed: Feed, background: Background, log_generation: Callable[[], int]
    ) -> None:
        """``log_generation`` returns the raft core's, which a truncation changes."""
        self._store = store
        self._feed = feed
        self._background = background
        self._log_generation = log_generation
        self._flusher = Flusher(self._flush, self._flushed)
        self._has_unflushed = False
        self._last_read: tuple[tuple[int, int, int], bytes] | None = None
        self._reading = trio.CancelScope()

    def append(self, appends: Sequence[AppendBatch]) -> None:
        self._last_read = None
        self._store.log.append([append.data for append in appends])
        self._has_unflushed = True

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Read, but not again what was read last. Many replicas that start ask for the same megabytes."""
        asked = offset, end_offset, max_bytes
        if self._last_read is None or self._last_read[0] != asked:
            self._last_read = None
            self._last_read = asked, self._store.log.read(offset, end_offset, max_bytes)
        return self._last_read[1]

    def truncate(self, end_offset: int) -> None:
        self._last_read = None
        log = self._store.log
        old_bytes, old_end_offset = log.size_bytes, log.end_offset
        new_end_offset = log.truncate_to(end_offset)
        deleted_bytes = old_bytes - log.size_bytes
        files.report_truncation(old_end_offset, new_end_offset, deleted_bytes)
        self._feed(LogTruncated(new_end_offset, deleted_bytes))

    def trim(self, start_offset: int) -> None:
        self._last_read = None
        log = self._store.log
        old_bytes = log.size_bytes
        self._has_unflushed |= log.delete_before(start_offset)
        deleted_bytes = old_bytes - log.size_bytes
        files.report_trimming(start_offset, deleted_bytes)
        self._feed(LogTrimmed(deleted_bytes))

    def note_committed(self, offset: int) -> None:
        self._store.log.note_committed(offset)

    def forget_loss(self) -> None:
        self._store.forget_loss()

    async def keep_flushing(self) -> None:
        """Run the flushes that ``flush_appended`` starts, until cancelled. Raises DiskFailed."""
        await self._flusher.run()

    def flush_appended(self) -> None:
        """Start to flush what was appended, when all effects of a step are executed."""
        if self._has_unflushed and not self._flusher.is_busy:
            self._has_unflushed = False
            self._flusher.start(self._log_generation())

    def _flush(self) -> int:
        return self._store.log.flush()

    def _flushed(self, end_offset: int, generation: int) -> None:
        self._feed(Flushed(end_offset, generation))

    def read_committed(self, start_offset: int, end_offset: int) -> None:
        self._reading = trio.CancelScope()
        self._background.start(self._read_committed, start_offset, end_offset, self._reading)

    def stop_reading(self) -> None:
        """Stop a read of committed batches: a snapshot takes the log's place."""
        self._last_read = None
        self._reading.cancel()

    async def _read_committed(self, start_offset: int, end_offset: int, scope: trio.CancelScope) -> None:
        position = start_offset
        with scope:
            while position < end_offset and not scope.cancel_called:
                data = self._store.log.read(position, end_offset, READ_BYTES)
                batches, _ = split_batches(data, check_crc=False)
                if not batches:
                    self._check_is_within_batch(position, end_offset)
                    self._feed(CommittedBatches([], position))
                    return
                position = batches[-1].header.next_offset
                self._feed(CommittedBatches(batches, position))
                await trio.lowlevel.checkpoint()

    def _check_is_within_batch(self, position: int, end_offset: int) -> None:
        """Raise InvariantViolated unless a batch begins at ``position`` and ends above ``end_offset``."""
        log = self._store.log
        batches, _ = split_batches(log.read(position, log.end_offset, READ_BYTES), check_crc=False)
        if not batches or batches[0].header.next_offset <= end_offset:
            raise InvariantViolated(
                f"all below offset {end_offset} is committed, and the log has nothing at {position}:"
                f" it ends at {log.end_offset}"
            )

    def find_timestamps(self, timestamps: Sequence[int], end_offset: int) -> None:
        self._background.start(self._find_timestamps, timestamps, end_offset)

    async def _find_timestamps(self, timestamps: Sequence[int], end_offset: int) -> None:
        found = await trio.to_thread.run_sync(find_timestamps, self._store.log, timestamps, end_offset)
        self._feed(TimestampsFound(found))
