"""Ranges of logs on disk are cut into pieces and read page by page, with the damage in them."""

from __future__ import annotations

import os
import pickle
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from struct import pack

import pytest

from kraft_wire.log.batch import split_batches
from kraft_wire.logs.folder_store import FolderStore
from kraft_wire.logs.places import PlacedPage
from kraft_wire.logs.positions import LogPosition
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.logs.splits import FilePiece, packed
from kraft_wire.logs.store import Damage, LogRange
from kraft_wire.spark.options import parse_options
from kraft_wire.spark.reading import rows_of
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.tabular.record_tables import record_batches
from tests.support.metadata_logs import LogWriter

Make = Callable[..., LogWriter]
ALL = LogRange("one", 0, None)


class Reading:
    """The offsets and the damage that some ranges had."""

    def __init__(self, folder: Path, *, split_bytes: int = 1_000, page_bytes: int = 10_000) -> None:
        self.store = FolderStore([str(folder)], split_bytes, page_bytes)
        self.store.bounds()

    def pieces(self, wanted: LogRange = ALL) -> list[FilePiece]:
        return list(self.store.pieces(wanted))

    def found(self, wanted: LogRange = ALL) -> list[int | Damage]:
        found: list[int | Damage] = []
        for piece in self.pieces(wanted):
            for each in self.store.pages(pickle.loads(pickle.dumps(piece))):
                if isinstance(each, Damage):
                    found.append(each)
                else:
                    for batch in record_batches(each.page, each.place, ["offset"]):
                        found += batch.column(0).to_pylist()
        return found


def batches_of(path: Path) -> list[tuple[int, int]]:
    """Return where the batches of a file begin, and their base offsets."""
    position, found = 0, []
    for batch in split_batches(path.read_bytes())[0]:
        found.append((position, batch.header.base_offset))
        position += batch.header.size_bytes
    return found


def flip(path: Path, position: int, mask: int = 4) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= mask
    path.write_bytes(data)


@pytest.fixture
def log(make_log: Make) -> LogWriter:
    """40 batches of 3 records and 2 control records: 2 segments, 12 KB, 122 records."""
    log = make_log("one")
    for _ in range(20):
        log.append()
    log.lead(2)
    log.roll()
    for _ in range(20):
        log.append()
    return log


@pytest.fixture
def big_log(make_log: Make) -> LogWriter:
    """One segment of 64 KB, with more than ten entries in its index."""
    log = make_log("one")
    for _ in range(40):
        log.append(30)
    return log


@pytest.mark.parametrize("page_bytes", [70, 1_000, 3_000, 1_000_000])
def test_all_is_read_once_whatever_the_size_of_a_page(
    tmp_path: Path, log: LogWriter, page_bytes: int
) -> None:
    assert Reading(tmp_path, page_bytes=page_bytes).found() == list(range(122))


@pytest.mark.parametrize("page_bytes", [2_000, 20_000])
def test_no_more_is_in_memory_than_a_page_or_a_batch(
    tmp_path: Path, big_log: LogWriter, page_bytes: int
) -> None:
    snapshot_id = big_log.snapshot()
    reading = Reading(tmp_path, split_bytes=10**9, page_bytes=page_bytes)
    sizes = []
    for piece in reading.pieces(LogRange("one", 0, None, snapshot_id)):
        for found in reading.store.pages(piece):
            assert isinstance(found, PlacedPage)
            batches = [*found.page.batches, *found.page.control_batches]
            largest = max(header.size_bytes for _, header in batches)
            assert len(found.page.chunk.data) <= max(page_bytes, largest)
            sizes.append(len(found.page.chunk.data))
    assert len(sizes) > 4


