"""Write one snapshot, in a process of its own: ``python -m kraft_wire.storage.snapshots.snapshotter FOLDER
END_OFFSET EPOCH NICENESS [TARGET]``. TARGET is the folder for the snapshot, by default FOLDER.

Reads the newest snapshot before END_OFFSET and the committed log from there on, without locks: neither
changes below END_OFFSET while the owner of the folder waits for this process. Prints one line of JSON about
the snapshot. Ends when its standard input, which the owner holds open, is closed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import LogError
from kraft_wire.log.files import LOG_SUFFIX, parse_segment_file_name, segment_file_name
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId, encode_snapshot
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import MissingRecords
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore, write_snapshot
from kraft_wire.storage.snapshots.state_loading import load_state


class Written(msgspec.Struct):
    """The JSON that the process prints."""

    snapshot_id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int


class _Content:
    """The contents of a snapshot: the state, and the control records about the voters."""

    def __init__(self) -> None:
        self.metadata = MetadataState()
        self.kraft_version: KRaftVersionRecord | None = None
        self.voters: VotersRecord | None = None
        self.last_timestamp_ms = 0

    def take_control(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, KRaftVersionRecord):
                self.kraft_version = message
            elif isinstance(message, VotersRecord):
                self.voters = message

    def take(self, batch: Batch) -> None:
        """Add a batch of the log."""
        self.last_timestamp_ms = max(self.last_timestamp_ms, batch.header.max_timestamp)
        if batch.header.is_control:
            self.take_control(decode_control_batch(batch))
            return
        self.metadata.replay_batch(batch)

    def control(self) -> list[Message]:
        return [message for message in (self.kraft_version, self.voters) if message is not None]


def make_snapshot(folder: Path, snapshot_id: SnapshotId, target: Path | None = None) -> Written:
    """Write the snapshot of everything below ``snapshot_id.end_offset``, into the folder itself or another
    one, and flush it.

    Raises MissingRecords if the folder doesn't hold all of the records; CorruptSnapshot, CorruptBatch,
    ReplayError, DiskFailed.
    """
    disk = Disk()
    content = _Content()
    start_offset = _load_newest_snapshot(SnapshotStore(folder, disk), snapshot_id, content)
    for batch in _log_batches(folder, start_offset, snapshot_id.end_offset):
        content.take(batch)
    values = (
        encode_metadata_record(record, version) for record, version in snapshot_records(content.metadata)
    )
    chunks = encode_snapshot(
        snapshot_id,
        content.control(),
        values,
        last_contained_log_timestamp_ms=content.last_timestamp_ms,
        now_ms=time.time_ns() // 1_000_000,
    )
    size_bytes = write_snapshot(folder if target is None else target, snapshot_id, chunks, disk)
    return Written(snapshot_id, size_bytes, content.last_timestamp_ms)


def _load_newest_snapshot(snapshots: SnapshotStore, before: SnapshotId, content: _Content) -> int:
    """Load the newest snapshot; returns its end offset. The snapshot of format holds voters, but no state."""
    usable = [id for id in snapshots.ids if id.end_offset <= before.end_offset and id != before]
    if not usable:
        return 0
    newest = usable[-1]
    content.take_control(snapshots.control(newest))
    content.metadata = load_state(snapshots, newest)
    if newest != BOOTSTRAP_SNAPSHOT_ID:
        content.last_timestamp_ms = snapshots.last_contained_log_timestamp_ms(newest)
    return newest.end_offset


def _log_batches(folder: Path, start_offset: int, end_offset: int) -> Iterator[Batch]:
    """Yield the batches of [start_offset, end_offset); both must be batch boundaries. Raises
    MissingRecords."""
    names = (parse_segment_file_name(path.name) for path in folder.iterdir())
    bases = sorted(base for base, suffix in filter(None, names) if suffix == LOG_SUFFIX)
    next_offset = start_offset
    for base, following in zip(bases, [*bases[1:], sys.maxsize], strict=False):
        if following <= start_offset or base >= end_offset:
            continue
        for batch in _segment_batches(folder / segment_file_name(base)):
            if batch.header.base_offset == next_offset:
                yield batch
                next_offset = batch.header.next_offset
            if next_offset >= end_offset:
                # The owner may be writing the next batch just now.
                break
    if next_offset != end_offset:
        raise MissingRecords(folder, f"the log holds no batch at offset {next_offset}, below {end_offset}")


def _segment_batches(path: Path) -> Iterator[Batch]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _, batch in read_batches(fd, 0, os.fstat(fd).st_size):
            yield batch
    finally:
        os.close(fd)


def main(arguments: list[str]) -> None:
    """Run the process. A problem of the folder or the disk is one line on stderr and status 1."""
    folder, end_offset, epoch, niceness, *target = arguments
    os.nice(int(niceness))
    threading.Thread(target=_end_with_the_owner, daemon=True).start()
    try:
        written = make_snapshot(Path(folder), SnapshotId(int(end_offset), int(epoch)), *map(Path, target))
    except LogError as error:
        sys.exit(str(error))
    sys.stdout.write(msgspec.json.encode(written).decode())


def _end_with_the_owner() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
