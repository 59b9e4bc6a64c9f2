"""Rows are written back as a folder: the log is the one that they came from, and a lone controller can
lead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kraft_wire.lake.restore import Identity, restore_folder
from kraft_wire.lake.restored_log import MissingRows
from kraft_wire.log.batch import MAX_BATCH_SIZE_BYTES, Batch, record_values, split_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import LogError
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Now, Start
from kraft_wire.raft.membership.voters import VoterSet, endpoints_of, static_voters
from kraft_wire.server.assembly import durable_state
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.storage.errors import AlreadyFormatted
from kraft_wire.storage.inspection import inspect
from kraft_wire.storage.snapshots.state_loading import load_state
from kraft_wire.storage.store import Store
from kraft_wire.tabular.record_rows import NO_TIMESTAMP, BadRow, NotReached, RecordRow, rows_of_rows, up_to
from tests.support.java_rows import BUSY, CLUSTER, NODE, log_arrow, log_batches, log_rows, snapshot_rows

NODE_ID = 7
IDENTITY = Identity(CLUSTER, NODE_ID, Uuid(bytes(range(16))))
AT_61 = SnapshotId(61, 2)
AT_107 = SnapshotId(107, 3)


def restored_batches(folder: Path) -> list[Batch]:
    return list(log_batches(folder / PARTITION_FOLDER))


def data(batches: Iterable[Batch]) -> bytes:
    return b"".join(batch.data for batch in batches)


def state_of(folder: Path) -> MetadataState:
    """Return the state that a controller replays when it starts on the folder."""
    store = Store.open(folder, node_id=NODE_ID, cluster_id=CLUSTER)
    try:
        snapshot_id = store.snapshots.latest or SnapshotId(0, 0)
        state = load_state(store.snapshots, snapshot_id)
        replay(state, store.log.batches(snapshot_id.end_offset))
        return state
    finally:
        store.close()


def replay(state: MetadataState, batches: Iterable[Batch], up_to: int = 2**63) -> None:
    for batch in batches:
        if not batch.header.is_control:
            values = record_values(batch)[: max(0, up_to + 1 - batch.header.base_offset)]
            state.replay_values(values, batch.header.base_offset)


# --- the log


@pytest.mark.parametrize("folder", [NODE, BUSY], ids=["node", "busy"])
def test_the_log_is_javas_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    rows = log_rows(folder)
    restored = restore_folder(rows, tmp_path, IDENTITY)
    original = list(log_batches(folder))
    assert restored.end_offset == original[-1].header.next_offset == rows[-1].offset + 1
    assert data(restored_batches(tmp_path)[:-1]) == data(original)


def test_the_folder_is_whole(tmp_path: Path) -> None:
    restore_folder(log_rows(NODE), tmp_path, IDENTITY)
    inspection = inspect(tmp_path)
    assert inspection.is_whole
    assert {Path(finding.file).name for finding in inspection.findings} >= {
        "meta.properties",
        "partition.metadata",
        "quorum-state",
        "leader-epoch-checkpoint",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
    }


def test_the_state_at_any_offset_is_what_it_was(tmp_path: Path) -> None:
    rows = log_rows(BUSY)
    for number, offset in enumerate(sorted(Random(6).sample(range(12, rows[-1].offset), 20))):
        folder = tmp_path / str(number)
        restored = restore_folder(up_to(rows, offset), folder, IDENTITY)
        assert restored.end_offset == offset + 1
        expected = MetadataState()
        replay(expected, log_batches(BUSY), up_to=offset)
        assert canonical(state_of(folder)) == canonical(expected)


def test_records_of_one_moment_fill_batches_up_to_the_limit(tmp_path: Path) -> None:
    (topic,) = [row for row in log_rows(BUSY) if row.type == "ConfigRecord"][:1]
    long = topic.json.replace('"value":"', '"value":"' + 30_000 * "x")
    rows = [*log_rows(BUSY)]
    end, timestamp_ms = rows[-1].offset + 1, rows[-1].timestamp_ms + 1
    many = [
        topic._replace(offset=end + n, timestamp_ms=timestamp_ms, epoch=rows[-1].epoch, json=long)
        for n in range(600)
    ]
    restore_folder([*rows, *many], tmp_path, IDENTITY)
    batches = [batch for batch in restored_batches(tmp_path) if batch.header.base_timestamp == timestamp_ms]
    assert sum(batch.header.record_count for batch in batches if not batch.header.is_control) == 600
    sizes = [batch.header.size_bytes for batch in batches if not batch.header.is_control]
    assert len(sizes) == 3 and max(sizes) <= MAX_BATCH_SIZE_BYTES
    assert min(sizes[:2]) > MAX_BATCH_SIZE_BYTES - 40_000


def test_rows_may_be_sparks_or_mappings() -> None:
    """Spark's rows have times in the local time zone, without saying so."""
    table = pa.Table.from_batches(log_arrow(BUSY))
    rows = table.to_pylist()
    assert list(rows_of_rows(rows)) == list(log_rows(BUSY))
    local = [{**row, "timestamp": row["timestamp"].astimezone().replace(tzinfo=None)} for row in rows]
    assert list(rows_of_rows(local)) == list(log_rows(BUSY))
    (row,) = rows_of_rows([{**rows[0], "timestamp": None}])
    assert row.timestamp_ms == NO_TIMESTAMP