def test_reading_more_takes_no_more_memory(tmp_path: Path, make_log: Make) -> None:
    for name, batches in (("short", 10), ("long", 60)):
        log = make_log(name, name)
        for _ in range(batches):
            log.append(30)

    def peak_bytes(name: str) -> int:
        reading = Reading(tmp_path / name, split_bytes=10**9, page_bytes=5_000)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        for _ in rows_of(
            reading.store, reading.pieces(LogRange(name, 0, None)), parse_options({"path": name})
        ):
            pass
        return tracemalloc.get_traced_memory()[1] - before

    tracemalloc.start()
    try:
        peak_bytes("short")  # fills caches
        short, long = peak_bytes("short"), peak_bytes("long")
    finally:
        tracemalloc.stop()
    assert long < 1.5 * short


def test_a_large_segment_is_cut_at_its_index(tmp_path: Path, big_log: LogWriter) -> None:
    reading = Reading(tmp_path, split_bytes=5_000)
    assert len(reading.pieces()) > 4
    assert all(piece.size_bytes >= 5_000 for piece in reading.pieces())
    assert reading.found() == list(range(1201))


def test_a_segment_without_an_index_is_cut_all_the_same(tmp_path: Path, big_log: LogWriter) -> None:
    big_log.segment().with_suffix(".index").unlink()
    reading = Reading(tmp_path, split_bytes=5_000)
    assert len(reading.pieces()) > 4
    assert reading.found() == list(range(1201))
    assert reading.found(LogRange("one", 500, 600)) == list(range(500, 600))


@pytest.mark.parametrize("damage", ["shifted", "short", "padded", "all zeros"])
def test_an_index_that_is_not_right_is_not_followed(tmp_path: Path, big_log: LogWriter, damage: str) -> None:
    index = big_log.segment().with_suffix(".index")
    data = index.read_bytes()
    index.write_bytes(
        {
            "shifted": data[:4] + b"".join(pack(">ii", 3, n) for n in range(0, 30_000, 777)),
            "short": data[:13],
            "padded": data + bytes(8_000),
            "all zeros": bytes(800),
        }[damage]
    )
    reading = Reading(tmp_path, split_bytes=5_000)
    assert reading.found() == list(range(1201))
    assert reading.found(LogRange("one", 500, 600)) == list(range(500, 600))


def test_segments_of_a_log_are_pieces_and_small_ones_share_a_task(tmp_path: Path, log: LogWriter) -> None:
    pieces = Reading(tmp_path, split_bytes=10_000).pieces()
    assert [Path(piece.path).name for piece in pieces] == [log.segment(n).name for n in (0, 62)]
    both_bytes = sum(piece.size_bytes for piece in pieces)
    assert [len(task) for task in packed([*pieces, *pieces], both_bytes)] == [2, 2]
    assert packed(pieces[:0], 15_000) == []


@pytest.mark.parametrize(
    ("mib", "tasks"), [(1, 1), (90, 1), (91, 2), (134, 2), (181, 2), (182, 4), (235, 4), (1024, 16)]
)
def test_tasks_are_of_one_size_and_as_many_as_cores_are(mib: int, tasks: int) -> None:
    pieces = [FilePiece("one", "log", 0, 8 * 2**20, 0)] * (mib // 8)
    pieces.append(FilePiece("one", "log", 0, mib % 8 * 2**20, 0))
    found = packed(pieces)
    assert [piece for task in found for piece in task] == pieces
    assert len(found) == tasks
    sizes_bytes = [sum(piece.size_bytes for piece in task) for task in found]
    assert max(sizes_bytes) - min(sizes_bytes) <= 8 * 2**20


def test_pieces_of_any_size_are_tasks_in_their_order() -> None:
    random = Random(3)
    for _ in range(50):
        sizes_mib = [random.choice([0, 1, 7, 90, 300]) for _ in range(random.randrange(40))]
        pieces = [FilePiece("one", f"{n}", 0, mib * 2**20, 0) for n, mib in enumerate(sizes_mib)]
        assert [piece for task in packed(pieces) for piece in task] == pieces


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (0, 122), (5, 6), (59, 64), (61, 62), (62, 62), (100, 122)]
)
def test_a_range_is_cut_to_its_rows(tmp_path: Path, log: LogWriter, start: int, end: int) -> None:
    assert Reading(tmp_path).found(LogRange("one", start, end)) == list(range(start, end))


