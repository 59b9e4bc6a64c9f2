"""Recovery cuts a torn tail away and refuses corruption, and never takes one for the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import google_crc32c
import pytest

from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.storage.errors import CorruptLog
from kraft_wire.storage.log import search
from kraft_wire.storage.log.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.log.metadata_log import LogConfig
from tests.storage.storage_samples import (
    FIRST_SEGMENT,
    SMALL_SEGMENTS,
    all_bytes,
    base_offsets,
    change_file,
    contents,
    data_batch,
    epoch_batches,
    flip,
    leader_change,
    open_log,
    write_log,
)

ONE_SEGMENT = LogConfig()
EPOCH = 2
BATCHES = [*epoch_batches(0, 1, [1]), *epoch_batches(2, EPOCH, [3, 2])]
LAST = BATCHES[-1]
LAST_OFFSET = base_offsets(BATCHES)[-1]
END = 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of one segment whose durable floor is at its end."""
    write_log(tmp_path, BATCHES, ONE_SEGMENT, quorum_epoch=EPOCH)
    return tmp_path


def forget_floor(folder: Path) -> None:
    """Remove the floor, as a crash or a Java controller may."""
    (folder / DURABLE_FLOOR).unlink()


def refusal(folder: Path, quorum_epoch: int | None = EPOCH) -> CorruptLog:
    """Return the error with which the log doesn't open, and check that nothing has changed."""
    before = contents(folder)
    with pytest.raises(CorruptLog) as caught:
        open_log(folder, ONE_SEGMENT, quorum_epoch)
    assert contents(folder) == {DURABLE_FLOOR: b"", **before}
    return caught.value


def positions(batches: Sequence[bytes]) -> list[int]:
    return [len(b"".join(batches[:number])) for number in range(len(batches) + 1)]


# --- torn tails


@pytest.mark.parametrize("kept", range(len(LAST)))
def test_a_tail_cut_anywhere_is_cut_away(folder: Path, kept: int) -> None:
    forget_floor(folder)
    whole = b"".join(BATCHES[:-1])
    change_file(folder / FIRST_SEGMENT, lambda data: data.__delitem__(slice(len(whole) + kept, None)))
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.end_offset == LAST_OFFSET
    assert all_bytes(log) == whole
    if kept:
        assert log.torn_tail is not None
        torn = log.torn_tail
        assert (torn.position, torn.offset, torn.size_bytes) == (len(whole), LAST_OFFSET, kept)
        assert torn.path == folder / FIRST_SEGMENT
    else:
        assert log.torn_tail is None
    assert (folder / FIRST_SEGMENT).read_bytes() == whole
    log.append([data_batch(LAST_OFFSET, EPOCH)])
    log.close()
    assert open_log(folder, ONE_SEGMENT, EPOCH).torn_tail is None


@pytest.mark.parametrize("kept", range(len(LAST)))
def test_the_same_below_the_durable_floor_is_corruption(folder: Path, kept: int) -> None:
    whole = b"".join(BATCHES[:-1])
    change_file(folder / FIRST_SEGMENT, lambda data: data.__delitem__(slice(len(whole) + kept, None)))
    error = refusal(folder)
    assert (error.path, error.position, error.offset) == (folder / FIRST_SEGMENT, len(whole), LAST_OFFSET)
    assert f"durable up to offset {END}" in str(error)


def test_zeros_behind_the_last_batch_are_a_torn_tail(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(bytes(300)))
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.end_offset == END
    assert log.torn_tail is not None and log.torn_tail.size_bytes == 300


@pytest.mark.parametrize("noise", [b"\x02" * 300, bytes(range(256)) * 2], ids=["twos", "all"])
def test_noise_behind_the_last_batch_is_corruption(folder: Path, noise: bytes) -> None:
    """Unwritten blocks read as zeros: these bytes were written, and may have been a batch."""
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(noise))
    assert refusal(folder).offset == END


def test_a_batch_that_is_cut_off_above_the_durable_floor_is_a_torn_tail(folder: Path) -> None:
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(data_batch(END, EPOCH)[:-1]))
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.end_offset == END
    assert log.torn_tail is not None and log.torn_tail.offset == END


