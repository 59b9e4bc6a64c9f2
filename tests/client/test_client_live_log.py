"""The committed log of a live controller of ours is read byte for byte as it is on its disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.client.errors import LogRangeGone, SnapshotGone
from kraft_wire.client.live_log import LiveLog, LogEnds
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import split_batches
from kraft_wire.log.snapshot import SnapshotId, snapshot_file_name
from tests.support.controller_process import CLUSTER_ID, ControllerProcess, formatted
from tests.support.live_quorum import (
    QUIET,
    SNAPSHOTS,
    TRIMMED,
    address_of,
    batches_on_disk,
    read,
    settings,
    settled,
    snapshots_on_disk,
    write,
)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[ControllerProcess]:
    with ControllerProcess(formatted(tmp_path, QUIET)) as process, process.client() as client:
        write(client, range(30))
        yield process


@pytest.fixture
def with_snapshots(tmp_path: Path) -> Iterator[ControllerProcess]:
    with ControllerProcess(formatted(tmp_path, SNAPSHOTS)) as process, process.client() as client:
        write(client, range(60))
        process.wait_for("snapshot written")
        yield process


def test_the_log_is_what_is_on_disk(plain: ControllerProcess) -> None:
    with QuorumClient(settings(address_of(plain))) as quorum:
        log = LiveLog(quorum)
        ends = log.ends()
        data = read(log, 0, ends.high_watermark)
        assert quorum.cluster_id() == CLUSTER_ID
    assert (ends.log_start_offset, ends.newest_snapshot) == (0, None)
    assert data == b"".join(batch.data for batch in batches_on_disk(plain))
    assert split_batches(data)[0][-1].header.next_offset == ends.high_watermark


def test_a_range_is_whole_batches_around_it(plain: ControllerProcess) -> None:
    batches = batches_on_disk(plain)
    start, end = batches[2].header.last_offset, batches[7].header.base_offset + 1
    with QuorumClient(settings(address_of(plain))) as quorum:
        data = read(LiveLog(quorum), start, end)
    assert data == b"".join(batch.data for batch in batches[2:8])


@pytest.mark.parametrize("max_bytes", [1, 200, 1000])
def test_it_may_come_in_pieces(plain: ControllerProcess, max_bytes: int) -> None:
    with QuorumClient(settings(address_of(plain))) as quorum:
        log = LiveLog(quorum)
        end_offset = log.ends().high_watermark
        answers = list(log.batches(0, end_offset, max_bytes))
        data = read(log, 0, end_offset, max_bytes)
    assert len(answers) > 3
    assert data == b"".join(batch.data for batch in batches_on_disk(plain))


def test_offset_0_is_read_where_there_is_a_snapshot_as_well(with_snapshots: ControllerProcess) -> None:
    with QuorumClient(settings(address_of(with_snapshots))) as quorum:
        log = LiveLog(quorum)
        ends, ids = settled(with_snapshots, log)
        data = read(log, 0, ends.high_watermark)
    assert ends.newest_snapshot == ids[-1]
    assert log.oldest_snapshot(ends) is None
    assert data == b"".join(batch.data for batch in batches_on_disk(with_snapshots))


def test_a_snapshot_is_the_file_on_disk(with_snapshots: ControllerProcess) -> None:
    with QuorumClient(settings(address_of(with_snapshots))) as quorum:
        newest = LiveLog(quorum).ends().newest_snapshot
        assert newest is not None
        data = b"".join(snapshot_batches(quorum, newest))
        assert data == b"".join(snapshot_batches(quorum, newest, piece_bytes=100))
    assert data == (with_snapshots.log_dir / snapshot_file_name(newest)).read_bytes()


def test_a_missing_snapshot_is_an_error(with_snapshots: ControllerProcess) -> None:
    with QuorumClient(settings(address_of(with_snapshots))) as quorum:
        assert LiveLog(quorum).has_snapshot(snapshots_on_disk(with_snapshots)[0])
        assert not LiveLog(quorum).has_snapshot(SnapshotId(3, 1))
        with pytest.raises(SnapshotGone, match="has no snapshot 3-1: start with its newest"):
            next(snapshot_batches(quorum, SnapshotId(3, 1)))


def test_a_trimmed_log_begins_with_its_oldest_snapshot_in_whatever_epoch(tmp_path: Path) -> None:
    file = formatted(tmp_path, TRIMMED)
    for _ in range(20):  # an epoch each
        with ControllerProcess(file) as process, QuorumClient(settings(address_of(process))) as quorum:
            with process.client() as client:
                write(client, range(40))
            log = LiveLog(quorum)
            ends, ids = settled(process, log)
            _check_beginning(process, log, ends, ids)
            process.terminate()
        is_trimmed = ends.log_start_offset == ids[0].end_offset
        if is_trimmed and ids[0].epoch < ids[-1].epoch:
            return
    raise AssertionError(f"never trimmed to an older epoch: {ids}")


def _check_beginning(process: ControllerProcess, log: LiveLog, ends: LogEnds, ids: list[SnapshotId]) -> None:
    begins_with_snapshot = 0 < ends.log_start_offset == ids[0].end_offset
    assert log.oldest_snapshot(ends) == (ids[0] if begins_with_snapshot else None)
    data = read(log, ends.log_start_offset, ends.high_watermark)
    on_disk = [
        batch for batch in batches_on_disk(process) if batch.header.base_offset >= ends.log_start_offset
    ]
    assert on_disk
    assert data.endswith(b"".join(batch.data for batch in on_disk))
    assert split_batches(data)[0][0].header.base_offset == ends.log_start_offset
    if ends.log_start_offset > 0:
        with pytest.raises(LogRangeGone, match=f"log starts at offset {ends.log_start_offset};"):
            next(log.batches(ends.log_start_offset - 1, ends.high_watermark))


def test_each_record_has_its_epoch(tmp_path: Path) -> None:
    file = formatted(tmp_path, SNAPSHOTS)
    with ControllerProcess(file) as process, process.client() as client:
        write(client, range(8))
        process.terminate()
    with ControllerProcess(file) as process, QuorumClient(settings(address_of(process))) as quorum:
        log = LiveLog(quorum)
        end_offset = log.ends().high_watermark
        epochs = [log.epoch_at(offset) for offset in range(end_offset)]
    headers = [batch.header for batch in batches_on_disk(process)]
    expected = [header.leader_epoch for header in headers for _ in range(header.record_count)]
    assert set(expected) == {1, 2}
    assert epochs == expected[:end_offset]