def test_a_small_range_of_a_large_segment_is_a_small_piece(tmp_path: Path, big_log: LogWriter) -> None:
    reading = Reading(tmp_path, split_bytes=30_000)
    (piece,) = reading.pieces(LogRange("one", 600, 601))
    assert piece.size_bytes < 15_000
    assert reading.found(LogRange("one", 600, 601)) == [600]


def test_a_position_knows_its_epoch(tmp_path: Path, log: LogWriter) -> None:
    store = Reading(tmp_path).store
    for offset, epoch in ((0, 0), (1, 1), (30, 1), (61, 1), (62, 2), (63, 2), (122, 2)):
        assert store.position_at("one", offset) == LogPosition(epoch, offset)
        assert store.holds("one", LogPosition(epoch, offset))
        assert not store.holds("one", LogPosition(epoch + 3, offset)) or not offset
    assert store.holds("one", LogPosition(2, 61)), "the epoch that begins there"
    assert not store.holds("one", LogPosition(2, 60))
    assert not store.holds("one", LogPosition(1, 63))


def test_where_a_log_was_trimmed_the_snapshot_says_the_epoch(tmp_path: Path, log: LogWriter) -> None:
    log.log.delete_before(62)
    log.log.flush()
    store = Reading(tmp_path).store
    assert store.position_at("one", 62) == LogPosition(2, 62)
    assert store.holds("one", LogPosition(1, 62)), "who knows"
    assert not store.holds("one", LogPosition(3, 62))


def test_bytes_are_counted_in_batches(tmp_path: Path, log: LogWriter) -> None:
    store = Reading(tmp_path / "one").store
    ends = [store.next_offset_within("one", 0, max_bytes) for max_bytes in (1, 120, 1_000, 10_000, 10**9)]
    assert ends == sorted(ends)
    assert ends[0] == 1
    assert ends[-1] == 122
    size_bytes = log.segment().stat().st_size
    assert store.next_offset_within("one", 0, size_bytes) == 62
    assert store.next_offset_within("one", 62, 1) == 65


def test_bytes_are_counted_from_where_a_trigger_begins_without_an_index_too(
    tmp_path: Path, log: LogWriter
) -> None:
    """Counted from the segment's start, a trigger deep in the segment would take only one batch."""
    with_index = [Reading(tmp_path).store.next_offset_within("one", offset, 1_000) for offset in range(60)]
    log.partition.joinpath("00000000000000000000.index").unlink()
    without = [Reading(tmp_path).store.next_offset_within("one", offset, 1_000) for offset in range(60)]
    assert without == with_index
    assert min(end - offset for offset, end in enumerate(without) if end < 62) > 3


def test_a_snapshot_is_read_before_the_log(tmp_path: Path, log: LogWriter) -> None:
    snapshot_id = log.snapshot()
    log.append()
    reading = Reading(tmp_path)
    wanted = LogRange("one", 122, None, snapshot_id, 122)
    assert reading.found(wanted) == [121] * (122 + 2) + [122, 123, 124]
    assert len(reading.pieces(wanted)) > 3, "cut without an index"


# What a crash or a writing controller leaves.


@pytest.mark.parametrize("missing_bytes", [1, 100, 150])
def test_a_batch_that_is_not_all_there_yet_is_left_out(
    tmp_path: Path, log: LogWriter, missing_bytes: int
) -> None:
    (log.partition / "durable-floor").unlink()
    os.truncate(log.segment(62), log.segment(62).stat().st_size - missing_bytes)
    assert Reading(tmp_path).found() == list(range(119))


def test_space_that_was_allocated_is_no_damage(tmp_path: Path, log: LogWriter) -> None:
    with log.segment(62).open("ab") as file:
        file.write(bytes(5_000))
    reading = Reading(tmp_path)
    assert reading.found() == list(range(122))
    assert reading.store.bounds()["one"].damage is None


