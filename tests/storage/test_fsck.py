"""``kraft-wire fsck`` finds damage in every file, changes nothing, and repairs what can be repaired."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraft_wire.cli import main
from kraft_wire.cli.fsck import EXIT_CANNOT_LOOK, EXIT_DAMAGED, EXIT_WHOLE
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text, quorum_state_text
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.messages.voters_record import Voter, VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.inspection import NOT_WHOLE, Finding, inspect
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.recovery.vote_guards import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    guard_text,
)
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import change_file, epoch_batches, flip

Capture = pytest.CaptureFixture[str]

JAVA_FOLDER = Path(__file__).parent.parent / "log" / "data" / "java-4.4.0"
NODE_ID = 1
EPOCH = 2
END = 41
SEGMENT_BYTES = 5000


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip flushes, which take most of the time: no power is cut here."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)


def open_store(path: Path, static_voter_ids: tuple[int, ...] = ()) -> Store:
    config = LogConfig(segment_bytes=SEGMENT_BYTES)
    return Store.open(path, node_id=NODE_ID, config=config, static_voter_ids=static_voter_ids)


def voters(*ids: int) -> VotersRecord:
    return VotersRecord(voters=[Voter(voter_id=id) for id in ids])


def written(path: Path, *voter_ids: int) -> Path:
    """A folder of kraft-wire: three segments with index entries, two epochs, two snapshots."""
    path.mkdir(exist_ok=True)
    identity = MetaProperties("cluster", NODE_ID, Uuid(bytes(range(16))))
    (path / "meta.properties").write_text(meta_properties_text(identity))
    store = open_store(path)
    store.write_election_state(ElectionState(2, EPOCH), kraft_version=1)
    if voter_ids:
        store.snapshots.write(
            SnapshotId(0, 0), encode_snapshot(SnapshotId(0, 0), [voters(*voter_ids)], [], 0, 0)
        )
    for batch in [*epoch_batches(0, 1, [1] * 20, 300), *epoch_batches(21, EPOCH, [1] * 19, 300)]:
        store.log.append([batch])
    control = [voters(*voter_ids)] if voter_ids else []
    for end_offset in (10, 15):
        id = SnapshotId(end_offset, 1)
        store.snapshots.write(id, encode_snapshot(id, control, [b"value"], 0, 0))
    store.close()
    assert len(segments(path)) == 3
    return path


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    return written(tmp_path / "data")


@pytest.fixture
def javas(tmp_path: Path) -> Path:
    return Path(shutil.copytree(JAVA_FOLDER, tmp_path / "java"))


def partition(path: Path) -> Path:
    return path / "__cluster_metadata-0"


def segments(path: Path) -> list[Path]:
    return sorted(partition(path).glob("*.log"))


def fingerprint(path: Path) -> dict[str, tuple[str, int]]:
    """Return every file with its contents and its time of change."""
    return {
        str(file.relative_to(path)): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def look(path: Path) -> dict[str, Finding]:
    """Return every file's finding, and check that nothing has changed."""
    before = fingerprint(path)
    found = inspect(path)
    assert fingerprint(path) == before
    return {Path(finding.file).name: finding for finding in found.findings}


def damaged(path: Path) -> list[str]:
    """Return the names of the files that aren't whole."""
    return [name for name, finding in look(path).items() if finding.status in NOT_WHOLE]


def fsck(path: Path, *options: str) -> int:
    return main(["fsck", str(path), *options])


# --- whole folders


def test_a_folder_of_ours_is_whole(ours: Path, capsys: Capture) -> None:
    assert damaged(ours) == []
    assert fsck(ours) == EXIT_WHOLE
    text = capsys.readouterr().out
    assert "Everything is whole." in text
    assert "batches 14, first offset 0, end offset 14, first epoch 1, last epoch 1" in text
    assert "\x1b" not in text


