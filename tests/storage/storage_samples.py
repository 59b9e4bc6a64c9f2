"""Logs on disk to test with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.log.control import encode_control_batch
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.log.metadata_log import LogConfig, MetadataLog

TIMESTAMP_MS = 1_795_262_005_000
FIRST_SEGMENT = "00000000000000000000.log"

SMALL_SEGMENTS = LogConfig(segment_bytes=2000, tail_cache_bytes=1000)


def leader_change(base_offset: int, epoch: int) -> bytes:
    """Return the batch with which leader 1 starts an epoch."""
    voters = [Voter(voter_id=1)]
    message = LeaderChangeMessage(leader_id=1, voters=voters, granting_voters=voters)
    return encode_control_batch(base_offset, epoch, TIMESTAMP_MS + base_offset, [message])


def data_batch(
    base_offset: int, epoch: int, count: int = 1, value_size: int = 20, timestamp_ms: int | None = None
) -> bytes:
    """Return a batch of ``count`` records whose values differ."""
    values = [f"value {base_offset + n} ".encode().ljust(value_size, b".") for n in range(count)]
    time = TIMESTAMP_MS + base_offset if timestamp_ms is None else timestamp_ms
    return encode_batch(base_offset, epoch, time, values)


def epoch_batches(base_offset: int, epoch: int, counts: Sequence[int], value_size: int = 20) -> list[bytes]:
    """Return a leader's first batch, and data batches with these record counts after it."""
    batches = [leader_change(base_offset, epoch)]
    offset = base_offset + 1
    for count in counts:
        batches.append(data_batch(offset, epoch, count, value_size))
        offset += count
    return batches


def open_log(
    folder: Path,
    config: LogConfig = SMALL_SEGMENTS,
    quorum_epoch: int | None = None,
    disk: Disk | None = None,
) -> MetadataLog:
    return MetadataLog.open(folder, disk or Disk(), config=config, quorum_epoch=quorum_epoch)


def write_log(
    folder: Path,
    batches: Sequence[bytes],
    config: LogConfig = SMALL_SEGMENTS,
    quorum_epoch: int | None = None,
) -> None:
    """Write a log one batch at a time, flush it, and close it."""
    log = open_log(folder, config, quorum_epoch)
    for batch in batches:
        log.append([batch])
    log.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def all_bytes(log: MetadataLog) -> bytes:
    return b"".join(batch.data for batch in log.batches(log.start_offset))


def base_offsets(batches: Sequence[bytes]) -> list[int]:
    return [split_batches(batch)[0][0].header.base_offset for batch in batches]


def change_file(path: Path, change: Callable[[bytearray], None]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def flip(path: Path, position: int, bit: int = 0) -> None:
    def change(data: bytearray) -> None:
        data[position] ^= 1 << bit

    change_file(path, change)
