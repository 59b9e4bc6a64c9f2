"""Make and read the snapshots on a simulated disk: real bytes in the real format."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.log.batch import record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId, encode_snapshot, verify_snapshot
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.config import SnapshotInfo


class SnapshotFile:
    """A snapshot on disk. ``values`` are the state machine's records. The 0-0 checkpoint of format has no
    bytes."""

    __slots__ = ("control", "data", "info", "values")

    def __init__(
        self, info: SnapshotInfo, data: bytes, control: Sequence[Message], values: Sequence[bytes]
    ) -> None:
        self.info = info
        self.data = data
        self.control = control
        self.values = values

    @property
    def id(self) -> SnapshotId:
        return self.info.id

    @property
    def is_whole(self) -> bool:
        """Whether its bytes are undamaged."""
        if self.id == BOOTSTRAP_SNAPSHOT_ID:
            return True
        try:
            verify_snapshot(self.data)
        except LogError:
            return False
        return True


def bootstrap_file(control: Sequence[Message]) -> SnapshotFile:
    """Return the 0-0 checkpoint that format writes."""
    return SnapshotFile(SnapshotInfo(BOOTSTRAP_SNAPSHOT_ID, 494, 0), b"", control, ())


def make_snapshot(
    snapshot_id: SnapshotId, control: Sequence[Message], values: Sequence[bytes], timestamp_ms: int
) -> SnapshotFile:
    """Return a snapshot of a state machine's records."""
    data = b"".join(encode_snapshot(snapshot_id, control, values, timestamp_ms, timestamp_ms))
    return SnapshotFile(SnapshotInfo(snapshot_id, len(data), timestamp_ms), data, control, values)


def read_snapshot(snapshot_id: SnapshotId, data: bytes) -> SnapshotFile:
    """Decode a snapshot. Raises LogError if the bytes are damaged."""
    batches = verify_snapshot(data)
    messages = [m for batch in batches if batch.header.is_control for m in decode_control_batch(batch)]
    values = [value for batch in batches if not batch.header.is_control for value in record_values(batch)]
    header = next(message for message in messages if isinstance(message, SnapshotHeaderRecord))
    control = [message for message in messages if isinstance(message, KRaftVersionRecord | VotersRecord)]
    info = SnapshotInfo(snapshot_id, len(data), header.last_contained_log_timestamp)
    return SnapshotFile(info, data, control, values)