def test_a_folder_of_javas_is_whole(javas: Path) -> None:
    assert damaged(javas) == []
    found = look(javas)
    assert found["00000000000000000000.log"].holds == {
        "batches": 71,
        "first_offset": 0,
        "end_offset": 81,
        "first_epoch": 1,
        "last_epoch": 2,
    }
    assert found["quorum-state"].holds == {"epoch": 3, "leader": 1, "voted": -1}
    assert found["00000000000000000081.snapshot"].status == "unchecked"


def test_the_partition_s_own_folder_will_do(ours: Path) -> None:
    assert fsck(partition(ours)) == EXIT_WHOLE


def test_a_whole_folder_is_not_repaired(ours: Path, capsys: Capture) -> None:
    before = fingerprint(ours)
    assert fsck(ours, "--repair") == EXIT_WHOLE
    assert fingerprint(ours) == before


def test_a_new_folder_is_whole(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    assert fsck(tmp_path) == EXIT_WHOLE
    open_store(tmp_path).close()
    assert damaged(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nothing", "nothing: No such file or directory"),
        ("nothing/__cluster_metadata-0", "No such file or directory"),
        (
            "empty",
            "empty: neither meta.properties nor __cluster_metadata-0 is there: the folder is not formatted",
        ),
        ("file", "file: is a file; give the folder with meta.properties"),
    ],
)
def test_where_there_is_nothing_to_look_at(
    tmp_path: Path, name: str, complaint: str, capsys: Capture
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert fsck(tmp_path / name) == EXIT_CANNOT_LOOK
    err = capsys.readouterr().err
    assert complaint in err and err.count("\n") == 1
    assert "storage format" not in err, "formatting is no rescue"


def test_a_broker_s_folder_is_named_as_one(ours: Path, capsys: Capture) -> None:
    for name in ("topic-0", "topic-1", "a-b-12"):
        (ours / name).mkdir()
    assert fsck(ours) == EXIT_WHOLE
    assert (
        "a broker's folder: only the cluster metadata is checked, not the 3 topic" in capsys.readouterr().out
    )


def test_the_exit_status_tells_of_damage_though_nobody_reads_the_output(ours: Path) -> None:
    for expected in (EXIT_WHOLE, EXIT_DAMAGED):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "kraft_wire", "fsck", str(ours)]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (expected, b"")
        flip(segments(ours)[1], 400)


@pytest.mark.parametrize("is_static", [False, True])
def test_a_voter_with_peers_needs_no_repair(tmp_path: Path, is_static: bool, capsys: Capture) -> None:
    path = written(tmp_path / "data", *(() if is_static else (NODE_ID, 2, 3)))
    if is_static:
        state = quorum_state_text(ElectionState(2, EPOCH), 0, [NODE_ID, 2, 3])
        (partition(path) / "quorum-state").write_text(state)
    for file in partition(path).glob("*15-*.checkpoint"):
        file.unlink()  # else a snapshot would hold what is lost
    flip(segments(path)[1], 400)
    assert fsck(path) == EXIT_DAMAGED
    text = capsys.readouterr().out
    assert f"This node has 2 peers: start it, it fetches offsets 15–{END - 1} from the leader. " in text
    assert "If most voters are gone for good, don't: see `kraft-wire quorum recover`." in text
    assert "--repair" not in text and "would be lost" not in text
    store = open_store(path, (NODE_ID, 2, 3))
    assert (store.log.end_offset, store.lost_below_offset) == (15, END)


def test_a_voter_with_peers_that_lost_its_log_gets_it_from_them(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "data", NODE_ID, 2)
    for file in (*segments(path), *partition(path).glob("*.checkpoint")):
        if "0" * 20 + "-" not in file.name:
            file.unlink()
    assert fsck(path) == EXIT_DAMAGED
    text = capsys.readouterr().out
    assert f"This node has 1 peer: start it, it fetches offsets 0–{END - 1} from the leader. " in text
    store = open_store(path)
    assert (store.log.end_offset, store.lost_below_offset) == (0, END)