def test_a_whole_batch_above_the_durable_floor_is_kept(folder: Path) -> None:
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(data_batch(END, EPOCH)))
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert (log.end_offset, log.flushed_offset, log.torn_tail) == (END + 1, END + 1, None)


def test_stale_batches_from_before_are_not_taken_for_later_ones(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(bytes(600) + BATCHES[1]))
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.end_offset == END
    assert log.torn_tail is not None and log.torn_tail.offset == END


UNFLUSHED = [data_batch(END + n, EPOCH, 1, 300) for n in range(12)]


@pytest.mark.parametrize("block_bytes", [512, 1024])
@pytest.mark.parametrize("block", range(1, 8))
def test_blocks_that_a_power_cut_kept_from_the_disk_are_a_torn_tail(
    folder: Path, block: int, block_bytes: int
) -> None:
    """Unflushed blocks are written in any order: whole batches follow the missing block."""
    flushed = len(b"".join(BATCHES))
    start, stop = max(flushed, block * block_bytes), (block + 1) * block_bytes

    def lose(data: bytearray) -> None:
        data += b"".join(UNFLUSHED)
        data[start:stop] = bytes(len(data[start:stop]))

    before = (folder / FIRST_SEGMENT).read_bytes() + b"".join(UNFLUSHED)
    change_file(folder / FIRST_SEGMENT, lose)
    if (folder / FIRST_SEGMENT).read_bytes() == before:
        return  # no such block
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.end_offset >= END
    assert log.torn_tail is not None
    assert before.startswith(all_bytes(log))


def test_blocks_that_are_gone_below_the_durable_floor_are_corruption(folder: Path) -> None:
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(b"".join(UNFLUSHED)))
    open_log(folder, ONE_SEGMENT, EPOCH).close()
    change_file(folder / FIRST_SEGMENT, lambda data: data.__setitem__(slice(1024, 2048), bytes(1024)))
    assert "durable up to offset" in str(refusal(folder))


@pytest.mark.parametrize("position", range(0, 300, 7))
def test_rotten_bits_in_front_of_whole_batches_are_no_missing_blocks(folder: Path, position: int) -> None:
    start = (folder / FIRST_SEGMENT).stat().st_size
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(b"".join(UNFLUSHED)))
    flip(folder / FIRST_SEGMENT, start + position, bit=position % 8)
    refusal(folder)


def test_what_an_earlier_cut_left_behind_the_end_cannot_come_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power cut took back the file's length, but not the bytes in its last block."""
    size = (folder / FIRST_SEGMENT).stat().st_size
    cleared: list[tuple[int, bytes]] = []
    real = os.pwrite

    def noting(fd: int, data: bytes, position: int) -> int:
        if position == size:
            cleared.append((position, bytes(data)))
        return real(fd, data, position)

    monkeypatch.setattr(os, "pwrite", noting)
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert cleared == [(size, bytes(4096 - size))]
    assert (folder / FIRST_SEGMENT).stat().st_size == size
    assert log.end_offset == END


def test_missing_blocks_in_front_of_a_segment_are_corruption(many: Path) -> None:
    """A segment is flushed before the next one is created."""
    first = segments(many)[0]
    change_file(first, lambda data: data.__setitem__(slice(1024, 1536), bytes(512)))
    assert segments(many)[1].name in str(refusal(many))


# --- corruption


@pytest.mark.parametrize("position", range(len(b"".join(BATCHES))))
def test_a_flipped_bit_anywhere_below_the_durable_floor_is_corruption(folder: Path, position: int) -> None:
    flip(folder / FIRST_SEGMENT, position, bit=position % 8)
    error = refusal(folder)
    starts = positions(BATCHES)
    number = max(n for n, start in enumerate(starts) if start <= position)
    assert error.path == folder / FIRST_SEGMENT
    found = starts.index(error.position)
    # A wrong epoch may be noticed only in the next batch.
    assert found == number or (found == number + 1 and 12 <= position - starts[number] < 16)
    assert error.offset == [*base_offsets(BATCHES), END][found]
    assert str(error.position) in str(error) and "Restore" in str(error)


