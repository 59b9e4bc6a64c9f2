"""A snapshot that comes in pieces counts once it is verified; otherwise nothing of it is left."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.log.batch import Batch
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import Voter, VotersRecord
from kraft_wire.storage.errors import CorruptSnapshot
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.snapshots.incoming_snapshot import IncomingSnapshot, VerifiedSnapshot
from kraft_wire.storage.snapshots.snapshot_store import SnapshotReader
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import data_batch, epoch_batches

EPOCH = 3
ID = SnapshotId(100, EPOCH)
CONTROL = (KRaftVersionRecord(kraft_version=1), VotersRecord(voters=[Voter(voter_id=2)]))
DATA = b"".join(encode_snapshot(ID, CONTROL, [b"value %d" % n for n in range(3000)], 77, 88))


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)


def open_store(path: Path) -> Store:
    return Store.open(path, node_id=1, config=LogConfig(segment_bytes=500), static_voter_ids=(1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", 1)))
    return tmp_path


@pytest.fixture
def store(path: Path) -> Store:
    """A follower with a log of several segments that ends at 41."""
    store = open_store(path)
    store.write_election_state(ElectionState(2, EPOCH), kraft_version=1)
    for batch in epoch_batches(0, 2, [1] * 40):
        store.log.append([batch])
    store.log.flush()
    return store


@pytest.fixture
def incoming(store: Store) -> IncomingSnapshot:
    return IncomingSnapshot(store.snapshots, store.log)


def feed(incoming: IncomingSnapshot, data: bytes = DATA, size_bytes: int = 1000) -> None:
    for position in range(0, len(data), size_bytes):
        incoming.append(ID, position, data[position : position + size_bytes])


def parts(store: Store) -> list[Path]:
    return list(store.folder.partition_path.glob("*.part"))


@pytest.mark.parametrize("size_bytes", [1, 999, len(DATA)])
def test_pieces_become_a_snapshot_and_the_log_begins_at_its_end(
    store: Store, incoming: IncomingSnapshot, path: Path, size_bytes: int
) -> None:
    feed(incoming, DATA, max(size_bytes, len(DATA) // 500))
    assert incoming.verify(ID) == VerifiedSnapshot(ID, len(DATA), 77, CONTROL)
    assert store.snapshots.ids == []
    incoming.install(ID)
    assert store.snapshots.ids == [ID]
    assert store.snapshots.read(ID, 0, 10**6) == DATA
    assert (store.log.start_offset, store.log.end_offset, store.log.flushed_offset) == (100, 100, 100)
    assert not parts(store)
    store.log.append(epoch_batches(100, EPOCH, [1]))
    store.close()
    again = open_store(path)
    assert (again.recovery.log_reset_to, again.log.start_offset, again.log.end_offset) == (None, 100, 102)


@pytest.mark.parametrize("position", range(8, len(DATA), len(DATA) // 50))
def test_a_flipped_bit_is_refused_and_nothing_is_left(
    store: Store, incoming: IncomingSnapshot, position: int
) -> None:
    data = bytearray(DATA)
    data[position] ^= 4
    feed(incoming, bytes(data), 5000)
    with pytest.raises(CorruptSnapshot):
        incoming.verify(ID)
    assert not parts(store)
    with pytest.raises(ValueError, match="nothing of"):
        incoming.install(ID)
    assert store.log.end_offset == 41


@pytest.mark.parametrize("kept", [0, 1, 100, len(DATA) - 1])
def test_one_that_is_cut_off_is_refused(store: Store, incoming: IncomingSnapshot, kept: int) -> None:
    incoming.append(ID, 0, DATA[:kept])
    with pytest.raises(CorruptSnapshot):
        incoming.verify(ID)
    assert not parts(store)


@pytest.mark.parametrize("twice", CONTROL, ids=["kraft.version", "voters"])
def test_one_that_names_voters_or_kraft_version_twice_is_refused(
    store: Store, incoming: IncomingSnapshot, twice: Message
) -> None:
    feed(incoming, b"".join(encode_snapshot(ID, (*CONTROL, twice), [b"a value"], 77, 88)))
    with pytest.raises(CorruptSnapshot, match="twice"):
        incoming.verify(ID)
    assert not parts(store)


def test_a_piece_that_is_not_the_next_is_refused(incoming: IncomingSnapshot) -> None:
    with pytest.raises(ValueError, match="nothing of"):
        incoming.append(ID, 10, b"x")
    incoming.append(ID, 0, DATA[:100])
    with pytest.raises(ValueError, match="ends at byte 100"):
        incoming.append(ID, 200, DATA[200:])
    with pytest.raises(ValueError, match="nothing of"):
        incoming.append(SnapshotId(101, EPOCH), 100, b"x")


def test_it_can_begin_anew_and_be_abandoned(store: Store, incoming: IncomingSnapshot) -> None:
    incoming.append(ID, 0, b"from another leader")
    feed(incoming)
    incoming.abandon(SnapshotId(7, 7))
    assert incoming.verify(ID) is not None
    incoming.abandon(ID)
    incoming.abandon(ID)
    assert not parts(store)
    assert incoming.verify(ID) is None
    feed(incoming)
    with pytest.raises(ValueError, match="was not verified"):
        incoming.install(ID)
    incoming.close()
    assert not parts(store)


def paused_verification(
    incoming: IncomingSnapshot, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]
) -> list[VerifiedSnapshot | None]:
    """Verify in a thread, and let the owner act in the middle of it."""
    reading, go_on = threading.Event(), threading.Event()
    real = SnapshotReader.batches

    def pausing(self: SnapshotReader) -> list[Batch]:
        reading.set()
        assert go_on.wait(60)
        return list(real(self))

    monkeypatch.setattr(SnapshotReader, "batches", pausing)
    results: list[VerifiedSnapshot | None] = []
    worker = threading.Thread(target=lambda: results.append(incoming.verify(ID)))
    worker.start()
    assert reading.wait(60)
    meanwhile()
    go_on.set()
    worker.join()
    return results


def test_what_is_abandoned_while_it_is_verified_is_not_reported(
    store: Store, incoming: IncomingSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(incoming)
    assert paused_verification(incoming, monkeypatch, lambda: incoming.abandon(ID)) == [None]
    assert not parts(store)


@pytest.mark.parametrize("before", [DATA, DATA[:-1]], ids=["whole", "corrupt"])
def test_what_is_begun_anew_while_it_is_verified_stays_unverified(
    store: Store, incoming: IncomingSnapshot, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    feed(incoming, before)
    assert paused_verification(incoming, monkeypatch, lambda: incoming.append(ID, 0, b"half")) == [None]
    assert [part.read_bytes() for part in parts(store)] == [b"half"]
    with pytest.raises(ValueError, match="was not verified"):
        incoming.install(ID)


class Crash(Exception):
    pass


def crash_after(count: int, patch: pytest.MonkeyPatch) -> None:
    left = [count]

    def counting(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            return real(*arguments, **options)

        return call

    for name in ("pwrite", "ftruncate", "fdatasync", "fsync", "rename", "unlink"):
        owner = Path if name in ("rename", "unlink") else os
        patch.setattr(owner, name, counting(getattr(owner, name)))


def test_an_installation_that_is_interrupted_anywhere_is_finished_or_undone(
    store: Store, path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store.close()
    for changes in range(100):
        copy = tmp_path_factory.mktemp("copy") / "data"
        shutil.copytree(path, copy)
        crashing = open_store(copy)
        incoming = IncomingSnapshot(crashing.snapshots, crashing.log)
        feed(incoming, size_bytes=100_000)
        assert incoming.verify(ID)
        finished = True
        with pytest.MonkeyPatch.context() as patch:
            crash_after(changes, patch)
            try:
                incoming.install(ID)
            except Crash:
                finished = False
        crashing.folder.close()
        again = open_store(copy)
        assert not parts(again)
        if again.snapshots.ids:
            assert again.snapshots.ids == [ID]
            assert (again.log.start_offset, again.log.end_offset) == (100, 100)
        else:
            assert not finished
            assert (again.log.start_offset, again.log.end_offset) == (0, 41)
        assert again.lost_below_offset is None
        again.close()
        shutil.rmtree(copy)
        if finished:
            assert changes > 10
            return
    raise AssertionError("it never ends")


# --- truncation: what remains is on stable storage


def test_truncation_flushes_what_remains(store: Store) -> None:
    log = store.log
    log.append([data_batch(41, 2), data_batch(42, 2)])
    assert log.flushed_offset == 41
    log.truncate_to(42)
    assert (log.end_offset, log.flushed_offset) == (42, 42)
    log.append([data_batch(42, 2)])
    log.truncate_to(43)
    assert (log.end_offset, log.flushed_offset) == (43, 43)
    floor = (log.folder / "durable-floor").read_text()
    assert floor.startswith(f"{43:020d} ")


def test_truncation_into_a_segment_before_flushes_it_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.log
    for offset in range(41, 60):
        log.append([data_batch(offset, 2)])
    flushed: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: flushed.append(os.fstat(fd).st_ino))
    log.truncate_to(20)
    last = sorted(log.folder.glob("*.log"))[-1]
    assert last.stat().st_ino in flushed
    assert (log.end_offset, log.flushed_offset) == (20, 20)
