"""Looking timestamps up in a log that its owner goes on changing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.controller.reading.consumer_list_offsets import MAX_TIMESTAMP, FoundOffset
from kraft_wire.log.batch import Batch, encode_batch
from kraft_wire.server.timestamps import find_timestamps
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.log.metadata_log import LogConfig, MetadataLog

EPOCH = 1


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MetadataLog]:
    """Ten records, each in a batch and a segment of its own; the one at offset n is of the time 100 + n."""
    log = MetadataLog.open(tmp_path, Disk(), config=LogConfig(segment_bytes=1, tail_cache_bytes=0))
    for offset in range(10):
        log.append([encode_batch(offset, EPOCH, 100 + offset, [b"value"])])
    yield log
    log.close()


def test_the_first_record_that_is_not_older_is_found(log: MetadataLog) -> None:
    assert find_timestamps(log, [0, 104, 109, 110, MAX_TIMESTAMP], 10) == {
        0: FoundOffset(0, 100, EPOCH),
        104: FoundOffset(4, 104, EPOCH),
        109: FoundOffset(9, 109, EPOCH),
        110: None,
        MAX_TIMESTAMP: FoundOffset(9, 109, EPOCH),
    }


def test_what_is_not_committed_is_not_found(log: MetadataLog) -> None:
    assert find_timestamps(log, [105, MAX_TIMESTAMP], 5) == {
        105: None,
        MAX_TIMESTAMP: FoundOffset(4, 104, EPOCH),
    }


def test_a_log_that_is_trimmed_meanwhile_is_read_again(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = log.batches

    def trimmed_meanwhile(offset: int, end_offset: int) -> Iterator[Batch]:
        found = batches(offset, end_offset)
        yield next(found)
        log.delete_before(7)
        yield from found

    monkeypatch.setattr(log, "batches", trimmed_meanwhile)
    assert find_timestamps(log, [0, 108], 10) == {
        0: FoundOffset(7, 107, EPOCH),
        108: FoundOffset(8, 108, EPOCH),
    }