def test_what_was_flushed_cannot_be_torn(tmp_path: Path, log: LogWriter) -> None:
    os.truncate(log.segment(62), log.segment(62).stat().st_size - 1)
    *offsets, damage = Reading(tmp_path).found()
    assert offsets == list(range(119))
    assert isinstance(damage, Damage)
    assert (damage.offset, damage.resume_offset) == (119, None)
    bounds = Reading(tmp_path).store.bounds()["one"]
    assert (bounds.end, bounds.damage) == (LogPosition(2, 119), damage)


@pytest.mark.parametrize("regrown", [0, 1])
def test_a_log_that_is_cut_while_it_is_read_is_an_error_that_says_so(
    tmp_path: Path, log: LogWriter, regrown: int
) -> None:
    reading = Reading(tmp_path)
    (*_, piece) = reading.pieces(LogRange("one", 0, 122))
    log.cut(116)
    if regrown:
        log.lead(3)
        log.append(regrown)
    with pytest.raises(DataLoss, match=r"cluster one: .* it was cut while the log was read"):
        list(reading.store.pages(piece))


def test_a_log_that_is_trimmed_while_it_is_read_is_an_error_that_says_so(
    tmp_path: Path, log: LogWriter
) -> None:
    reading = Reading(tmp_path)
    first, *_ = reading.pieces()
    log.log.delete_before(62)
    log.log.flush()
    with pytest.raises(DataLoss, match="it was deleted while the log was read"):
        list(reading.store.pages(first))


def test_a_log_that_was_trimmed_since_it_was_looked_at_is_looked_at_again(
    tmp_path: Path, log: LogWriter
) -> None:
    """Records below a position may have been deleted; the records after it are there."""
    store = Reading(tmp_path).store
    log.log.delete_before(62)
    log.log.flush()
    assert store.holds("one", LogPosition(2, 62))
    assert store.position_at("one", 62) == LogPosition(2, 62)


def test_what_was_trimmed_before_it_could_be_cut_into_pieces_is_an_error(
    tmp_path: Path, log: LogWriter
) -> None:
    snapshot_id = log.snapshot()
    store = Reading(tmp_path).store
    log.log.delete_before(62)
    log.log.flush()
    log.checkpoint(snapshot_id).unlink()
    with pytest.raises(SegmentChanged, match=r"0.log: it was deleted while the log was read"):
        list(store.pieces(LogRange("one", 60, None)))
    with pytest.raises(SegmentChanged, match=r"122-0000000002.checkpoint: it was deleted while"):
        list(store.pieces(LogRange("one", 122, None, snapshot_id)))


# Damage.


@pytest.mark.parametrize("page_bytes", [70, 1_000, 1_000_000])
@pytest.mark.parametrize(
    ("at", "mask", "reason"),
    [
        pytest.param(100, 4, "checksum .* in its header", id="a record"),
        pytest.param(20, 255, "checksum .* in its header", id="the checksum"),
        pytest.param(7, 1, "the batch there begins with offset", id="the offset"),
        pytest.param(12, 1, "epoch 16777217 does not begin with its leader's record", id="the epoch"),
        pytest.param(8, 1, "length 16777|more than a batch|cut off", id="the length, too large"),
        pytest.param(8, 128, "length -", id="the length, negative"),
        pytest.param(16, 1, "format version 3 instead of 2", id="the version"),
    ],
)
def test_damage_says_where_it_is_and_what_is_behind_is_read(
    tmp_path: Path, log: LogWriter, page_bytes: int, at: int, mask: int, reason: str
) -> None:
    position, offset = batches_of(log.segment())[5]
    flip(log.segment(), position + at, mask)
    found = Reading(tmp_path, page_bytes=page_bytes).found()
    (damage,) = (each for each in found if isinstance(each, Damage))
    assert [each for each in found if each != damage] == [
        n for n in range(122) if n not in range(offset, offset + 3)
    ]
    assert (damage.file, damage.position, damage.offset) == (str(log.segment()), position, offset)
    assert damage.resume_offset == offset + 3
    assert re.search(reason, damage.reason)