# --- snapshots


def test_a_log_that_begins_with_a_snapshot(tmp_path: Path) -> None:
    later = [row for row in log_rows(NODE) if row.offset >= AT_61.end_offset]
    restored = restore_folder([*snapshot_rows(NODE, AT_61), *later], tmp_path, IDENTITY)
    assert (restored.start_offset, restored.snapshot_id) == (AT_61.end_offset, AT_61)
    assert inspect(tmp_path).is_whole
    expected = MetadataState()
    replay(expected, log_batches(NODE))
    assert canonical(state_of(tmp_path)) == canonical(expected)
    original = [batch for batch in log_batches(NODE) if batch.header.base_offset >= AT_61.end_offset]
    assert data(restored_batches(tmp_path)[:-1]) == data(original)


def test_a_snapshots_records_are_the_rows(tmp_path: Path) -> None:
    snapshot_id = SnapshotId(410, 1)
    rows = snapshot_rows(BUSY, snapshot_id)
    restore_folder(rows, tmp_path / "a", IDENTITY)
    path = tmp_path / "a" / PARTITION_FOLDER / "00000000000000000410-0000000001.checkpoint"
    values = [value for batch in split_batches(path.read_bytes())[0] for value in record_values(batch)]
    java = split_batches((BUSY / path.name).read_bytes())[0]
    assert values == [value for batch in java for value in record_values(batch)]


def test_a_snapshot_that_the_log_reaches_changes_nothing(tmp_path: Path) -> None:
    rows = log_rows(NODE)
    with_snapshot = [*rows[:61], *snapshot_rows(NODE, AT_61), *rows[61:]]
    assert restore_folder(with_snapshot, tmp_path, IDENTITY).snapshot_id is None
    assert data(restored_batches(tmp_path)[:-1]) == data(log_batches(NODE))


def test_where_records_are_missing_the_log_begins_anew_with_the_snapshot(tmp_path: Path) -> None:
    rows = log_rows(NODE)
    torn = [*rows[:40], *rows[50:61], *snapshot_rows(NODE, AT_61), *rows[61:90]]
    torn += [*rows[100:107], *snapshot_rows(NODE, AT_107), *rows[107:]]
    restored = restore_folder(torn, tmp_path, IDENTITY)
    assert (restored.start_offset, restored.snapshot_id) == (107, AT_107)
    files = {path.name for path in (tmp_path / PARTITION_FOLDER).iterdir()}
    assert {name for name in files if name.endswith((".checkpoint", ".log"))} == {
        "00000000000000000107-0000000003.checkpoint",
        "00000000000000000107.log",
    }
    assert inspect(tmp_path).is_whole


# --- who votes


def started(folder: Path, static: VoterSet = VoterSet()) -> RaftCore:  # noqa: B008 - a frozen value
    """Start a controller's raft core."""
    store = Store.open(folder, node_id=NODE_ID, static_voter_ids=static.ids)
    try:
        core = RaftCore(
            RaftConfig(
                node_id=NODE_ID,
                directory_id=store.properties.directory_id or Uuid.ZERO,
                cluster_id=CLUSTER,
                endpoints=endpoints_of([("CONTROLLER", "localhost", 9093)]),
                listener="CONTROLLER",
                bootstrap_servers=() if static.voters else (("localhost", 9093),),
                static_voters=static,
            ),
            durable_state(store),
            SystemEntropy(),
        )
        core.step(Start(), Now(0, 0))
        return core
    finally:
        store.close()


def test_nobody_else_votes(tmp_path: Path) -> None:
    restored = restore_folder(log_rows(NODE), tmp_path, IDENTITY)
    last = restored_batches(tmp_path)[-1]
    assert (last.header.base_offset, last.header.leader_epoch) == (restored.end_offset, restored.epoch)
    (voters,) = decode_control_batch(last)
    assert isinstance(voters, VotersRecord)
    assert [(v.voter_id, v.voter_directory_id) for v in voters.voters] == [(NODE_ID, IDENTITY.directory_id)]


def test_a_controller_leads_at_once(tmp_path: Path) -> None:
    restored = restore_folder(log_rows(NODE), tmp_path, IDENTITY)
    core = started(tmp_path)
    assert core.is_leader and core.epoch == restored.epoch + 1


