"""The metadata of a moment is what the log had up to it, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.logs.folder_store import FolderStore
from kraft_wire.logs.metadata_at import (
    UNKNOWN,
    DamagedLog,
    MetadataThen,
    MissingMoment,
    Moment,
    metadata_at,
    take_earlier_election,
)
from kraft_wire.logs.ranges import DataLoss
from tests.support.java_rows import NODE
from tests.support.metadata_logs import LogWriter

Make = Callable[..., LogWriter]


def found_in(folder: Path, moment: Moment) -> MetadataThen:
    store = FolderStore([str(folder)])
    (bounds,) = store.bounds().values()
    return metadata_at(store, bounds, moment)


def at(log: LogWriter, *, offset: int | None = None, time_ms: int | None = None) -> MetadataThen:
    return found_in(log.partition, Moment(offset, time_ms))


def topics_of(then: MetadataThen) -> list[int]:
    """Return the offsets of the records that created the topics which are there."""
    return sorted(int(topic.name.removeprefix("topic-")) for topic in then.state.topics)


@pytest.fixture
def log(make_log: Make) -> LogWriter:
    """A leader's record at offset 0; topics at 1 to 3 and 4 to 6; another epoch's record at 7; topics at 8 to
    10. A batch has the time of its first record, in seconds."""
    log = make_log("one")
    log.append()
    log.append()
    log.lead(2)
    log.append()
    return log


def test_without_a_moment_it_is_the_end(log: LogWriter) -> None:
    then = at(log)
    assert topics_of(then) == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert (then.cluster_id, then.offset, then.epoch, then.time_ms) == ("one", 10, 2, 8_000)


@pytest.mark.parametrize(
    ("offset", "topics", "epoch"),
    [(0, [], 1), (3, [1, 2, 3], 1), (5, [1, 2, 3, 4, 5], 1), (7, [1, 2, 3, 4, 5, 6], 2)],
    ids=["the first record", "the end of a batch", "within a batch", "a control record"],
)
def test_an_offset_is_included(log: LogWriter, offset: int, topics: list[int], epoch: int) -> None:
    then = at(log, offset=offset)
    assert topics_of(then) == topics
    assert (then.offset, then.epoch) == (offset, epoch)


@pytest.mark.parametrize(
    ("time_ms", "offset"), [(1_000, 3), (3_999, 3), (4_000, 6), (7_500, 7), (99_000, 10)]
)
def test_a_time_ends_before_the_first_later_record(log: LogWriter, time_ms: int, offset: int) -> None:
    assert at(log, time_ms=time_ms).offset == offset


def test_a_time_before_the_log_is_refused(log: LogWriter) -> None:
    with pytest.raises(MissingMoment, match="the first record was written after that time"):
        at(log, time_ms=-1)


def test_an_offset_after_the_log_is_refused(log: LogWriter) -> None:
    with pytest.raises(MissingMoment, match="offset 11 isn't there yet: the last record has offset 10"):
        at(log, offset=11)


def test_an_empty_log_has_no_metadata(make_log: Make) -> None:
    log = make_log("one")
    log.cut(0)
    then = at(log)
    assert (then.offset, then.epoch, topics_of(then)) == (-1, -1, [])
    for moment in (Moment(offset=0), Moment(time_ms=1)):
        with pytest.raises(MissingMoment, match="the log is empty"):
            found_in(log.partition, moment)


class TestTrimmed:
    """The log begins with a snapshot, which ends at offset 7."""

    @pytest.fixture
    def log(self, make_log: Make) -> LogWriter:
        log = make_log("one")
        log.append()
        log.append()
        log.roll()
        snapshot_id = log.snapshot()
        log.append()
        log.trim(snapshot_id.end_offset)
        return log

    def test_the_snapshot_comes_first(self, log: LogWriter) -> None:
        assert topics_of(at(log)) == list(range(10))
        assert topics_of(at(log, offset=8)) == list(range(9))

    def test_the_snapshot_alone(self, log: LogWriter) -> None:
        then = at(log, offset=6)
        assert topics_of(then) == list(range(7))
        assert (then.offset, then.epoch, then.time_ms) == (6, 1, 6_000)
        assert at(log, time_ms=6_500).offset == 6

    def test_what_was_deleted_is_refused(self, log: LogWriter) -> None:
        with pytest.raises(MissingMoment, match=r"offset 5 isn't there any more; the first .* shown is 6"):
            at(log, offset=5)
        with pytest.raises(MissingMoment, match="that time isn't there any more; the log begins later"):
            at(log, time_ms=5_000)

    def test_a_damaged_snapshot_is_named(self, log: LogWriter) -> None:
        (file,) = log.partition.glob("*.checkpoint")
        file.write_bytes(file.read_bytes()[:-20])
        with pytest.raises(DamagedLog, match=f"{file}: the snapshot is damaged at byte"):
            at(log)

    def test_without_its_snapshot_the_log_has_no_state(self, log: LogWriter) -> None:
        (file,) = log.partition.glob("*.checkpoint")
        file.unlink()
        with pytest.raises(DataLoss, match="no snapshot reaches it"):
            at(log)

    def test_an_election_that_was_deleted_stays_unknown(self, log: LogWriter) -> None:
        assert with_election(log).quorum.leader_id == UNKNOWN


class TestWithSnapshots:
    """The log begins at 0, and has snapshots that end at 4 and at 7."""

    @pytest.fixture
    def log(self, make_log: Make) -> LogWriter:
        log = make_log("one")
        for _ in range(2):
            log.append()
            log.snapshot()
        log.append()
        return log

    def test_a_damaged_snapshot_is_passed_over(self, log: LogWriter) -> None:
        newest = max(log.partition.glob("*.checkpoint"))
        for data in (newest.read_bytes()[:-20], b""):
            newest.write_bytes(data)
            assert topics_of(at(log)) == list(range(10)), "topic 0 is in the older snapshot only"

    def test_a_time_begins_with_the_newest_snapshot_before_it(self, log: LogWriter) -> None:
        assert topics_of(at(log, time_ms=6_500)) == list(range(7))
        assert topics_of(at(log, time_ms=3_500)) == [0, 1, 2, 3]
        assert topics_of(at(log, time_ms=2_500)) == [1, 2, 3], "a batch has the time of its first record"

    def test_the_election_before_the_snapshot_is_found(self, log: LogWriter) -> None:
        assert at(log).quorum.leader_id == UNKNOWN
        assert with_election(log).quorum.leader_id == 1


def with_election(log: LogWriter) -> MetadataThen:
    store = FolderStore([str(log.partition)])
    (bounds,) = store.bounds().values()
    then = metadata_at(store, bounds, Moment())
    take_earlier_election(then, store, bounds)
    return then


def test_damage_at_the_end_is_named_and_not_left_out(log: LogWriter) -> None:
    log.commit(11)
    file = log.segment()
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    for moment in (Moment(), Moment(offset=10), Moment(time_ms=99_000)):
        with pytest.raises(DamagedLog, match=rf"{file}: .*--as-of-offset 7 shows the one before it"):
            found_in(log.partition, moment)
    assert at(log, offset=7).offset == 7
    assert at(log, time_ms=4_500).offset == 6


def test_damage_at_the_beginning_advises_no_offset(log: LogWriter) -> None:
    file = log.segment()
    data = bytearray(file.read_bytes())
    data[30] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedLog) as raised:
        at(log)
    assert "--as-of-offset" not in str(raised.value)


def test_damage_is_named_and_what_is_before_it_can_be_read(log: LogWriter) -> None:
    log.append()
    log.roll()
    log.append()
    file = log.segment()
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedLog, match=rf"{file}: no batch at byte \d+ \(offset 11\).*--as-of-offset 10"):
        at(log)
    assert at(log, offset=10).offset == 10


def test_records_above_the_committed_offset_may_be_lost(log: LogWriter) -> None:
    log.commit(7)
    assert at(log, offset=7).may_be_uncommitted
    assert not at(log, offset=6).may_be_uncommitted


def test_control_records_of_a_java_controller_say_who_votes_and_leads() -> None:
    then = found_in(NODE, Moment(offset=19))
    assert (then.quorum.kraft_version, then.quorum.leader_id) == (1, 1)
    assert [voter.key.id for voter in then.quorum.voters] == [1]
    assert list(then.state.controllers) == [1]