@pytest.mark.parametrize("position", range(len(b"".join(BATCHES[:-1]))))
def test_a_flipped_bit_in_front_of_a_whole_batch_is_corruption_without_a_floor_too(
    folder: Path, position: int
) -> None:
    forget_floor(folder)
    flip(folder / FIRST_SEGMENT, position, bit=(position + 3) % 8)
    refusal(folder)


@pytest.mark.parametrize("position", range(len(LAST)))
def test_a_flipped_bit_in_the_last_batch_is_corruption_without_a_floor(folder: Path, position: int) -> None:
    """The batch may have been flushed and acknowledged, because the floor itself isn't flushed. A complete
    batch wasn't torn, even if its length claims more bytes."""
    forget_floor(folder)
    at = len(b"".join(BATCHES[:-1])) + position
    for bit in (0, 3, 7):
        flip(folder / FIRST_SEGMENT, at, bit)
        assert refusal(folder).offset == LAST_OFFSET
        flip(folder / FIRST_SEGMENT, at, bit)


def test_damage_in_front_of_a_whole_batch_far_away_is_corruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_WINDOW_SIZE_BYTES", 128)
    batches = epoch_batches(0, 1, [40, 1])
    write_log(tmp_path, batches, ONE_SEGMENT)
    forget_floor(tmp_path)
    start = len(batches[0])
    change_file(tmp_path / FIRST_SEGMENT, lambda data: data.__setitem__(slice(start, start + 60), bytes(60)))
    error = refusal(tmp_path, None)
    assert (error.position, error.offset) == (start, 1)
    assert f"a whole batch is at byte {len(batches[0]) + len(batches[1])}" in str(error)


def test_a_compressed_batch_is_not_cut_away(folder: Path) -> None:
    forget_floor(folder)
    compressed = bytearray(data_batch(END, EPOCH))
    compressed[22] |= 4
    compressed[17:21] = int(google_crc32c.value(bytes(compressed[21:]))).to_bytes(4, "big")
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(compressed))
    error = refusal(folder)
    assert error.offset == END and "zstd" in str(error)


def test_records_that_make_no_sense_in_a_whole_batch_are_not_cut_away(folder: Path) -> None:
    forget_floor(folder)
    odd = bytearray(data_batch(END, EPOCH, 2))
    odd[57:61] = (5).to_bytes(4, "big")
    odd[17:21] = int(google_crc32c.value(bytes(odd[21:]))).to_bytes(4, "big")
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(odd))
    assert "5 records" in str(refusal(folder))


def test_a_gap_between_batches(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(data_batch(END + 1, EPOCH)))
    error = refusal(folder)
    assert error.offset == END and f"the batch there begins with offset {END + 1}" in str(error)


def test_an_epoch_that_goes_back(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(data_batch(END, EPOCH - 1)))
    assert "epoch 1 comes after epoch 2" in str(refusal(folder))


def test_an_epoch_that_nobody_began(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(data_batch(END, EPOCH + 1)))
    assert "does not begin with its leader's record" in str(refusal(folder, quorum_epoch=EPOCH + 1))


def test_an_epoch_that_begins_twice(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(leader_change(END, EPOCH)))
    assert "begins with a leader's record, and epoch 2 began before" in str(refusal(folder))


def test_an_epoch_that_quorum_state_does_not_know(folder: Path) -> None:
    forget_floor(folder)
    change_file(folder / FIRST_SEGMENT, lambda data: data.extend(leader_change(END, EPOCH + 1)))
    assert "is above 2, the last one in quorum-state" in str(refusal(folder))
    log = open_log(folder, ONE_SEGMENT, quorum_epoch=None)
    assert log.epochs.latest_epoch == EPOCH + 1


# --- several segments