def test_what_is_neither_good_nor_bad_is_listed(ours: Path) -> None:
    for name in ("1.tmp", "0.log.corrupt-1", "notes.txt", "00000000000000000041-0000000002.checkpoint.part"):
        (partition(ours) / name).write_text("x")
    found = look(ours)
    assert [found[name].status for name in ("1.tmp", "0.log.corrupt-1", "notes.txt")] == [
        "leftover",
        "aside",
        "unknown",
    ]
    assert fsck(ours) == EXIT_WHOLE


# --- a bit flips


def every_bit(size_bytes: int, count: int) -> list[tuple[int, int]]:
    """Return some positions and bits, among them the first and the last byte."""
    step = max(1, size_bytes // count)
    return [(position, position % 8) for position in [*range(0, size_bytes, step), size_bytes - 1]]


FILES = [
    "__cluster_metadata-0/00000000000000000000.log",
    "__cluster_metadata-0/00000000000000000000.index",
    "__cluster_metadata-0/00000000000000000000.timeindex",
    "__cluster_metadata-0/00000000000000000010-0000000001.checkpoint",
    "__cluster_metadata-0/00000000000000000015-0000000001.checkpoint",
    "__cluster_metadata-0/durable-floor",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "__cluster_metadata-0/partition.metadata",
    "__cluster_metadata-0/lost-below",
    "__cluster_metadata-0/no-vote-up-to",
]


def with_notes(path: Path) -> Path:
    """The same folder, with vote guards."""
    for name in (LOST_BELOW, NO_VOTE_UP_TO):
        (partition(path) / name).write_text(guard_text(END))
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found_in_every_file(ours: Path, name: str) -> None:
    file = with_notes(ours) / name
    before = file.read_bytes()
    assert before, "there is something to flip"
    file.chmod(0o600)
    for position, bit in every_bit(len(before), 40):
        flip(file, position, bit)
        found = inspect(ours)
        bad = [finding.file for finding in found.findings if finding.status in ("torn", "covered", "damaged")]
        assert name in bad, (position, bit)
        assert found.is_whole is False
        file.write_bytes(before)
    assert fsck(ours) == EXIT_WHOLE


@pytest.mark.parametrize("name", ["meta.properties", "__cluster_metadata-0/quorum-state"])
def test_a_flipped_bit_in_what_has_no_checksum_is_found_or_is_another_value(ours: Path, name: str) -> None:
    file = ours / name
    before = file.read_bytes()
    values = look(ours)[file.name].holds
    found = 0
    for position in range(len(before)):
        flip(file, position, position % 8)
        finding = look(ours)[file.name]
        if finding.status == "damaged":
            found += 1
        file.write_bytes(before)
    assert found > len(before) // 4
    assert look(ours)[file.name].holds == values


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".log", ".index", ".timeindex"))])
def test_a_flipped_bit_is_found_in_java_s_files_too(javas: Path, name: str) -> None:
    file = javas / name
    before = file.read_bytes()
    for position, bit in every_bit(len(before), 40) if before else []:
        flip(file, position, bit)
        assert file.name in damaged(javas), (position, bit)
        file.write_bytes(before)
    for segment in segments(javas):
        whole = segment.read_bytes()
        for position in range(0, len(whole), max(1, len(whole) // 60)):
            flip(segment, position)
            # A risen epoch is noticed only in the next batch, which may be in the next segment.
            assert any(name.endswith(".log") for name in damaged(javas)), (segment.name, position)
            segment.write_bytes(whole)


# --- what the report says


def test_the_first_damage_is_named_with_what_it_would_cost(ours: Path, capsys: Capture) -> None:
    flip(segments(ours)[1], 400)
    assert fsck(ours) == EXIT_DAMAGED
    text = capsys.readouterr().out
    assert "damaged    __cluster_metadata-0/00000000000000000014.log" in text
    assert "at byte 370, where offset 15 should be: checksum" in text
    assert f"the log was durable up to offset {END}" in text
    assert f"Offsets 15 to at most {END - 1} would be lost" in text
    assert f"kraft-wire fsck {ours} --repair" in text
    assert "after the damage in 00000000000000000014.log" in text


def test_a_torn_tail_is_named(ours: Path, capsys: Capture) -> None:
    change_file(segments(ours)[-1], lambda data: data.extend(b"\x00" * 7))
    finding = look(ours)[segments(ours)[-1].name]
    assert (finding.status, finding.offset, finding.holds["bytes_after"]) == ("torn", END, 7)
    assert fsck(ours) == EXIT_DAMAGED
    assert "the next start cuts it" in capsys.readouterr().out


def test_a_torn_tail_without_a_floor_may_have_been_acknowledged(ours: Path, capsys: Capture) -> None:
    (partition(ours) / "durable-floor").unlink()
    change_file(segments(ours)[-1], lambda data: data.extend(b"\x00" * 7))
    assert fsck(ours) == EXIT_DAMAGED
    text = capsys.readouterr().out
    assert "it isn't known whether it had been flushed" in text
    assert "never flushed" not in text


def test_an_empty_floor_is_not_whole_and_is_made_anew(ours: Path) -> None:
    floor = partition(ours) / "durable-floor"
    floor.write_bytes(b"")
    assert damaged(ours) == ["durable-floor"]
    store = open_store(ours)
    assert store.recovery.rebuilt == [floor]
    store.close()
    assert damaged(ours) == []


def test_a_log_that_lacks_what_it_had_is_incomplete(ours: Path, capsys: Capture) -> None:
    (partition(ours) / LOST_BELOW).write_text(guard_text(END + 1))
    finding = look(ours)[LOST_BELOW]
    assert finding.status == "incomplete"
    assert f"ends at offset {END}, and had records below {END + 1} once" in finding.problem
    before = fingerprint(ours)
    for options in ((), ("--repair",)):
        assert fsck(ours, *options) == EXIT_DAMAGED
        assert "the node fetches the rest from the leader" in capsys.readouterr().out
    assert fsck(ours, "--json") == EXIT_DAMAGED
    assert msgspec.json.decode(capsys.readouterr().out)["is_whole"] is False
    assert fingerprint(ours) == before


@pytest.mark.parametrize("left", ["quorum-state", "leader-epoch-checkpoint", "00000000000000000000.index"])
def test_a_log_that_is_gone_with_its_floor(ours: Path, left: str, capsys: Capture) -> None:
    for file in partition(ours).iterdir():
        if file.name not in (left, "partition.metadata"):
            file.unlink()
    assert fsck(ours) == EXIT_DAMAGED
    assert "the log is missing" in capsys.readouterr().out


def test_a_segment_that_is_cut_off_below_the_floor(ours: Path) -> None:
    change_file(segments(ours)[-1], lambda data: data.__delitem__(slice(-5, None)))
    assert look(ours)[segments(ours)[-1].name].status == "damaged"


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith(("durable-floor", ".log"))])
@pytest.mark.parametrize("left", [0.0, 0.3, 0.9, -1])
def test_a_file_that_is_cut_off(ours: Path, name: str, left: float) -> None:
    file = with_notes(ours) / name
    file.chmod(0o600)
    data = file.read_bytes()
    kept = data[:-1] if left < 0 else data[: int(len(data) * left)]
    entry = {".index": 8, ".timeindex": 12}.get(file.suffix)
    file.write_bytes(kept)
    if entry and len(kept) % entry == 0:
        return  # an index with fewer entries is valid
    if file.name == "leader-epoch-checkpoint" and left < 0:
        return  # the last newline carries no information
    assert file.name in damaged(ours)


