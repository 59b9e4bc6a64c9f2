"""Keep snapshots in files: those that this node writes, and the one that it fetches.

Writing, verifying and loading a snapshot take long. They run beside the event loop, in a process or a thread.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from kraft_wire.controller.node.events import (
    DigestFailed,
    DigestMade,
    SnapshotFailed,
    StateLoaded,
    StateTooNew,
)
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.errors import RecordTooNew
from kraft_wire.metadata.state import MetadataState
from kraft_wire.raft.events import SnapshotRejected, SnapshotVerified
from kraft_wire.server.digest_process import (
    DigestProcessFailed,
    ForkedDigest,
    digest_from,
    fork_digest,
)
from kraft_wire.server.ports.background import Background, Feed
from kraft_wire.server.reports import files
from kraft_wire.server.snapshot_process import SnapshotProcess, SnapshotProcessFailed
from kraft_wire.storage.errors import CorruptSnapshot
from kraft_wire.storage.snapshots.incoming_snapshot import IncomingSnapshot
from kraft_wire.storage.snapshots.snapshot_store import SnapshotReader
from kraft_wire.storage.snapshots.state_loading import read_state
from kraft_wire.storage.store import Store


class SnapshotFiles:
    """The snapshots of one node (``NodeSnapshotPort``). ``stop_reading`` stops reads of the log that an
    installed snapshot replaces."""

    def __init__(
        self,
        store: Store,
        process: SnapshotProcess,
        feed: Feed,
        background: Background,
        stop_reading: Callable[[], None],
    ) -> None:
        self._store = store
        self._process = process
        self._feed = feed
        self._background = background
        self._stop_reading = stop_reading
        self._incoming = IncomingSnapshot(store.snapshots, store.log)
        self._loading = trio.CancelScope()

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self._store.snapshots.read(snapshot_id, position, max_bytes)

    def delete(self, snapshot_id: SnapshotId) -> None:
        self._store.snapshots.delete(snapshot_id)

    # The snapshot that is fetched.

    def append_bytes(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        self._incoming.append(snapshot_id, position, data)

    def abandon(self, snapshot_id: SnapshotId) -> None:
        self._incoming.abandon(snapshot_id)

    def verify(self, snapshot_id: SnapshotId) -> None:
        self._background.start(self._verify, snapshot_id)

    async def _verify(self, snapshot_id: SnapshotId) -> None:
        try:
            verified = await trio.to_thread.run_sync(self._incoming.verify, snapshot_id)
        except CorruptSnapshot as error:
            self._feed(SnapshotRejected(snapshot_id, str(error)))
            return
        if verified is None:
            return
        self._feed(
            SnapshotVerified(
                snapshot_id,
                verified.size_bytes,
                verified.last_contained_log_timestamp_ms,
                verified.control_records,
            )
        )

    def install(self, snapshot_id: SnapshotId) -> None:
        self._stop_reading()
        self._loading.cancel()
        self._incoming.install(snapshot_id)
        self._loading = trio.CancelScope()
        self._background.start(self._load_state, snapshot_id, self._loading)

    async def _load_state(self, snapshot_id: SnapshotId, scope: trio.CancelScope) -> None:
        # Once another snapshot is installed, nobody needs this state, nor cares how its loading ends.
        if scope.cancel_called:
            return
        snapshot = self._store.snapshots.open_reader(snapshot_id)
        with scope:
            try:
                metadata = await trio.to_thread.run_sync(_read_and_close, snapshot, abandon_on_cancel=True)
            except RecordTooNew as record:
                self._feed(StateTooNew(snapshot_id, str(record)))
                return
            self._feed(StateLoaded(snapshot_id, metadata))

    def free_state(self, metadata: MetadataState) -> None:
        self._background.start(_free, metadata)

    # Digests and snapshots of this node's own state.

    def digest_state(self, metadata: MetadataState, end_offset: int) -> None:
        try:
            child = fork_digest(metadata, end_offset)
        except OSError as error:
            self._digest_failed(end_offset, f"no process can be forked: {error}")
            return
        self._background.start(self._wait_for_digest, child, end_offset)

    async def _wait_for_digest(self, child: ForkedDigest, end_offset: int) -> None:
        started = trio.current_time()
        try:
            made = await digest_from(child)
        except DigestProcessFailed as error:
            self._digest_failed(end_offset, str(error))
            return
        files.report_digest(end_offset, made, round((trio.current_time() - started) * 1000))
        self._feed(DigestMade(made.digest, made.record_count))

    def _digest_failed(self, end_offset: int, reason: str) -> None:
        files.report_failed_digest(end_offset, reason)
        self._feed(DigestFailed(reason))

    def write(self, snapshot_id: SnapshotId, *, is_urgent: bool) -> None:
        self._background.start(self._write, snapshot_id, is_urgent)

    async def _write(self, snapshot_id: SnapshotId, is_urgent: bool) -> None:
        started = trio.current_time()
        try:
            written = await self._process.make(snapshot_id, is_urgent=is_urgent)
        except SnapshotProcessFailed as error:
            is_superseded = self._store.log.start_offset > snapshot_id.end_offset
            files.report_failed_snapshot(snapshot_id, error, is_superseded=is_superseded)
            self._feed(SnapshotFailed(snapshot_id))
            return
        files.report_snapshot(written, round((trio.current_time() - started) * 1000))
        self._store.snapshots.add(snapshot_id)
        self._feed(written)


async def _free(metadata: MetadataState) -> None:
    for _ in metadata.free_in_pieces():
        await trio.lowlevel.checkpoint()


def _read_and_close(snapshot: SnapshotReader) -> MetadataState:
    try:
        return read_state(snapshot)
    finally:
        snapshot.close()