MANY = epoch_batches(0, EPOCH, [7] * 40)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A log of several segments, without a floor."""
    write_log(tmp_path, MANY, SMALL_SEGMENTS, quorum_epoch=EPOCH)
    forget_floor(tmp_path)
    return tmp_path


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def test_damage_in_a_segment_that_others_follow_is_corruption(many: Path) -> None:
    first = segments(many)[0]
    flip(first, first.stat().st_size - 1)
    error = refusal(many)
    assert error.path == first
    assert segments(many)[1].name in str(error)


def test_a_segment_that_is_cut_off_and_followed_is_corruption(many: Path) -> None:
    second = segments(many)[1]
    change_file(second, lambda data: data.__delitem__(slice(-5, None)))
    assert refusal(many).path == second


def test_a_segment_that_ends_early_at_a_batch_and_is_followed_is_corruption(many: Path) -> None:
    first, second = segments(many)[:2]
    last = split_batches(first.read_bytes())[0][-1]
    change_file(first, lambda data: data.__delitem__(slice(-last.header.size_bytes, None)))
    error = refusal(many)
    assert (error.path, error.position, error.offset) == (second, 0, last.header.base_offset)


def test_a_segment_that_is_missing_in_the_middle_is_corruption(many: Path) -> None:
    files = segments(many)
    files[1].unlink()
    error = refusal(many)
    assert error.path == files[2]
    assert f"begins at offset {int(files[2].stem)}" in str(error)


def test_a_torn_tail_takes_empty_segments_behind_it_away(many: Path) -> None:
    """Java may leave such segments: it creates the next segment before it flushes the one before."""
    last = segments(many)[-1]
    end = int(split_batches(last.read_bytes())[0][-1].header.next_offset)
    (many / f"{end:020d}.log").write_bytes(b"")
    change_file(last, lambda data: data.__delitem__(slice(-5, None)))
    log = open_log(many, quorum_epoch=EPOCH)
    assert log.torn_tail is not None and log.torn_tail.path == last
    assert segments(many)[-1] == last
    assert all_bytes(log) == b"".join(MANY[:-1])


def test_an_empty_segment_behind_a_tail_that_was_lost_at_a_batch_goes(many: Path) -> None:
    last = segments(many)[-1]
    batches = split_batches(last.read_bytes())[0]
    (many / f"{batches[-1].header.next_offset:020d}.log").write_bytes(b"")
    change_file(last, lambda data: data.__delitem__(slice(-batches[-1].header.size_bytes, None)))
    log = open_log(many, quorum_epoch=EPOCH)
    assert log.end_offset == batches[-1].header.base_offset
    assert segments(many)[-1] == last
    log.append([data_batch(log.end_offset, EPOCH)])
    log.close()
    assert open_log(many, quorum_epoch=EPOCH).torn_tail is None


def test_a_first_segment_that_is_torn_at_once_is_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / FIRST_SEGMENT).write_bytes(leader_change(0, 1)[:30])
    log = open_log(tmp_path)
    assert (log.start_offset, log.end_offset) == (0, 0)
    assert (tmp_path / FIRST_SEGMENT).read_bytes() == b""


def test_a_folder_whose_segments_are_all_gone_but_had_records_is_corrupt(folder: Path) -> None:
    (folder / FIRST_SEGMENT).unlink()
    with pytest.raises(CorruptLog, match=f"durable up to offset {END}"):
        open_log(folder, ONE_SEGMENT, EPOCH)


# --- the floor


def test_the_floor_counts_only_in_the_epoch_that_it_was_written_in(folder: Path) -> None:
    """A Java controller may have truncated the log since, in a later epoch."""
    whole = b"".join(BATCHES[:-1])
    change_file(folder / FIRST_SEGMENT, lambda data: data.__delitem__(slice(len(whole), None)))
    refusal(folder, EPOCH)
    log = open_log(folder, ONE_SEGMENT, EPOCH + 1)
    assert log.end_offset == LAST_OFFSET
    log.close()
    assert open_log(folder, ONE_SEGMENT, EPOCH + 1).end_offset == LAST_OFFSET


def test_the_floor_moves_with_the_flush_and_not_before(folder: Path) -> None:
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    log.append([data_batch(END, EPOCH)])
    assert (folder / DURABLE_FLOOR).read_text().startswith(f"{END:020d} {EPOCH:010d} ")
    log.flush()
    assert (folder / DURABLE_FLOOR).read_text().startswith(f"{END + 1:020d} {EPOCH:010d} ")
    log.note_quorum_epoch(7)
    assert (folder / DURABLE_FLOOR).read_text().startswith(f"{END + 1:020d} {7:010d} ")


def test_truncation_lowers_the_floor(folder: Path) -> None:
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    log.truncate_to(2)
    log.append([data_batch(2, 1)])
    copy = folder / "copy"
    copy.mkdir()
    for name in (FIRST_SEGMENT, DURABLE_FLOOR):
        shutil.copy(folder / name, copy)
    change_file(copy / FIRST_SEGMENT, lambda data: data.__delitem__(slice(-1, None)))
    assert open_log(copy, ONE_SEGMENT, EPOCH).end_offset == 2


@pytest.mark.parametrize(("quorum_epoch", "committed_offset"), [(EPOCH, 4), (EPOCH + 1, 0)])
def test_what_is_committed_is_remembered_for_its_epoch(
    folder: Path, quorum_epoch: int, committed_offset: int
) -> None:
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.committed_offset == 0
    log.note_committed(4)
    log.close()
    for _ in range(2):
        recovered = open_log(folder, ONE_SEGMENT, quorum_epoch)
        assert recovered.committed_offset == committed_offset
        recovered.close()


def test_what_is_gone_is_not_committed_here(folder: Path) -> None:
    """A majority without this node may have committed it, but this disk lost what wasn't flushed."""
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    log.append([data_batch(END, EPOCH)])
    log.note_committed(END + 1)
    log.note_quorum_epoch(EPOCH)
    whole = b"".join(BATCHES)
    change_file(folder / FIRST_SEGMENT, lambda data: data.__delitem__(slice(len(whole), None)))
    assert open_log(folder, ONE_SEGMENT, EPOCH).committed_offset == END