def test_garbage_is_found(ours: Path) -> None:
    for name in FILES:
        file = with_notes(ours) / name
        file.chmod(0o600)
        before = file.read_bytes()
        file.write_bytes(bytes(n * 7 % 251 for n in range(len(before))))
        assert file.name in damaged(ours)
        file.write_bytes(before)


def test_missing_files(ours: Path) -> None:
    for name in ("quorum-state", "leader-epoch-checkpoint", "00000000000000000000.index"):
        (partition(ours) / name).unlink()
    (ours / "meta.properties").unlink()
    assert sorted(damaged(ours)) == [
        "00000000000000000000.index",
        "leader-epoch-checkpoint",
        "meta.properties",
        "quorum-state",
    ]


def test_a_vote_that_is_gone_before_anything_was_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    store = open_store(tmp_path)
    store.write_election_state(ElectionState(-1, 7, voted_id=2), kraft_version=0)
    store.close()
    assert damaged(tmp_path) == []
    (partition(tmp_path) / "quorum-state").unlink()
    assert damaged(tmp_path) == ["quorum-state"]
    open_store(tmp_path).close()
    assert damaged(tmp_path) == [], "it is remembered elsewhere now"


def test_a_log_without_the_snapshot_that_it_needs(ours: Path, capsys: Capture) -> None:
    segments(ours)[0].unlink()
    for file in partition(ours).glob("*.checkpoint"):
        file.unlink()
    assert fsck(ours) == EXIT_DAMAGED
    assert "begins at offset 14, and no whole snapshot" in capsys.readouterr().out


