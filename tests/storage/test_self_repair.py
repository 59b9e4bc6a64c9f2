"""A node with peers starts on a damaged folder: it sets the damage aside and remembers what was lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text, quorum_state_text
from kraft_wire.log.recovery import EPOCHS_WITHOUT_TRACE
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.voters_record import Voter, VotersRecord
from kraft_wire.storage.errors import CorruptFile, CorruptLog, CorruptSnapshot, DiskFailed, MissingRecords
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.recovery.vote_guards import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    guard_text,
    parse_guard,
)
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import (
    FIRST_SEGMENT,
    all_bytes,
    contents,
    data_batch,
    epoch_batches,
    flip,
    leader_change,
    open_log,
)

NODE_ID = 1
EPOCH = 2
END = 41
PEERS = (1, 2, 3)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip flushes, which take most of the time: no power is cut here."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)


def open_store(path: Path, static_voter_ids: tuple[int, ...] = PEERS) -> Store:
    config = LogConfig(segment_bytes=500)
    return Store.open(path, node_id=NODE_ID, config=config, static_voter_ids=static_voter_ids)


def partition(path: Path) -> Path:
    return path / "__cluster_metadata-0"


def voters(*ids: int) -> VotersRecord:
    return VotersRecord(voters=[Voter(voter_id=id) for id in ids])


def write_snapshot(store: Store, snapshot_id: SnapshotId, *control: Message) -> None:
    store.snapshots.write(snapshot_id, encode_snapshot(snapshot_id, control, [b"value"], 0, 0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with records to offset 41 in several segments, and snapshots up to 10, 20 and 30."""
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    store = open_store(tmp_path)
    store.write_election_state(ElectionState(2, EPOCH), kraft_version=0)
    for batch in epoch_batches(0, EPOCH, [1] * 40):
        store.log.append([batch])
    for end_offset in (10, 20, 30):
        write_snapshot(store, SnapshotId(end_offset, EPOCH))
    store.close()
    return tmp_path


def segments(path: Path) -> list[Path]:
    return sorted(partition(path).glob("*.log"))


def without_snapshots(path: Path) -> Path:
    for file in partition(path).glob("*.checkpoint"):
        file.unlink()
    return path


def batches_of(segment: Path) -> list[bytes]:
    """Return the bytes of all batches, whole or damaged; their lengths are right."""
    data, batches = segment.read_bytes(), []
    while data:
        size_bytes = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[:size_bytes])
        data = data[size_bytes:]
    return batches


def aside(path: Path) -> bytes:
    """Return the bytes of the log that were set aside, in the order of the offsets."""
    return b"".join(file.read_bytes() for file in sorted(partition(path).glob("*.log.corrupt-*")))


# --- damage in the log