def test_what_was_not_flushed_is_not_committed_here(folder: Path) -> None:
    """The disk may bring back what an older leader had written in its place."""
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    log.append([data_batch(END, EPOCH)])
    log.note_committed(END + 1)
    log.note_quorum_epoch(EPOCH + 1)
    recovered = open_log(folder, ONE_SEGMENT, EPOCH + 1)
    assert (recovered.end_offset, recovered.committed_offset) == (END + 1, END)


def test_truncation_lowers_what_is_committed(folder: Path) -> None:
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    log.note_committed(END)
    log.truncate_to(2)
    assert log.committed_offset == 2
    log.reset_to(300)
    log.close()
    assert open_log(folder, ONE_SEGMENT, EPOCH).committed_offset == 0


def test_starting_over_moves_the_floor(folder: Path) -> None:
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    log.reset_to(300)
    assert (folder / DURABLE_FLOOR).read_text().startswith(f"{300:020d} ")
    log.close()
    assert open_log(folder, ONE_SEGMENT, EPOCH).end_offset == 300


@pytest.mark.parametrize(
    "damage",
    ["", "x", "00000000000000000008 0000000002 00000000\n", "\x00" * 40, "\xff", "9" * 5000 + " 1 1 1"],
)
def test_a_floor_that_makes_no_sense_is_none(folder: Path, damage: str) -> None:
    (folder / DURABLE_FLOOR).write_text(damage, "latin-1")
    change_file(folder / FIRST_SEGMENT, lambda data: data.__delitem__(slice(-1, None)))
    log = open_log(folder, ONE_SEGMENT, EPOCH)
    assert log.end_offset == LAST_OFFSET


def test_large_batches_are_read_in_pieces(tmp_path: Path) -> None:
    values = [bytes([n]) * 300_000 for n in range(20)]
    batches = [leader_change(0, 1), encode_batch(1, 1, 0, values), data_batch(21, 1)]
    write_log(tmp_path, batches, ONE_SEGMENT)
    assert all_bytes(open_log(tmp_path, ONE_SEGMENT)) == b"".join(batches)