def test_json_says_the_same(ours: Path, capsys: Capture) -> None:
    flip(segments(ours)[1], 400)
    assert fsck(ours, "--json") == EXIT_DAMAGED
    said: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    assert (said["is_whole"], said["repaired"]) == (False, None)
    assert said["inspection"]["lost_offsets"] == [15, END]
    (bad,) = [finding for finding in said["inspection"]["findings"] if finding["status"] == "damaged"]
    assert (bad["position"], bad["offset"]) == (370, 15)


def test_a_terminal_gets_colours(ours: Path) -> None:
    command = [sys.executable, "-m", "kraft_wire.cli", "fsck", str(ours)]
    script = f"import pty, sys; sys.exit(pty.spawn({command!r}))"
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, check=False)
    assert done.returncode == 0
    assert b"\x1b[32mwhole" in done.stdout


def test_damage_that_a_snapshot_makes_up_for_costs_nothing(ours: Path, capsys: Capture) -> None:
    flip(segments(ours)[0], 400)
    found = look(ours)
    assert found[segments(ours)[0].name].status == "covered"
    assert [found[segment.name].status for segment in segments(ours)[1:]] == ["whole", "whole"]
    assert fsck(ours) == EXIT_DAMAGED
    text = capsys.readouterr().out
    assert "Only history below offset 14 is lost: a snapshot holds the state at that offset." in text
    assert "would be lost" not in text
    rest = b"".join(segment.read_bytes() for segment in segments(ours)[1:])
    text = repaired(ours, capsys)
    assert "00000000000000000000.log.corrupt-1" in text and "the log now starts at offset 14" in text
    assert b"".join(segment.read_bytes() for segment in segments(ours)) == rest
    store = open_store(ours, (1, 2, 3))
    assert (store.log.start_offset, store.log.end_offset, store.lost_below_offset) == (14, END, None)


def test_a_snapshot_within_the_damaged_segment_begins_one_of_its_own(ours: Path, capsys: Capture) -> None:
    whole = segments(ours)[1].read_bytes()
    store = open_store(ours)
    store.snapshots.write(SnapshotId(20, 1), encode_snapshot(SnapshotId(20, 1), [], [b"value"], 0, 0))
    store.close()
    flip(segments(ours)[1], 400)
    found = inspect(ours)
    statuses = {Path(finding.file).name: finding.status for finding in found.findings}
    assert [statuses[segment.name] for segment in segments(ours)] == ["whole", "covered", "whole"]
    assert (found.history_lost_below, found.lost_offsets) == (20, None)
    repaired(ours, capsys)
    assert [int(segment.stem) for segment in segments(ours)] == [20, 28]
    assert whole.endswith(segments(ours)[0].read_bytes())