@pytest.mark.parametrize("where", range(0, 3900, 97))
def test_damage_anywhere_is_kept_aside_and_the_rest_starts(path: Path, where: int) -> None:
    without_snapshots(path)
    before = b"".join(file.read_bytes() for file in segments(path))
    start = 0
    for file in segments(path):
        if where < start + file.stat().st_size:
            flip(file, where - start, bit=where % 8)
            break
        start += file.stat().st_size
    damaged = b"".join(file.read_bytes() for file in segments(path))
    if damaged == before:
        return  # after the end of the log
    store = open_store(path)
    error = store.recovery.corrupt_log
    assert error is not None
    lost = store.lost_below_offset
    # The floor may be too low: unreadable bytes of the last batch may have been more records.
    assert lost == END or (error.offset == END - 1 and lost == END - 1 + len(data_batch(40, EPOCH)) // 7)
    assert store.log.end_offset == error.offset < END
    store.close()
    left = b"".join(file.read_bytes() for file in segments(path))
    assert left + aside(path) == damaged
    assert before.startswith(left)
    again = open_store(path)
    assert (again.recovery.corrupt_log, again.recovery.torn_tail) == (None, None)
    assert (again.lost_below_offset, again.log.end_offset) == (lost, error.offset)


def test_an_acknowledged_batch_above_a_floor_that_lags_is_not_taken_for_torn(path: Path) -> None:
    """The floor isn't flushed with the log: a power cut may bring an older one back."""
    floor = partition(path) / "durable-floor"
    older = floor.read_bytes()
    store = open_store(path)
    store.log.append([data_batch(END, EPOCH)])
    store.log.flush()
    store.close()
    floor.write_bytes(older)
    last = segments(path)[-1]
    flip(last, last.stat().st_size - 3)
    store = open_store(path)
    assert store.recovery.torn_tail is None and store.recovery.corrupt_log is not None
    assert store.log.end_offset == END < (store.lost_below_offset or 0)


def test_the_damage_is_fetched_again_and_then_forgotten(path: Path) -> None:
    without_snapshots(path)
    flip(segments(path)[1], 30)
    store = open_store(path)
    batches = epoch_batches(0, EPOCH, [1] * 40)
    for batch in batches[store.log.end_offset : -1]:
        store.log.append([batch])
    store.log.append(batches[-1:])
    store.log.flush()
    assert store.lost_below_offset == END, "the core says when it is made good"
    store.forget_loss()
    assert not (partition(path) / LOST_BELOW).exists()
    store.close()
    assert open_store(path).lost_below_offset is None


def test_a_restart_finds_the_log_made_good(path: Path) -> None:
    without_snapshots(path)
    flip(segments(path)[1], 30)
    store = open_store(path)
    for batch in epoch_batches(0, EPOCH, [1] * 40)[store.log.end_offset :]:
        store.log.append([batch])
    store.close()
    assert (partition(path) / LOST_BELOW).exists()
    assert open_store(path).lost_below_offset is None


def test_damage_on_both_sides_of_a_snapshot_s_end_lets_the_log_begin_there(path: Path) -> None:
    flip(segments(path)[1], 30)
    flip(segments(path)[-2], 300)
    store = open_store(path)
    assert store.recovery.log_reset_to == 30
    assert (store.log.start_offset, store.log.end_offset, store.lost_below_offset) == (30, 30, END)


def test_a_lone_voter_refuses_and_names_the_command(path: Path) -> None:
    leads_in(path, NODE_ID)
    without_snapshots(path)
    flip(segments(path)[1], 30)
    before = contents(partition(path))
    for static in ((NODE_ID,), ()):
        with pytest.raises(CorruptLog) as caught:
            open_store(path, static)
        assert f"`kraft-wire fsck {path} --repair`" in str(caught.value)
        assert f"below offset {END}" in str(caught.value)
        assert contents(partition(path)) == before


def leads_in(path: Path, leader_id: int, voted_id: int = -1) -> None:
    """Write a quorum-state in which this node leads the epoch."""
    election = ElectionState(leader_id, EPOCH, voted_id)
    (partition(path) / "quorum-state").write_text(quorum_state_text(election, 1))


def damage_what_names_the_voters(path: Path) -> None:
    """Damage the only snapshot, which names the voters; the log begins after them."""
    store = open_store(path)
    store.log.delete_before(30)
    store.close()
    newest = partition(path) / "00000000000000000030-0000000002.checkpoint"
    for file in partition(path).glob("*.checkpoint"):
        if file != newest:
            file.unlink()
    flip(newest, 100)
    leads_in(path, NODE_ID, NODE_ID)
    with pytest.raises(CorruptSnapshot):
        open_store(path, ())


@pytest.mark.parametrize(("leader_id", "voted_id"), [(2, -1), (-1, 3), (2, 2)])
def test_whoever_follows_another_is_not_alone(path: Path, leader_id: int, voted_id: int) -> None:
    damage_what_names_the_voters(path)
    leads_in(path, leader_id, voted_id)
    store = open_store(path, ())
    assert (store.log.end_offset, store.lost_below_offset) == (0, END)


def test_whoever_led_and_knows_where_others_are_is_not_alone(path: Path) -> None:
    damage_what_names_the_voters(path)
    with pytest.raises(CorruptSnapshot):
        Store.open(path, node_id=NODE_ID, bootstrap_server_count=1)
    store = Store.open(path, node_id=NODE_ID, bootstrap_server_count=3)
    assert (store.log.end_offset, store.lost_below_offset) == (0, END)


def with_voters_at(path: Path, offset: int, *ids: int) -> None:
    """Write the same log, with a VotersRecord at this offset."""
    store = open_store(path)
    store.log.truncate_to(0)
    for batch in epoch_batches(0, EPOCH, [1] * 40):
        at = store.log.end_offset
        store.log.append([encode_control_batch(at, EPOCH, 0, [voters(*ids)]) if at == offset else batch])
    store.close()


@pytest.mark.parametrize("offset", [1, 35])
def test_the_voters_of_the_log_decide_also_behind_the_damage(path: Path, offset: int) -> None:
    without_snapshots(path)
    with_voters_at(path, offset, 1, 2)
    flip(segments(path)[2], 30)
    for _ in range(2):
        store = open_store(path, (NODE_ID,))
        assert store.lost_below_offset == END
        store.close()


@pytest.mark.parametrize("offset", [1, 35])
def test_a_lone_voter_of_the_log_refuses_whatever_its_configuration_says(path: Path, offset: int) -> None:
    without_snapshots(path)
    with_voters_at(path, offset, NODE_ID)
    flip(segments(path)[2], 30)
    with pytest.raises(CorruptLog):
        open_store(path, PEERS)


def test_the_voters_of_a_snapshot_decide_where_the_log_names_none(path: Path) -> None:
    store = open_store(path)
    write_snapshot(store, SnapshotId(35, EPOCH), voters(1, 2))
    store.close()
    flip(segments(path)[-2], 300)
    assert open_store(path, ()).lost_below_offset == END


# --- how much was lost


def lost_below(path: Path) -> int:
    store = open_store(path)
    store.close()
    lost = parse_guard((partition(path) / LOST_BELOW).read_text())
    assert lost == store.lost_below_offset
    assert lost is not None
    return lost


def forget_floor(path: Path) -> None:
    (partition(path) / "durable-floor").unlink()


def test_without_a_floor_the_last_whole_batch_says_it(path: Path) -> None:
    without_snapshots(path)
    forget_floor(path)
    flip(segments(path)[1], 30)
    assert lost_below(path) == END


@pytest.mark.parametrize("bit", range(64))
def test_an_offset_that_rots_is_not_believed(path: Path, bit: int) -> None:
    without_snapshots(path)
    forget_floor(path)
    flip(segments(path)[1], bit // 8, bit % 8)
    assert END <= lost_below(path) <= END + 20


def test_bytes_behind_the_last_whole_batch_may_have_been_records(path: Path) -> None:
    """A batch in the middle is damaged, and the last one, whose contents nobody knows."""
    without_snapshots(path)
    forget_floor(path)
    flip(segments(path)[1], 30)
    last = segments(path)[-1]
    size_bytes = len(data_batch(40, EPOCH))
    flip(last, last.stat().st_size - 1)
    assert lost_below(path) == 40 + size_bytes // 7


def test_a_floor_of_another_epoch_is_still_the_higher_guess(path: Path) -> None:
    without_snapshots(path)
    store = open_store(path)
    store.write_election_state(ElectionState(-1, 7), kraft_version=0)
    store.close()
    (partition(path) / "quorum-state").write_text(
        '{"clusterId":"","leaderId":-1,"leaderEpoch":8,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[],"data_version":0}'
    )
    for file in segments(path)[2:]:
        file.unlink()
    flip(segments(path)[0], 30)
    assert lost_below(path) == END


def test_a_log_that_ends_below_its_floor(path: Path) -> None:
    without_snapshots(path)
    segments(path)[-1].write_bytes(b"")
    assert lost_below(path) == END
    assert not aside(path)


def without_log_and_floor(path: Path) -> Path:
    forget_floor(without_snapshots(path))
    for file in partition(path).glob("0*"):
        file.unlink()
    return path


def test_a_log_that_is_gone_with_its_floor_is_missed_all_the_same(path: Path) -> None:
    assert lost_below(without_log_and_floor(path)) == 1
    assert open_store(path).lost_below_offset == 1


def test_alone_a_log_that_is_gone_with_its_floor_is_refused_each_time(path: Path) -> None:
    without_log_and_floor(path)
    for _ in range(2):
        with pytest.raises(CorruptLog, match="the log is missing; other files show that there was one"):
            open_store(path, (NODE_ID,))


def without_log_behind_snapshots(path: Path) -> Path:
    forget_floor(path)
    for file in segments(path):
        file.unlink()
    return path


def test_behind_a_snapshot_a_log_that_is_gone_is_fetched_anew(path: Path) -> None:
    store = open_store(without_log_behind_snapshots(path))
    assert store.recovery.corrupt_log is not None
    assert store.log.start_offset == store.log.end_offset == 30
    assert store.lost_below_offset is None, "by what is left there was nothing else"


def test_alone_a_snapshot_is_not_taken_for_a_log_that_is_gone(path: Path) -> None:
    with pytest.raises(CorruptLog, match="the log is missing; other files show that there was one"):
        open_store(without_log_behind_snapshots(path), (NODE_ID,))


@pytest.mark.parametrize("epochs", [None, "0\n0\n", "rubbish"])
def test_epochs_that_say_nothing_make_no_log(path: Path, epochs: str | None) -> None:
    """A node that was formatted and has not run yet has such a file."""
    without_log_and_floor(path)
    checkpoint = partition(path) / "leader-epoch-checkpoint"
    checkpoint.unlink()
    if epochs is not None:
        checkpoint.write_text(epochs)
    assert open_store(path, (NODE_ID,)).log.end_offset == 0


# --- snapshots


def test_without_a_snapshot_of_what_the_log_lacks_everything_is_fetched(path: Path) -> None:
    store = open_store(path)
    store.log.delete_before(30)
    store.close()
    log = b"".join(file.read_bytes() for file in segments(path))
    for end in (10, 20):
        (partition(path) / f"000000000000000000{end}-0000000002.checkpoint").unlink(missing_ok=True)
    flip(partition(path) / "00000000000000000030-0000000002.checkpoint", 100)
    with pytest.raises(CorruptSnapshot):
        open_store(path, (NODE_ID,))
    store = open_store(path)
    assert (store.log.start_offset, store.log.end_offset, store.lost_below_offset) == (0, 0, END)
    assert len(store.recovery.corrupt_snapshots) == len(store.recovery.snapshots_set_aside) == 1
    assert aside(path) == log
    store.close()
    assert open_store(path).lost_below_offset == END


def test_a_log_that_begins_above_every_snapshot_is_fetched_anew(path: Path) -> None:
    store = open_store(path)
    store.log.delete_before(30)
    store.close()
    without_snapshots(path)
    with pytest.raises(MissingRecords):
        open_store(path, (NODE_ID,))
    store = open_store(path)
    assert (store.log.end_offset, store.lost_below_offset) == (0, END)


def test_a_snapshot_that_was_ahead_of_the_log_is_missed(path: Path) -> None:
    store = open_store(path)
    write_snapshot(store, SnapshotId(60, EPOCH))
    store.close()
    flip(partition(path) / "00000000000000000060-0000000002.checkpoint", 100)
    store = open_store(path)
    assert (store.log.end_offset, store.lost_below_offset) == (END, 60)


# --- damage that a whole snapshot makes up for

ALONE = (NODE_ID,)


def bytes_from(path: Path, offset: int) -> bytes:
    """Return the batches from an offset on, in a log of single records."""
    batches = [batch for file in segments(path) for batch in batches_of(file)]
    return b"".join(batch for batch in batches if int.from_bytes(batch[:8], "big") >= offset)


def begins_at(path: Path, offset: int, rest: bytes) -> Store:
    """Check that the node has everything from this offset on, with or without peers, and knows it."""
    copy = Path(shutil.copytree(path, path.parent / f"alone-{path.name}"))
    open_store(copy, ALONE).close()
    assert not (partition(copy) / LOST_BELOW).exists()
    assert contents(partition(copy)) != contents(partition(path))
    shutil.rmtree(copy)
    store = open_store(path)
    assert (store.log.start_offset, store.log.end_offset) == (offset, END)
    assert (store.recovery.corrupt_log, store.lost_below_offset) == (None, None)
    assert store.recovery.corrupt_history is not None
    assert all_bytes(store.log) == rest
    assert store.log.epochs.entries == [(EPOCH, offset)]
    assert read_floor(partition(path)) == (END, EPOCH, 0)
    store.close()
    again = open_store(path, ALONE)
    assert (again.recovery.corrupt_history, again.recovery.log_set_aside) == (None, [])
    assert all_bytes(again.log) == rest
    return again


@pytest.mark.parametrize("number", [0, 2, 4])
def test_damage_below_a_snapshot_costs_the_segments_up_to_it(path: Path, number: int) -> None:
    flip(segments(path)[number], 30)
    before = b"".join(file.read_bytes() for file in segments(path))
    begin = int(segments(path)[number + 1].stem)
    assert begin <= 30
    rest = bytes_from(path, begin)
    begins_at(path, begin, rest).close()
    assert aside(path) + rest == before


def test_a_missing_segment_below_a_snapshot_costs_no_more(path: Path) -> None:
    segments(path)[1].unlink()
    begin = int(segments(path)[1].stem)
    begins_at(path, begin, bytes_from(path, begin))


def test_several_damages_below_a_snapshot_cost_the_segments_up_to_the_last(path: Path) -> None:
    for number in (0, 3):
        flip(segments(path)[number], 100)
    begin = int(segments(path)[4].stem)
    begins_at(path, begin, bytes_from(path, begin))


@pytest.fixture
def undivided(path: Path) -> Path:
    """Write the same log in one segment."""
    whole = b"".join(file.read_bytes() for file in segments(path))
    for file in segments(path):
        file.unlink()
    (partition(path) / FIRST_SEGMENT).write_bytes(whole)
    return path


def test_every_byte_below_a_snapshot_within_the_segment(undivided: Path, tmp_path: Path) -> None:
    segment = partition(undivided) / FIRST_SEGMENT
    rest = bytes_from(undivided, 30)
    whole = segment.read_bytes()
    for position in range(0, len(whole) - len(rest), 7):
        copy = Path(shutil.copytree(undivided, tmp_path / "copy"))
        flip(partition(copy) / FIRST_SEGMENT, position, position % 8)
        store = open_store(copy, ALONE)
        # The first batch of a log may have any lower epoch than the second.
        begin = 30 if store.recovery.corrupt_history is not None else 0
        assert (store.log.start_offset, store.log.end_offset, store.lost_below_offset) == (begin, END, None)
        assert begin == 30 or position in range(len(batches_of(segment)[0]))
        assert all_bytes(store.log).endswith(rest)
        store.close()
        shutil.rmtree(copy)
    flip(segment, 500)
    begins_at(undivided, 30, rest).close()
    assert [file.name for file in segments(undivided)] == ["00000000000000000030.log"]
    assert len(aside(undivided)) == len(whole)


def test_a_torn_tail_behind_the_snapshot_is_still_one(undivided: Path) -> None:
    segment = partition(undivided) / FIRST_SEGMENT
    flip(segment, 500)
    rest = bytes_from(undivided, 30)
    with segment.open("ab") as file:
        file.write(data_batch(END, EPOCH)[:50])
    store = open_store(undivided, ALONE)
    assert store.recovery.corrupt_history is not None and store.recovery.torn_tail is not None
    assert all_bytes(store.log) == rest


def test_damage_behind_the_snapshot_s_end_is_as_bad_as_ever(undivided: Path) -> None:
    segment = partition(undivided) / FIRST_SEGMENT
    size_bytes = segment.stat().st_size
    start = size_bytes - len(bytes_from(undivided, 30))
    for position in range(start, size_bytes, 41):
        flip(segment, position)
        flip(segment, 500)
        before = contents(partition(undivided))
        with pytest.raises(CorruptLog):
            open_store(undivided, ALONE)
        assert contents(partition(undivided)) == before
        flip(segment, position)
        flip(segment, 500)


def test_a_snapshot_that_is_damaged_makes_up_for_nothing(path: Path) -> None:
    for file in partition(path).glob("*.checkpoint"):
        file.chmod(0o600)
        flip(file, file.stat().st_size - 5)
    flip(segments(path)[0], 30)
    with pytest.raises(CorruptLog):
        open_store(path, ALONE)
    assert open_store(path).lost_below_offset == END


def test_the_newest_whole_snapshot_counts(path: Path) -> None:
    newest = partition(path) / "00000000000000000030-0000000002.checkpoint"
    newest.chmod(0o600)
    flip(newest, 100)
    flip(segments(path)[1], 30)
    begin = int(segments(path)[2].stem)
    assert begin < 20
    begins_at(path, begin, bytes_from(path, begin))


def test_a_damaged_snapshot_that_was_ahead_of_the_log_is_still_missed(path: Path) -> None:
    store = open_store(path)
    write_snapshot(store, SnapshotId(60, EPOCH))
    store.close()
    newest = partition(path) / "00000000000000000060-0000000002.checkpoint"
    newest.chmod(0o600)
    flip(newest, 100)
    flip(segments(path)[0], 30)
    before = contents(partition(path))
    with pytest.raises(CorruptLog):
        open_store(path, ALONE)
    assert contents(partition(path)) == before
    assert open_store(path).lost_below_offset == 60


def test_a_snapshot_of_another_epoch_than_the_log_s_makes_up_for_nothing(undivided: Path) -> None:
    without_snapshots(undivided)
    open_store(undivided, ALONE).close()
    (partition(undivided) / "00000000000000000030-0000000001.checkpoint").write_bytes(
        b"".join(encode_snapshot(SnapshotId(30, 1), [], [b"value"], 0, 0))
    )
    flip(partition(undivided) / FIRST_SEGMENT, 500)
    with pytest.raises(CorruptLog):
        open_store(undivided, ALONE)


def test_a_snapshot_that_ends_with_the_log_makes_up_for_all_of_it(path: Path) -> None:
    store = open_store(path)
    write_snapshot(store, SnapshotId(END, EPOCH))
    store.close()
    last_but_one = segments(path)[-2]
    flip(last_but_one, 300)
    segments(path)[-1].unlink()
    (partition(path) / "durable-floor").unlink()
    with last_but_one.open("ab") as file:
        file.write(data_batch(END - 1, EPOCH))
    store = open_store(path, ALONE)
    assert (store.log.start_offset, store.log.end_offset, store.lost_below_offset) == (END, END, None)
    assert store.log.epochs.entries == []


# --- a crash in the middle


class Crash(Exception):
    pass


CHANGES = ("pwrite", "ftruncate", "fdatasync", "fsync", "rename", "unlink")


def crash_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process before its next change to the disk, after this many."""
    left = [count]

    def counting(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            return real(*arguments, **options)

        return call

    for name in CHANGES:
        owner = Path if name in ("rename", "unlink") else os
        monkeypatch.setattr(owner, name, counting(getattr(owner, name)))


@pytest.mark.parametrize(
    "damage", ["in the first segment", "in the third", "a segment is missing", "snapshot"]
)
def test_a_repair_that_is_interrupted_anywhere_goes_on(
    path: Path, tmp_path_factory: pytest.TempPathFactory, damage: str
) -> None:
    if damage == "snapshot":
        store = open_store(path)
        store.log.delete_before(30)
        store.close()
    without_snapshots(path)
    if damage == "in the first segment":
        flip(segments(path)[0], 200)
    elif damage == "in the third":
        flip(segments(path)[2], 200)
    elif damage == "a segment is missing":
        segments(path)[1].unlink()
    damaged = [batch for file in segments(path) for batch in batches_of(file)]
    for changes in range(200):
        copy = tmp_path_factory.mktemp("copy") / "data"
        shutil.copytree(path, copy)
        with pytest.MonkeyPatch.context() as patch:
            crash_after(changes, patch)
            try:
                open_store(copy).close()
                finished = True
            except Crash:
                finished = False
        store = open_store(copy)
        assert store.lost_below_offset == END
        assert store.log.end_offset < END
        store.close()
        kept = aside(copy) + b"".join(file.read_bytes() for file in segments(copy))
        assert all(batch in kept for batch in damaged)
        shutil.rmtree(copy)
        if finished:
            assert changes > 10
            return
    raise AssertionError("it never ends")


@pytest.mark.parametrize("damage", ["between segments", "within a segment", "in several segments"])
def test_beginning_at_a_snapshot_goes_on_wherever_it_was_interrupted(
    path: Path, tmp_path_factory: pytest.TempPathFactory, damage: str
) -> None:
    begin = int(segments(path)[3].stem)
    if damage == "in several segments":
        flip(segments(path)[0], 100)
    elif damage == "within a segment":
        store = open_store(path)
        write_snapshot(store, SnapshotId(begin := 32, EPOCH))
        store.close()
        flip(segments(path)[6], 30)
    flip(segments(path)[2], 100)
    damaged = [batch for file in segments(path) for batch in batches_of(file)]
    rest = bytes_from(path, begin)
    for changes in range(300):
        copy = tmp_path_factory.mktemp("copy") / "data"
        shutil.copytree(path, copy)
        with pytest.MonkeyPatch.context() as patch:
            crash_after(changes, patch)
            try:
                open_store(copy, ALONE).close()
                finished = True
            except Crash:
                finished = False
        store = open_store(copy, ALONE)
        assert (store.log.start_offset, store.log.end_offset, store.lost_below_offset) == (begin, END, None)
        assert all_bytes(store.log) == rest
        store.close()
        kept = aside(copy) + rest
        assert all(batch in kept for batch in damaged)
        shutil.rmtree(copy)
        if finished:
            assert changes > 10
            return
    raise AssertionError("it never ends")


def test_a_disk_that_fails_stops_the_repair(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(segments(path)[1], 30)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskFailed):
        open_store(path)


# --- vote guards


@pytest.mark.parametrize("bit", range(0, 8 * len(guard_text(7)), 5))
def test_one_flipped_bit_does_not_make_it_forget(path: Path, bit: int) -> None:
    file = partition(path) / LOST_BELOW
    file.write_text(guard_text(70))
    flip(file, bit // 8, bit % 8)
    store = open_store(path)
    assert store.lost_below_offset == 70
    assert store.recovery.rebuilt == [file]
    store.close()
    assert file.read_text() == guard_text(70), "another bit may flip"


@pytest.mark.parametrize("text", ["", "70", "x" * 60, "٣" * 20])
def test_a_file_that_says_nothing_is_refused(path: Path, text: str) -> None:
    (partition(path) / LOST_BELOW).write_text(text)
    with pytest.raises(CorruptFile, match="limits this node's votes"):
        open_store(path)


def test_a_voter_that_its_configuration_says_is_alone_misses_nothing(path: Path) -> None:
    """The damage was cut out with `fsck --repair`, which couldn't know of other voters."""
    file = partition(path) / LOST_BELOW_UNLESS_ALONE
    for static, lost in (((NODE_ID,), None), (PEERS, 70), ((NODE_ID,), 70)):
        file.write_text(guard_text(70))
        store = open_store(path, static)
        assert store.lost_below_offset == lost
        assert not file.exists()
        store.close()


# --- quorum-state


def no_vote_up_to(path: Path) -> int | None:
    return parse_guard((partition(path) / NO_VOTE_UP_TO).read_text())


@pytest.mark.parametrize("static", [PEERS, (NODE_ID,), ()])
def test_without_quorum_state_no_vote_where_one_may_have_been_given(
    path: Path, static: tuple[int, ...]
) -> None:
    (partition(path) / "quorum-state").unlink()
    store = open_store(path, static)
    limit = EPOCH + EPOCHS_WITHOUT_TRACE
    assert (store.election, store.no_vote_up_to_epoch, no_vote_up_to(path)) == (None, limit, limit)
    assert store.recovery.election_state_missing
    store.write_election_state(ElectionState(2, EPOCH), kraft_version=0)
    store.close()
    again = open_store(path, static)
    assert (again.election, again.no_vote_up_to_epoch) == (ElectionState(2, EPOCH), limit)
    again.write_election_state(ElectionState(2, limit), kraft_version=0)
    assert again.no_vote_up_to_epoch == limit
    again.write_election_state(ElectionState(2, limit + 1), kraft_version=0)
    assert again.no_vote_up_to_epoch == -1
    assert not (partition(path) / NO_VOTE_UP_TO).exists()


def test_the_epoch_in_the_floor_counts_as_well(path: Path) -> None:
    store = open_store(path)
    store.write_election_state(ElectionState(-1, 900, voted_id=3), kraft_version=0)
    store.close()
    (partition(path) / "quorum-state").unlink()
    assert open_store(path).no_vote_up_to_epoch == 900 + EPOCHS_WITHOUT_TRACE


def test_a_vote_before_anything_was_in_the_log_leaves_its_epoch_in_the_floor(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    store = open_store(tmp_path)
    assert not store.recovery.election_state_missing
    store.write_election_state(ElectionState(-1, 7, voted_id=2), kraft_version=0)
    store.close()
    (partition(tmp_path) / "quorum-state").unlink()
    for _ in range(2):
        store = open_store(tmp_path)
        assert store.recovery.election_state_missing
        assert store.no_vote_up_to_epoch == 7 + EPOCHS_WITHOUT_TRACE
        store.close()


def test_the_last_trace_of_an_epoch_is_not_overwritten_before_it_is_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.note_quorum_epoch(7)
    log.close()
    open_log(tmp_path, quorum_epoch=None).close()
    found = read_floor(tmp_path)
    assert found is not None and found.quorum_epoch == 7


def test_damage_of_an_empty_log_without_quorum_state_and_floor_costs_the_vote_too(path: Path) -> None:
    for name in ("quorum-state", "durable-floor"):
        (partition(path) / name).unlink()
    without_snapshots(path)
    flip(segments(path)[0], 30)
    store = open_store(path)
    assert store.log.end_offset == 0 < (store.lost_below_offset or 0)
    assert store.no_vote_up_to_epoch == EPOCHS_WITHOUT_TRACE


@pytest.mark.parametrize("text", ["", "{", "\x00" * 80, '{"leaderId":1}'])
def test_a_quorum_state_that_cannot_be_read_is_set_aside(path: Path, text: str) -> None:
    (partition(path) / "quorum-state").write_text(text)
    store = open_store(path)
    assert store.election is None
    assert store.no_vote_up_to_epoch == EPOCH + EPOCHS_WITHOUT_TRACE
    kept = store.recovery.quorum_state_set_aside
    assert kept is not None and kept.read_text() == text
    assert not (partition(path) / "quorum-state").exists()
    store.close()
    assert open_store(path).no_vote_up_to_epoch == EPOCH + EPOCHS_WITHOUT_TRACE


def test_a_flipped_bit_in_the_vote_costs_the_vote(path: Path) -> None:
    store = open_store(path)
    store.write_election_state(ElectionState(voted_id=2, leader_epoch=EPOCH + 1), kraft_version=0)
    store.close()
    file = partition(path) / "quorum-state"
    flip(file, file.read_bytes().index(b'"votedId":2') + len('"votedId":'), bit=0)
    store = open_store(path)
    assert "don't match the checksum" in str(store.recovery.corrupt_quorum_state)
    assert (store.election, store.no_vote_up_to_epoch) == (None, EPOCH + 1 + EPOCHS_WITHOUT_TRACE)


def test_a_new_node_whose_quorum_state_rots_has_perhaps_voted(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    open_store(tmp_path).close()
    (partition(tmp_path) / "quorum-state").write_text("{")
    store = open_store(tmp_path)
    assert store.no_vote_up_to_epoch == EPOCHS_WITHOUT_TRACE
    store.close()
    assert open_store(tmp_path).no_vote_up_to_epoch == EPOCHS_WITHOUT_TRACE


def test_a_quorum_state_that_the_log_contradicts_is_the_one_that_rots(path: Path) -> None:
    store = open_store(path)
    store.write_election_state(ElectionState(2, 7), kraft_version=0)
    store.log.append(epoch_batches(END, 7, [1]))
    store.close()
    file = partition(path) / "quorum-state"
    file.write_text(quorum_state_text(ElectionState(2, 5), version=0))
    store = open_store(path, (NODE_ID,))
    assert store.log.end_offset == END + 2
    assert "has epoch 5, but the log holds whole batches of epoch 7" in str(
        store.recovery.corrupt_quorum_state
    )
    assert store.no_vote_up_to_epoch == 7 + EPOCHS_WITHOUT_TRACE


def test_a_last_batch_whose_epoch_rots_is_not_believed(path: Path) -> None:
    store = open_store(path)
    store.write_election_state(ElectionState(2, 7), kraft_version=0)
    store.log.append([leader_change(END, 7)])
    store.close()
    last = segments(path)[-1]
    data = last.read_bytes()
    flip(last, data.rindex(leader_change(END, 7)) + 15, bit=3)
    with pytest.raises(CorruptLog, match="is above 7"):
        open_store(path, (NODE_ID,))


def test_an_unused_folder_remembers_nothing(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    store = open_store(tmp_path)
    assert (store.lost_below_offset, store.no_vote_up_to_epoch) == (None, -1)
    names = {file.name for file in partition(tmp_path).iterdir()}
    assert FIRST_SEGMENT in names and not names & {LOST_BELOW, NO_VOTE_UP_TO}
