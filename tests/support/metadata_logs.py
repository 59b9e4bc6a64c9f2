"""Write metadata logs to disk with the controller's own storage."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.log.batch import encode_batch
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import (
    PARTITION_FOLDER,
    ElectionState,
    MetaProperties,
    meta_properties_text,
    segment_file_name,
)
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot, snapshot_file_name
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.log.metadata_log import LogConfig, MetadataLog
from kraft_wire.storage.quorum_state import write_election_state
from kraft_wire.storage.snapshots.snapshot_store import write_snapshot


def topic(offset: int) -> bytes:
    """Return the record for an offset."""
    return encode_metadata_record(
        TopicRecord(name=f"topic-{offset}", topic_id=Uuid((offset + 1).to_bytes(16))), 0
    )


class _QuickDisk(Disk):
    """A disk that doesn't flush: no test with it simulates a power failure."""

    def flush_data(self, fd: int, path: Path) -> None:
        pass

    def flush_folder(self, folder: Path) -> None:
        pass


class LogWriter:
    """A writer of a controller's folder. The record with offset n has the timestamp of n seconds."""

    def __init__(self, folder: Path, cluster: str = "one", *, epoch: int = 1) -> None:
        self.partition = folder / PARTITION_FOLDER
        self.partition.mkdir(parents=True)
        self._disk = _QuickDisk()
        (folder / "meta.properties").write_text(meta_properties_text(MetaProperties(cluster, 1)))
        self.epoch = epoch
        self.log = self._open()
        self.lead(epoch)

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def lead(self, epoch: int) -> None:
        """Begin a leader's epoch."""
        self.epoch = epoch
        write_election_state(self.partition, ElectionState(1, epoch, 1), self._disk, kraft_version=1)
        self.log.note_quorum_epoch(epoch)
        message = LeaderChangeMessage(leader_id=1)
        self.log.append([encode_control_batch(self.end_offset, epoch, self.end_offset * 1000, [message])])
        self.log.flush()

    def append(self, count: int = 3) -> None:
        """Append a batch of ``count`` records."""
        begin = self.end_offset
        values = [topic(offset) for offset in range(begin, begin + count)]
        self.log.append([encode_batch(begin, self.epoch, begin * 1000, values)])
        self.log.flush()

    def remove_topics(self, *offsets: int) -> None:
        """Append a batch that removes the topics which the records with these offsets created."""
        begin = self.end_offset
        values = [
            encode_metadata_record(RemoveTopicRecord(Uuid((offset + 1).to_bytes(16))), 0)
            for offset in offsets
        ]
        self.log.append([encode_batch(begin, self.epoch, begin * 1000, values)])
        self.log.flush()

    def roll(self) -> None:
        """Begin a new segment."""
        self.log._roll()

    def snapshot(self) -> SnapshotId:
        """Write a snapshot of the whole log, with all topics."""
        snapshot_id = SnapshotId(self.end_offset, self.epoch)
        values = [topic(offset) for offset in range(self.end_offset)]
        last_ms = (self.end_offset - 1) * 1000
        write_snapshot(
            self.partition, snapshot_id, encode_snapshot(snapshot_id, [], values, last_ms, 7), self._disk
        )
        return snapshot_id

    def trim(self, offset: int) -> None:
        """Delete the segments and snapshots below an offset."""
        self.log.delete_before(offset)
        self.log.flush()
        for path in self.partition.glob("*.checkpoint"):
            if int(path.name[:20]) < offset:
                path.unlink()

    def cut(self, offset: int) -> None:
        """Truncate the log before the batch that contains an offset, as after a diverging epoch."""
        self.log.truncate_to(offset)

    def commit(self, offset: int) -> None:
        self.log.note_committed(offset)
        self.log.flush()

    def segment(self, base_offset: int = 0) -> Path:
        return self.partition / segment_file_name(base_offset)

    def checkpoint(self, snapshot_id: SnapshotId) -> Path:
        return self.partition / snapshot_file_name(snapshot_id)

    def close(self) -> None:
        self.log.close()

    def _open(self) -> MetadataLog:
        return MetadataLog.open(self.partition, self._disk, config=LogConfig(), quorum_epoch=None)