def test_json_says_that_nothing_is_lost(ours: Path, capsys: Capture) -> None:
    flip(segments(ours)[0], 400)
    assert fsck(ours, "--json") == EXIT_DAMAGED
    said: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)["inspection"]
    assert (said["history_lost_below"], said["lost_offsets"]) == (14, None)


# --- a running controller

HOLD = """
import sys
from pathlib import Path
from kraft_wire.log.batch import encode_batch
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.store import Store
store = Store.open(Path(sys.argv[1]), node_id=1, config=LogConfig(segment_bytes=5000))
print("open", flush=True)
while not store.log.end_offset > 20_000:
    store.log.append([encode_batch(store.log.end_offset, 2, store.log.end_offset, [b"x" * 50])])
sys.stdin.read()
"""


def test_the_folder_of_a_running_controller_is_looked_into(ours: Path, capsys: Capture) -> None:
    command = [sys.executable, "-c", HOLD, str(ours)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == b"open\n"
        for _ in range(5):
            assert fsck(ours) == EXIT_WHOLE
            assert f"Process {held.pid} is working on it." in capsys.readouterr().out
        flip(segments(ours)[0], 400)
        assert fsck(ours) == EXIT_DAMAGED
        assert f"Stop process {held.pid} before" in capsys.readouterr().out
        before = segments(ours)[0].read_bytes()
        assert fsck(ours, "--repair") == EXIT_DAMAGED
        assert f"process {held.pid} holds this lock" in capsys.readouterr().err
        assert segments(ours)[0].read_bytes() == before
        held.kill()


# --- repairs


def repaired(path: Path, capsys: Capture, left: int = EXIT_WHOLE) -> str:
    """Repair; check that everything left is whole, and that another repair changes nothing."""
    assert fsck(path, "--repair") == left
    text = capsys.readouterr().out
    before = fingerprint(path)
    assert fsck(path, "--repair") == left
    assert fsck(path) == left
    assert fingerprint(path) == before
    return text


def test_damage_is_cut_out_and_kept(ours: Path, capsys: Capture) -> None:
    log = b"".join(file.read_bytes() for file in segments(ours))
    flip(segments(ours)[1], 400)
    text = repaired(ours, capsys)
    assert f"Offsets 15 to at most {END - 1} were lost" in text
    left = b"".join(file.read_bytes() for file in segments(ours))
    kept = b"".join(file.read_bytes() for file in sorted(partition(ours).glob("*.log.corrupt-1")))
    assert log.startswith(left) and len(left) + len(kept) == len(log)
    assert "00000000000000000014.log.corrupt-1" in text


def test_java_s_log_is_cut_as_well(javas: Path, capsys: Capture) -> None:
    flip(segments(javas)[1], segments(javas)[1].stat().st_size - 200)
    repaired(javas, capsys)
    store = open_store(javas)
    assert 107 <= store.log.end_offset < 115
    store.close()


@pytest.mark.parametrize("name", [*FILES, "__cluster_metadata-0/quorum-state"])
@pytest.mark.parametrize("damage", [lambda data: data.__setitem__(slice(4, 12), b"~" * 8)], ids=["garbage"])
def test_every_file_can_be_repaired(
    ours: Path, name: str, damage: Callable[[bytearray], None], capsys: Capture
) -> None:
    file = with_notes(ours) / name
    file.chmod(0o600)
    if file.suffix == ".log":
        flip(file, 30)
        assert fsck(ours, "--repair") == EXIT_WHOLE  # a snapshot covers what is cut off
        return
    change_file(file, damage)
    repaired(ours, capsys)


def test_a_voter_that_is_alone_goes_on_with_what_is_left(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "alone", NODE_ID)
    flip(segments(path)[1], 400)
    repaired(path, capsys)
    store = open_store(path)
    assert (store.log.end_offset, store.lost_below_offset) == (15, None)


def test_a_voter_with_peers_has_to_get_it_back(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "peers", 1, 2, 3)
    flip(segments(path)[1], 400)
    repaired(path, capsys, EXIT_DAMAGED)
    assert damaged(path) == [LOST_BELOW]
    store = open_store(path)
    assert (store.log.end_offset, store.lost_below_offset) == (15, END)


def test_voters_that_only_the_damaged_part_names_count(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "joined", NODE_ID)
    store = open_store(path)
    store.log.append([encode_control_batch(END, EPOCH, 0, [voters(1, 2)])])
    store.close()
    flip(segments(path)[1], 400)
    repaired(path, capsys, EXIT_DAMAGED)
    store = open_store(path)
    assert (store.log.end_offset, store.lost_below_offset) == (15, END + 1)


def test_where_the_log_names_no_voters_the_next_start_knows(ours: Path, capsys: Capture) -> None:
    flip(segments(ours)[1], 400)
    repaired(ours, capsys)
    assert (partition(ours) / LOST_BELOW_UNLESS_ALONE).exists()
    copy = Path(shutil.copytree(ours, ours.parent / "copy"))
    assert open_store(copy, (NODE_ID,)).lost_below_offset is None
    assert open_store(ours, (1, 2, 3)).lost_below_offset == END


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: change_file(path, bytearray.clear)], ids=["gone", "empty"]
)
def test_without_meta_properties_a_repair_is_neither_advised_nor_begun(
    ours: Path, damage: Callable[[Path], None], capsys: Capture
) -> None:
    damage(ours / "meta.properties")
    flip(segments(ours)[1], 400)
    before = fingerprint(ours)
    assert fsck(ours) == EXIT_DAMAGED
    said = capsys.readouterr().out
    assert "--repair" not in said
    assert "First restore or correct meta.properties" in said
    assert fsck(ours, "--repair") == EXIT_DAMAGED
    assert "meta.properties" in capsys.readouterr().err
    assert fingerprint(ours) == before


