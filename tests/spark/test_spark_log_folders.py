"""Logs on disk: found, cut into pieces, and read page by page."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import MetaProperties, meta_properties_text
from kraft_wire.spark.log_folders import LogFolder, NoLogs, find_logs
from kraft_wire.spark.log_pages import CorruptSegment, pages_of
from kraft_wire.spark.log_splits import Piece, packed, pieces_of


def make_log(folder: Path, batches: int, *, cluster: str | None = None, base_offset: int = 0) -> Path:
    """A segment of batches of two records, with an index of every second one."""
    partition = folder / "__cluster_metadata-0"
    partition.mkdir(parents=True, exist_ok=True)
    if cluster is not None:
        (folder / "meta.properties").write_text(meta_properties_text(MetaProperties(cluster, 1)))
    log, index = b"", b""
    for number in range(batches):
        if number % 2:
            index += pack(">ii", 2 * number + 1, len(log))
        log += batch(base_offset + 2 * number)
    (partition / f"{base_offset:020d}.log").write_bytes(log)
    (partition / f"{base_offset:020d}.index").write_bytes(index + bytes(80))
    return partition


def batch(offset: int) -> bytes:
    return encode_batch(offset, 1, 1_000, [b"a" * 400, b"b" * 400])


def offsets_in(pieces: list[Piece], page_bytes: int = 10_000) -> list[int]:
    return [
        header.base_offset
        for piece in pieces
        for page in pages_of(piece, page_bytes)
        for _, header in page.batches
    ]


def only(folder: Path) -> LogFolder:
    (log,) = find_logs([str(folder)])
    return log


def test_logs_are_found_in_a_folder_below_it_and_by_a_glob(tmp_path: Path) -> None:
    make_log(tmp_path / "one" / "metadata", 1, cluster="b-cluster")
    make_log(tmp_path / "two" / "deep" / "down", 1, cluster="a-cluster")
    make_log(tmp_path / "three", 1)
    for patterns in ([str(tmp_path)], [f"{tmp_path}/*"], [f"{tmp_path}/one/metadata", f"{tmp_path}/t*"]):
        assert [log.cluster for log in find_logs(patterns)] == ["a-cluster", "b-cluster", "three"]
    assert only(tmp_path / "one" / "metadata" / "__cluster_metadata-0").cluster == "b-cluster"


def test_of_a_clusters_copies_the_one_that_goes_furthest_is_read(tmp_path: Path) -> None:
    make_log(tmp_path / "1", 5, cluster="same")
    furthest = make_log(tmp_path / "2", 7, cluster="same")
    make_log(tmp_path / "3", 6, cluster="same")
    assert only(tmp_path).path == str(furthest)


def test_where_there_is_no_log_the_error_names_the_place(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(NoLogs, match=str(place)):
            find_logs([str(place)])


def test_what_a_snapshot_covers_is_committed(tmp_path: Path) -> None:
    partition = make_log(tmp_path, 3)
    assert only(tmp_path).committed_end_offset is None
    for name in (
        "00000000000000000000-0000000000",
        "00000000000000000004-0000000001",
        "00000000000000000002-0000000001",
    ):
        (partition / f"{name}.checkpoint").write_bytes(b"")
    assert only(tmp_path).committed_end_offset == 4


def test_a_large_segment_is_cut_at_its_index(tmp_path: Path) -> None:
    make_log(tmp_path, 40)
    pieces = list(pieces_of(only(tmp_path), split_bytes=5_000))
    assert len(pieces) > 4
    assert all(piece.size_bytes >= 5_000 for piece in pieces)
    assert offsets_in(pieces) == list(range(0, 80, 2))


@pytest.mark.parametrize("damage", ["missing", "shifted", "short"])
def test_an_index_that_is_not_right_is_not_followed(tmp_path: Path, damage: str) -> None:
    index = make_log(tmp_path, 40) / f"{0:020d}.index"
    data = index.read_bytes()
    if damage == "missing":
        index.unlink()
    elif damage == "shifted":
        index.write_bytes(data[:4] + b"".join(pack(">ii", 3, n) for n in range(0, 30_000, 777)))
    else:
        index.write_bytes(data[:13])
    assert offsets_in(list(pieces_of(only(tmp_path), split_bytes=5_000))) == list(range(0, 80, 2))


def test_segments_of_a_log_are_pieces_and_small_ones_share_a_task(tmp_path: Path) -> None:
    make_log(tmp_path / "a", 10)
    make_log(tmp_path / "a", 10, base_offset=20)
    make_log(tmp_path / "b", 10)
    pieces = [piece for log in find_logs([str(tmp_path)]) for piece in pieces_of(log, 10_000)]
    assert [(piece.cluster, Path(piece.path).name[18:20]) for piece in pieces] == [
        ("a", "00"),
        ("a", "20"),
        ("b", "00"),
    ]
    assert [len(task) for task in packed(pieces, 15_000)] == [2, 1]
    assert packed([], 15_000) == []


@pytest.mark.parametrize("page_bytes", [70, 1_000, 3_000, 1_000_000])
def test_pages_hold_whole_batches_whatever_their_size(tmp_path: Path, page_bytes: int) -> None:
    make_log(tmp_path, 10)
    assert offsets_in(list(pieces_of(only(tmp_path))), page_bytes) == list(range(0, 20, 2))


@pytest.mark.parametrize("missing_bytes", [1, 500, 850, 870])
def test_a_batch_that_is_not_all_there_yet_is_left_out(tmp_path: Path, missing_bytes: int) -> None:
    segment = make_log(tmp_path, 10) / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-missing_bytes])
    assert offsets_in(list(pieces_of(only(tmp_path))), 1_000) == list(range(0, 18, 2))


def test_a_flipped_bit_is_an_error_that_says_where(tmp_path: Path) -> None:
    segment = make_log(tmp_path, 10) / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[3 * len(batch(0)) + 200] ^= 4
    segment.write_bytes(data)
    with pytest.raises(
        CorruptSegment, match=f"{segment}: no batch at byte {3 * len(batch(0))} .offset 6.: checksum"
    ):
        offsets_in(list(pieces_of(only(tmp_path))))