def test_a_controller_leads_at_once_behind_a_snapshot(tmp_path: Path) -> None:
    restored = restore_folder(snapshot_rows(NODE, AT_61), tmp_path, IDENTITY)
    core = started(tmp_path)
    assert core.is_leader and core.epoch == restored.epoch + 1
    assert core.voters.ids == (NODE_ID,)


def test_static_voters_are_left_to_the_configuration(tmp_path: Path) -> None:
    rows = log_rows(BUSY)
    dynamic = {KRaftVersionRecord.NAME, VotersRecord.NAME}
    offsets = [row.offset for row in rows if row.type in dynamic]
    assert offsets == [1, 2]
    leader, static = rows[0]._replace(offset=2), rows[3:]
    without = [row._replace(offset=row.offset - 2) for row in [leader, *static]]
    restored = restore_folder(without, tmp_path, IDENTITY)
    assert restored.kraft_version == 0
    assert data(restored_batches(tmp_path)) == data(restored_batches(tmp_path)[: restored.end_offset])
    core = started(tmp_path, static_voters("CONTROLLER", {NODE_ID: ("localhost", 9093)}))
    assert core.is_leader and core.epoch == restored.epoch + 1


# --- rows that don't make a log


def broken(rows: Sequence[RecordRow], offset: int, **changes: Any) -> list[RecordRow]:
    return [row._replace(**changes) if row.offset == offset else row for row in rows]


@pytest.mark.parametrize(
    ("rows", "error", "what"),
    [
        ([], MissingRows, f"there is no row of cluster {CLUSTER}"),
        (log_rows(NODE)[5:], MissingRows, "there is no row of offset 0, and no later snapshot"),
        ([*log_rows(NODE)[:50], *log_rows(NODE)[51:]], MissingRows, "there is no row of offset 50,"),
        (log_rows(NODE) + log_rows(NODE)[-1:], BadRow, "offset 114, epoch 3: the offset was there before"),
        (list(reversed(log_rows(NODE))), MissingRows, "there is no row of offset 0"),
        (broken(log_rows(NODE), 13, cluster="x"), BadRow, f"x, offset 13, .* not of cluster {CLUSTER}"),
        (broken(log_rows(NODE), 13, type="Nothing"), BadRow, "offset 13, .* there is no record 'Nothing'"),
        (broken(log_rows(NODE), 12, json="{"), BadRow, "offset 12, epoch 1: RegisterControllerRecord: "),
        (broken(log_rows(NODE), 12, json="{}"), BadRow, "offset 12, epoch 1: RegisterControllerRecord: "),
        (broken(log_rows(NODE), 12, version=99), BadRow, "offset 12, epoch 1: RegisterControllerRecord: "),
        (broken(log_rows(NODE), 1, version=1), BadRow, "offset 1, epoch 1: KRaftVersionRecord"),
        (snapshot_rows(NODE, AT_61)[1:], BadRow, "up to offset 60, .* is its header, not KRaftVersionRecord"),
        (snapshot_rows(NODE, AT_61)[:-1], BadRow, "up to offset 60, epoch 2: the snapshot has no footer"),
    ],
)
def test_rows_that_make_no_log_are_refused(
    rows: Iterable[RecordRow], error: type[LogError], what: str, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "there", tmp_path / "new"):
        with pytest.raises(error, match=what):
            restore_folder(rows, folder, IDENTITY)
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


@pytest.mark.parametrize(
    ("first", "offset", "what"),
    [
        (0, 115, "offset 115 is asked for, and the rows end at offset 114"),
        (50, 20, "offset 20 is asked for, and the rows begin later"),
    ],
)
def test_a_past_that_the_rows_do_not_reach(first: int, offset: int, what: str, tmp_path: Path) -> None:
    with pytest.raises(NotReached, match=what):
        restore_folder(up_to(log_rows(NODE)[first:], offset), tmp_path / "new", IDENTITY)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_anything_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(AlreadyFormatted, match="is not empty"):
        restore_folder(log_rows(NODE), tmp_path, IDENTITY)
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]


def test_what_was_cut_off_once_is_left_out(tmp_path: Path) -> None:
    """A leader of epoch 3 appended offsets 110 to 114; the log of the leader of epoch 4 ended at 112."""
    rows = log_rows(NODE)
    later = [row._replace(offset=row.offset + 12, epoch=4, timestamp_ms=2**41) for row in rows[100:110]]
    mixed = sorted([*rows, *later], key=lambda row: (row.offset, row.epoch))
    restored = restore_folder(mixed, tmp_path / "a", IDENTITY)
    assert (restored.superseded_count, restored.end_offset, restored.epoch) == (3, 122, 4)
    expected = restore_folder([*rows[:112], *later], tmp_path / "b", IDENTITY)
    assert expected.superseded_count == 0
    assert data(restored_batches(tmp_path / "a")) == data(restored_batches(tmp_path / "b"))