def test_a_repair_that_would_leave_nothing_is_refused(ours: Path, capsys: Capture) -> None:
    for file in partition(ours).glob("*.checkpoint"):
        file.unlink()
    (partition(ours) / "quorum-state").write_text(quorum_state_text(ElectionState(NODE_ID, EPOCH), 1))
    flip(segments(ours)[0], 30)
    before = fingerprint(ours)
    assert fsck(ours, "--repair") == EXIT_DAMAGED
    assert "restore the folder from a copy" in capsys.readouterr().err
    assert {name: found[0] for name, found in fingerprint(ours).items() if name in before} == {
        name: found[0] for name, found in before.items()
    }


# --- anything


DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.sampled_from(["flip", "cut", "zero", "remove", "add"]),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("sample") / "data", 1, 2, 3)


def _damage(path: Path, which: int, where: int, how: str) -> None:
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "meta.properties")
    file = files[which % len(files)]
    file.chmod(0o600)
    data = bytearray(file.read_bytes())
    at = where % len(data) if data else 0
    if how == "remove":
        file.unlink()
        return
    if how == "add":
        data += bytes(n % 256 for n in range(where % 300))
    elif how == "cut":
        del data[at:]
    elif how == "zero":
        data[at : at + 100] = bytes(len(data[at : at + 100]))
    elif data:
        data[at] ^= 1 << (where % 8)
    file.write_bytes(data)


@given(damages=DAMAGE)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_damaged_nothing_changes_without_repair_and_a_repair_holds(
    sample: Path, tmp_path_factory: pytest.TempPathFactory, damages: list[tuple[int, int, str]]
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "data"
    shutil.copytree(sample, path)
    for which, where, how in damages:
        _damage(path, which, where, how)
    before = fingerprint(path)
    status = fsck(path)
    assert fingerprint(path) == before
    after_repair = fsck(path, "--repair")
    if status == EXIT_WHOLE:
        assert fingerprint(path) == before
    once = fingerprint(path)
    assert fsck(path, "--repair") == after_repair
    assert fingerprint(path) == once
    if after_repair == EXIT_WHOLE:
        open_store(path).close()
    shutil.rmtree(path)