def test_damage_belongs_to_ranges_that_it_lies_in(tmp_path: Path, log: LogWriter) -> None:
    position, offset = batches_of(log.segment())[5]
    flip(log.segment(), position + 100)
    reading = Reading(tmp_path)
    *before, damage = reading.found(LogRange("one", 0, offset + 1))
    assert before == list(range(offset))
    assert isinstance(damage, Damage)
    assert reading.found(LogRange("one", 0, offset)) == before
    assert reading.found(LogRange("one", offset + 2, offset + 4)) == [damage, offset + 3]
    assert reading.found(LogRange("one", offset + 3, offset + 4)) == [offset + 3]
    assert reading.store.position_at("one", offset + 1) == LogPosition(1, offset + 3)


def test_an_older_segments_end_cannot_be_torn(tmp_path: Path, log: LogWriter) -> None:
    (log.partition / "durable-floor").unlink()
    size_bytes = log.segment().stat().st_size
    os.truncate(log.segment(), size_bytes - 1)
    found = Reading(tmp_path).found()
    (damage,) = (each for each in found if isinstance(each, Damage))
    assert (damage.offset, damage.resume_offset) == (61, 62)
    assert [each for each in found if each != damage] == [n for n in range(122) if n != 61]


def test_a_segment_that_is_gone_is_damage(tmp_path: Path, log: LogWriter) -> None:
    log.append()
    log.roll()
    log.append()
    log.segment(62).unlink()
    found = Reading(tmp_path).found()
    (damage,) = (each for each in found if isinstance(each, Damage))
    assert damage.reason == "the batches end at offset 62, and offset 125 follows"
    assert [each for each in found if each != damage] == [*range(62), 125, 126, 127]


def test_damage_at_the_end_that_is_not_torn_is_found(tmp_path: Path, log: LogWriter) -> None:
    flip(log.segment(62), log.segment(62).stat().st_size - 1)
    reading = Reading(tmp_path)
    *offsets, damage = reading.found()
    assert offsets == list(range(119))
    assert damage == reading.store.bounds()["one"].damage
    assert reading.found(LogRange("one", 0, 119)) == offsets


@pytest.mark.parametrize("where", ["header", "middle", "footer", "no footer", "cut off", "empty", "epoch"])
def test_damage_of_a_snapshot_is_at_its_last_offset(tmp_path: Path, log: LogWriter, where: str) -> None:
    snapshot_id = log.snapshot()
    path = log.checkpoint(snapshot_id)
    path.chmod(0o600)
    (*_, (footer, _)) = batches_of(path)
    size_bytes = path.stat().st_size
    match where:
        case "no footer" | "cut off":
            os.truncate(path, footer if where == "no footer" else size_bytes - 1)
        case "empty":
            os.truncate(path, 0)
        case "epoch":
            flip(path, 15)
        case _:
            flip(path, {"header": 70, "middle": size_bytes // 2, "footer": size_bytes - 1}[where])
    found = Reading(tmp_path).found(LogRange("one", 122, None, snapshot_id))
    (damage,) = (each for each in found if isinstance(each, Damage))
    assert (damage.file, damage.offset) == (str(path), 121)
    assert {each for each in found if each != damage} <= {121}


def test_what_was_seen_of_a_copy_without_an_index_is_not_walked_again(tmp_path: Path, make_log: Make) -> None:
    log = make_log("a")
    for _ in range(40):
        log.append()
    log.segment().with_suffix(".index").unlink()
    reading = Reading(tmp_path, split_bytes=1_000_000)
    end_offset = log.end_offset
    log.append()
    reading.store.bounds()
    (piece,) = reading.pieces(LogRange("one", end_offset, None))
    assert (piece.start, piece.base_offset) == batches_of(log.segment())[-2], "the last that was there before"
    assert reading.found(LogRange("one", end_offset, None)) == [*range(end_offset, log.end_offset)]
    log.cut(end_offset - 4)
    log.append(5)
    reading.store.bounds()
    there = reading.found(LogRange("one", end_offset - 6, None))
    assert there == list(range(end_offset - 6, log.end_offset)), "and what was cut off isn't believed"
