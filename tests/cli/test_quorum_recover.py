"""quorum recover: folders of real controllers whose majority is gone, up to a controller that leads again."""

from __future__ import annotations

import errno
import os
import pty
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compat.harness.waiting import wait_until
from kraft_wire.cli import main
from kraft_wire.cli.quorum.recover.files import COLLECTION_VERSION, Collection, read_collection, read_plan
from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.log.files import PARTITION_FOLDER, RECOVERY_PLAN, meta_properties_text
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.recovery.applying import Marker
from kraft_wire.raft.recovery.evidence import PastRecovery
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import DiskFailed, FolderLocked
from kraft_wire.storage.folder import open_folder, read_meta_properties
from kraft_wire.storage.folder_copy import COPY_MARK, CopyMark
from kraft_wire.storage.inspection.evidence import read_evidence
from kraft_wire.storage.planned_recovery import apply_plan, backup_path, is_applied
from kraft_wire.storage.quorum_state import read_election_state, write_election_state
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, VoteGuard
from kraft_wire.storage.recovery_marker import read_marker
from kraft_wire.storage.store import Store
from tests.support.controller_process import (
    CLUSTER_ID,
    COMMAND,
    GIVE_UP_S,
    NODE_ID,
    ControllerProcess,
    formatted,
)
from tests.support.live_quorum import Controllers, three_controllers

Capture = pytest.CaptureFixture[str]
WRITTEN = 12
OTHER_CLUSTER = "0Hqdn6mPQ5GrP21WaEIN5Q"


class Lost:
    """The folder of a survivor, a copy for each test, and the files of a recovery beside it."""

    def __init__(self, source: Path, tmp_path: Path) -> None:
        self.folder = tmp_path / "data"
        shutil.copytree(source, self.folder)
        self.collected = tmp_path / "collected.json"
        self.plan = tmp_path / "plan.json"

    @property
    def marker(self) -> Path:
        return self.folder / PARTITION_FOLDER / RECOVERY_PLAN

    def make_plan(self, *options: str) -> int:
        assert recover("collect", self.folder, "--output", self.collected) == 0
        return recover("plan", self.collected, "--output", self.plan, *options)

    def apply(self, *options: str | Path) -> int:
        return recover("apply", self.plan, self.folder, "--cluster-id", CLUSTER_ID, "--yes", *options)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of one of three controllers that were killed; nothing listens at their addresses."""
    with three_controllers(tmp_path_factory.mktemp("lost")) as controllers:
        controllers.write(range(WRITTEN))
        leader = controllers.leader()
        for id in list(controllers.processes):
            controllers.kill(id)
        yield controllers.folder(leader)


@pytest.fixture
def lost(survivor: Path, tmp_path: Path) -> Lost:
    return Lost(survivor, tmp_path)


def recover(*words: str | Path) -> int:
    return main(["quorum", "recover", *map(str, words)])


def ghosts(address: str, capsys: Capture) -> list[int]:
    """The registered controllers that are no voters and don't fetch, by quorum status."""
    return [
        int(note.split()[1]) for note in notes(address, capsys) if "is no voter, and doesn't fetch" in note
    ]


def all_registered(address: str, capsys: Capture) -> bool:
    """Whether all voters are registered; that takes a while after a start."""
    return not any("is not registered" in note for note in notes(address, capsys))


def notes(address: str, capsys: Capture) -> list[str]:
    """The notes of quorum status."""
    capsys.readouterr()
    assert main(["quorum", "status", "--json", "--bootstrap-controller", address]) == 0
    found: list[str] = msgspec.json.decode(capsys.readouterr().out)["notes"]
    return found


def quorum_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "quorum"
    folder.mkdir()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files; an empty lock file doesn't count."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_lost_majority_leads_again_with_what_it_had(tmp_path: Path, capsys: Capture) -> None:
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        controllers.write(range(WRITTEN))
        survivor = controllers.leader()
        address = controllers.addresses[survivor]
        wait_until(lambda: all_registered(address, capsys), "the registration of all controllers")
        for id in list(controllers.processes):
            controllers.kill(id)
        folder = controllers.folder(survivor)
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        assert recover("collect", folder, "--output", collected) == 0
        assert recover("plan", collected, "--output", plan) == 0
        assert recover("verify", folder) == 9
        assert recover("apply", plan, folder, "--cluster-id", CLUSTER_ID, "--yes") == 0
        assert recover("verify", folder) == 0
        before = batches_on_disk_of(folder)
        with controllers.start_one(survivor).client() as client:
            assert client.config("log.retention.ms") == str(1_000_000 + WRITTEN - 1)
            client.set_config("log.retention.ms", "77")
        gone = [id for id in controllers.addresses if id != survivor]
        assert ghosts(address, capsys) == gone
        assert recover("verify", folder) == 0
        assert "The node has run since" in capsys.readouterr().out
        controllers.kill(survivor)
        assert recover("apply", plan, folder, "--cluster-id", CLUSTER_ID, "--yes") == 0
        assert batches_on_disk_of(folder)[: len(before)] == before


def batches_on_disk_of(folder: Path) -> list[bytes]:
    data = b"".join(path.read_bytes() for path in sorted((folder / PARTITION_FOLDER).glob("*.log")))
    return [batch.data for batch in split_batches(data)[0]]


def test_a_folder_that_an_earlier_recovery_left_behind_isn_t_kept(tmp_path: Path, capsys: Capture) -> None:
    """The survivor's folder remembers that recovery. Its quorum has a second voter, which is lost, too."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        controllers.write(range(WRITTEN))
        survivor = controllers.leader()
        for id in list(controllers.processes):
            controllers.kill(id)
        folders = {id: controllers.folder(id) for id in controllers.addresses}
        left, others = folders.pop(survivor), sorted(folders)
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        assert recover("collect", left, "--output", collected) == 0
        assert recover("plan", collected, "--output", plan) == 0
        assert recover("apply", plan, left, "--cluster-id", CLUSTER_ID, "--yes") == 0
        controllers.start_one(survivor)
        assert controllers.leader() == survivor
        controllers.kill(survivor)
        made = read_plan(plan)
        assert read_evidence(left).recovery == PastRecovery(made.hash, made.epoch, made.base_offset)

        again = tmp_path / "again.json"
        assert recover("collect", left, *folders.values(), "--output", again) == 0
        shown = read_collection(again)[0].folders
        lost_voter = msgspec.structs.replace(shown[0].voters[0], id=9, directory_id=str(Uuid.ONE))
        change = msgspec.structs.replace(shown[0].history[-1], voters=(*shown[0].voters, lost_voter))
        shown[0] = msgspec.structs.replace(shown[0], history=(*shown[0].history, change))
        again.write_bytes(msgspec.json.encode(Collection(COLLECTION_VERSION, 0, shown)))
        capsys.readouterr()
        assert recover("plan", again, "--output", tmp_path / "no.json", "--keep", str(others[0])) == 6
        assert f"since the recovery that the folder of node {survivor} remembers" in capsys.readouterr().err
        assert recover("plan", again, "--output", tmp_path / "second.json") == 0
        assert read_plan(tmp_path / "second.json").leader_id == survivor


def test_apply_keeps_a_copy_of_what_it_changes(lost: Lost) -> None:
    before = contents(lost.folder)
    assert lost.make_plan() == 0
    assert contents(lost.folder) == before, "collect and plan change nothing"
    assert lost.apply() == 0
    [copy] = lost.folder.parent.glob("data.before-recovery-*")
    assert copy_contents(copy) == before
    assert lost.apply() == 0
    assert copy_contents(copy) == before


def copy_contents(copy: Path) -> dict[str, bytes]:
    """The bytes of a copy's files, without the one that says what it is a copy of."""
    files = contents(copy)
    assert files.pop(COPY_MARK)
    return files


def test_apply_keeps_the_copy_where_the_operator_wants_it(
    lost: Lost, tmp_path: Path, capsys: Capture
) -> None:
    leftover = lost.folder / PARTITION_FOLDER / "00000000000000000000.log.tmp"
    leftover.write_bytes(b"removed when a node starts")
    before = contents(lost.folder)
    assert lost.make_plan() == 0
    copy = tmp_path / "copies" / "data"
    assert lost.apply("--backup", copy) == 6
    assert f"there is no folder {copy.parent} for the copy" in capsys.readouterr().err
    copy.parent.mkdir()
    assert lost.apply("--backup", copy) == 0
    assert f"a copy is kept in {copy}" in capsys.readouterr().out
    assert copy_contents(copy) == before, "it was made before anything changed"
    assert not leftover.exists()


@pytest.mark.parametrize("is_empty", [True, False], ids=["an empty folder", "another folder's copy"])
def test_apply_takes_nothing_else_for_its_copy(
    lost: Lost, tmp_path: Path, capsys: Capture, is_empty: bool
) -> None:
    assert lost.make_plan() == 0
    before = contents(lost.folder)
    copy = tmp_path / "copy"
    copy.mkdir()
    if not is_empty:
        (copy / COPY_MARK).write_bytes(msgspec.json.encode(CopyMark("another plan", NODE_ID, "")))
    for place, problem in (
        (copy, f"{copy} exists, and isn't the copy that this plan made of {lost.folder}: keep the"),
        (lost.folder, f"{lost.folder} exists, and isn't the copy"),
        (lost.folder / PARTITION_FOLDER / "copy", f"is inside {lost.folder}: keep the copy somewhere else"),
    ):
        assert lost.apply("--backup", place) == 6
        assert problem in capsys.readouterr().err
    assert contents(lost.folder) == before


def test_a_copy_is_made_of_a_folder_that_nobody_works_on(lost: Lost) -> None:
    assert lost.make_plan() == 0
    plan = read_plan(lost.plan)
    copy = backup_path(lost.folder, plan)
    node_id = read_meta_properties(lost.folder).node_id
    folder = open_folder(lost.folder, node_id=node_id)
    try:
        with pytest.raises(FolderLocked):
            apply_plan(plan, lost.folder, copy)
    finally:
        folder.close()
    assert [path.name for path in copy.parent.glob("*recovery*")] == []


def test_a_second_attempt_keeps_the_first_one_s_copy(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert lost.make_plan() == 0
    before = contents(lost.folder)
    copy = interrupted(lost, monkeypatch)
    assert contents(lost.folder) != before
    assert lost.apply() == 0
    assert f"the copy of the first attempt stays in {copy}" in capsys.readouterr().out
    assert copy_contents(copy) == before


def interrupted(lost: Lost, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Apply the plan up to a crash after its batch was flushed; returns the path of the copy."""

    def crash(store: Store) -> None:
        raise Crash

    plan = read_plan(lost.plan)
    copy = backup_path(lost.folder, plan)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "forget_loss", crash)
        with pytest.raises(Crash):
            apply_plan(plan, lost.folder, copy)
    return copy


def test_a_node_that_ran_after_a_crash_of_apply_has_all_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Only the marker is missing. It says so after the next attempt; verify doesn't need it."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        survivor = controllers.leader()
        for id in list(controllers.processes):
            controllers.kill(id)
        lost = Lost(controllers.folder(survivor), tmp_path)
        lost.folder = controllers.folder(survivor)
        assert lost.make_plan() == 0
        interrupted(lost, monkeypatch)
        assert recover("verify", lost.folder) == 9
        controllers.start_one(survivor)
        assert controllers.leader() == survivor
        controllers.kill(survivor)
        assert recover("verify", lost.folder) == 0
        assert marked(lost).state == "begun"
        for said in ("Only its marker was finished", "Nothing was changed"):
            assert lost.apply() == 0
            assert f"the plan was applied before. {said}." in capsys.readouterr().out
            assert marked(lost).state == "applied"
        assert recover("verify", lost.folder) == 0


def marked(lost: Lost) -> Marker:
    marker = read_marker(lost.folder)
    assert marker is not None
    return marker


def test_a_survivor_that_lost_records_says_so(lost: Lost, capsys: Capture) -> None:
    """Without the guard the node would be the newest log's without a word about the records after it."""
    partition = lost.folder / PARTITION_FOLDER
    end = read_evidence(lost.folder).log_end_offset
    VoteGuard(partition / LOST_BELOW, Disk()).raise_to(end + 30)
    assert lost.make_plan() == 0
    shown = capsys.readouterr().out
    assert f"log end {end}, cut: it had records below {end + 30} once" in shown
    assert f"Lost: offsets {end} to {end + 29}, which a log had until damage took them" in shown
    assert lost.apply() == 0
    shown = capsys.readouterr().out
    assert f"lost-below is removed: the node votes again, without what it lost, offsets {end} to" in shown
    assert not (partition / LOST_BELOW).exists()
    assert recover("verify", lost.folder) == 0


def test_damage_that_a_snapshot_covers_costs_no_vote(tmp_path: Path, capsys: Capture) -> None:
    """One disk of three is lost, and another one has such damage: the two that are left elect a leader."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        leader, other = damage_the_leader(controllers, 60, lambda _: 900)
        collected = tmp_path / "collected.json"
        folders = [controllers.folder(id) for id in (leader, other)]
        assert recover("collect", *folders, "--output", collected) == 0
        assert capsys.readouterr().err == ""
        assert recover("plan", collected, "--output", tmp_path / "plan.json") == 6
        assert "a majority of the 3 voters is left: nodes" in capsys.readouterr().err
        for id in (leader, other):
            controllers.start_one(id)
        assert controllers.leader() in (leader, other)


def test_a_damaged_survivor_is_repaired_before_the_other_one_goes_on(tmp_path: Path, capsys: Capture) -> None:
    """One disk of three is lost, another one is damaged near its end, and doesn't vote after the repair."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        damaged, other = damage_the_leader(controllers, WRITTEN, lambda size: size - 400)
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        folders = [controllers.folder(id) for id in (damaged, other)]
        assert recover("collect", *folders, "--output", collected) == 0
        assert recover("plan", collected, "--output", plan) == 6
        assert f"run `kraft-wire fsck {folders[0]} --repair` and collect again" in capsys.readouterr().err
        assert recover("plan", collected, "--output", plan, "--without", str(damaged)) == 0
        assert f"Left out of account, by --without: node {damaged}" in capsys.readouterr().out
        plan.unlink()

        main(["fsck", str(folders[0]), "--repair"])
        collected.unlink()
        assert recover("collect", *folders, "--output", collected) == 0
        assert recover("plan", collected, "--output", plan) == 0
        assert ", cut: it had records below " in capsys.readouterr().out
        made = read_plan(plan)
        assert (made.leader_id, made.loss.cut) == (other, None)
        assert recover("apply", plan, folders[1], "--cluster-id", CLUSTER_ID, "--yes") == 0
        controllers.start_one(other)
        assert controllers.leader() == other


BROKER_ID = 11


def broker_folder(lost: Lost, records: int) -> Path:
    """The folder of a broker that has all of the survivor's log, and this many records after it."""
    folder = lost.folder.parent / "broker"
    shutil.copytree(lost.folder, folder)
    properties = msgspec.structs.replace(
        read_meta_properties(folder), node_id=BROKER_ID, directory_id=Uuid(bytes([BROKER_ID] * 16))
    )
    (folder / "meta.properties").write_text(meta_properties_text(properties))
    (folder / "a-topic-0").mkdir()
    store = Store.open(folder, node_id=BROKER_ID)
    try:
        record = encode_metadata_record(RegisterBrokerRecord(broker_id=BROKER_ID), 0)
        end, epoch = store.log.end_offset, read_evidence(folder).last_epoch
        store.log.append([encode_batch(end, epoch, 1_800_000_000_000, [record] * records)])
        store.log.flush()
    finally:
        store.close()
    return folder


def test_a_broker_that_knows_more_is_evidence_only(lost: Lost, capsys: Capture) -> None:
    end = read_evidence(lost.folder).log_end_offset
    broker = broker_folder(lost, 3)
    assert recover("collect", lost.folder, broker, "--output", lost.collected) == 0
    assert f"{broker}: node {BROKER_ID} (broker), last epoch " in capsys.readouterr().out
    survivor = read_evidence(lost.folder).node_id
    collected = msgspec.json.decode(lost.collected.read_bytes())
    assert collected["roles"] == {str(survivor): "controller", str(BROKER_ID): "broker"}
    assert recover("plan", lost.collected, "--output", lost.plan) == 0
    shown = capsys.readouterr().out
    assert f"node {BROKER_ID} (broker), last epoch " in shown
    assert f"Lost: offsets {end} to {end + 2}, which broker {BROKER_ID} has; they may have been" in shown
    assert f"restart broker {BROKER_ID} when the controllers run; its folder stays as it is" in shown
    assert f"node {BROKER_ID} on its old" not in shown
    assert read_plan(lost.plan).leader_id == survivor


def test_a_broker_may_run_while_its_folder_is_collected(lost: Lost) -> None:
    broker = broker_folder(lost, 3)
    words = ["quorum", "recover", "collect", str(lost.folder), str(broker), "--output", str(lost.collected)]
    running = open_folder(broker, node_id=BROKER_ID)
    try:
        done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=GIVE_UP_S)
    finally:
        running.close()
    assert (done.returncode, done.stderr) == (0, "")
    pids = {each["node_id"]: each["controller_pid"] for each in collected_folders(lost)}
    assert pids[BROKER_ID] == os.getpid()
    assert recover("plan", lost.collected, "--output", lost.plan) == 0


def collected_folders(lost: Lost) -> list[dict[str, Any]]:
    folders: list[dict[str, Any]] = msgspec.json.decode(lost.collected.read_bytes())["folders"]
    return folders


def test_a_registration_of_a_newer_version_is_named(lost: Lost, capsys: Capture) -> None:
    """The node goes on. Only a newer release can lead with such a record."""
    found = read_evidence(lost.folder)
    newer = bytearray(encode_metadata_record(RegisterBrokerRecord(broker_id=BROKER_ID), 0))
    newer[2] = 99
    store = Store.open(lost.folder, node_id=found.node_id)
    try:
        end = store.log.end_offset
        store.log.append([encode_batch(end, found.last_epoch, 1_800_000_000_000, [bytes(newer)])])
        store.log.flush()
    finally:
        store.close()
    assert lost.make_plan() == 0
    shown = capsys.readouterr()
    named = (
        f"offset {end} holds a RegisterBrokerRecord that can't be decoded: RegisterBrokerRecord version 99"
    )
    assert f"warning: {lost.folder}: {named}" in shown.err
    assert f"In {lost.folder}, {named}" in shown.out
    assert "Start the controllers with a release that knows them" in shown.out
    assert lost.apply() == 0
    assert recover("verify", lost.folder) == 0


def damage_the_leader(
    controllers: Controllers, records: int, position_in: Callable[[int], int]
) -> tuple[int, int]:
    """Kill all controllers, and damage the log of the leader at a position that its size gives. Returns its
    id and that of a survivor whose log is as long."""
    controllers.write(range(records))
    leader = controllers.leader()
    other = next(id for id in controllers.addresses if id != leader)
    folders = [controllers.folder(id) for id in (leader, other)]
    wait_until(lambda: len({read_evidence(path).log_end_offset for path in folders}) == 1, "equal logs")
    for id in list(controllers.processes):
        controllers.kill(id)
    [segment] = (folders[0] / PARTITION_FOLDER).glob("*.log")
    data = bytearray(segment.read_bytes())
    data[position_in(len(data.rstrip(b"\0")))] ^= 0xFF
    segment.write_bytes(data)
    return leader, other


def test_apply_asks_and_changes_nothing_without_an_answer(lost: Lost, capsys: Capture) -> None:
    assert lost.make_plan() == 0
    before = contents(lost.folder)
    capsys.readouterr()
    assert recover("apply", lost.plan, lost.folder, "--cluster-id", CLUSTER_ID) == 8
    shown = capsys.readouterr()
    [then] = [line for line in shown.out.splitlines() if line.startswith("Voters then: ")]
    assert then.count(" at CONTROLLER://") == 1
    assert shown.err == (
        "kraft-wire: nothing was changed: this command asks; run it on a terminal, or give --yes\n"
    )
    assert contents(lost.folder) == before


@pytest.mark.parametrize(("answer", "exit_code"), [("yes", 0), ("no", 8), ("", 8)])
def test_apply_takes_an_answer_from_a_terminal(lost: Lost, answer: str, exit_code: int) -> None:
    assert lost.make_plan() == 0
    words = ["quorum", "recover", "apply", str(lost.plan), str(lost.folder), "--cluster-id", CLUSTER_ID]
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = subprocess.run([*COMMAND, *words], stdin=theirs, capture_output=True, timeout=GIVE_UP_S)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == exit_code, done.stderr
    assert recover("verify", lost.folder) == (9 if exit_code else 0)


def test_verify_doesn_t_take_an_earlier_plan_for_the_one_that_failed(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The folder remembers the earlier plan, and holds what that one says."""
    assert lost.make_plan() == 0
    assert lost.apply() == 0
    earlier = read_plan(lost.plan)
    lost.collected.unlink()
    lost.plan = lost.plan.with_name("second.json")
    assert recover("collect", lost.folder, "--output", lost.collected) == 0
    address = f"{earlier.leader_id}@127.0.0.1:{earlier.voters[0].endpoints[0].port}"
    assert recover("plan", lost.collected, "--output", lost.plan, "--endpoints", address) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "write", full)
        assert lost.apply() == 1
    capsys.readouterr()
    assert recover("verify", lost.folder) == 0
    assert f"plan {earlier.hash[:12]} (made 20" in capsys.readouterr().out
    assert recover("verify", lost.folder, "--plan", lost.plan) == 9
    said = (
        f"plan {read_plan(lost.plan).hash[:12]} isn't applied. The folder remembers plan {earlier.hash[:12]}"
    )
    assert said in capsys.readouterr().err
    assert lost.apply() == 0
    check = f"Check it with `kraft-wire quorum recover verify {lost.folder} --plan {lost.plan}`."
    assert check in capsys.readouterr().out
    assert recover("verify", lost.folder, "--plan", lost.plan) == 0


def full(disk: Disk, fd: int, data: bytes, position: int, path: Path) -> None:
    raise DiskFailed(path, "a write", OSError(errno.EFBIG, "File too large"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("kraft_wire.cli.quorum.recover.apply.survey", "interrupted: nothing was changed"),
        ("kraft_wire.storage.folder_copy.FolderCopy.make", "interrupted: nothing of the plan was written to"),
        ("kraft_wire.storage.store.Store.forget_loss", "interrupted: the plan may be written in part to"),
    ],
)
def test_ctrl_c_says_what_was_written(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, capsys: Capture, place: str, said: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    assert lost.make_plan() == 0
    with monkeypatch.context() as patch:
        patch.setattr(place, interrupted)
        assert lost.apply() == 130
    assert capsys.readouterr().err.startswith(f"kraft-wire: {said}")
    assert lost.apply() == 0
    assert recover("verify", lost.folder, "--plan", lost.plan) == 0


def test_apply_names_the_offset_of_the_voters(lost: Lost, capsys: Capture) -> None:
    assert lost.make_plan() == 0
    assert lost.apply() == 0
    offset = read_evidence(lost.folder).history[-1].offset
    assert f"  the log gets the new voters at offset {offset}" in capsys.readouterr().out.splitlines()


def test_collect_takes_a_folder_once(lost: Lost, capsys: Capture) -> None:
    assert recover("collect", lost.folder, f"{lost.folder}/.", "--output", lost.collected) == 2
    assert f"{lost.folder} is given twice" in capsys.readouterr().err
    assert not lost.collected.exists()


def test_an_output_in_no_folder_is_named_as_it_was_given(lost: Lost, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "no" / "c.json"
    assert recover("collect", lost.folder, "--output", output) == 1
    assert f"--output {output}: there is no folder {output.parent}" in capsys.readouterr().err


def test_a_static_quorum_moves_by_its_configuration(tmp_path: Path, capsys: Capture) -> None:
    lost = Lost(static_folder(tmp_path), tmp_path)
    assert lost.make_plan() == 6, "the only voter is a majority"
    lost.collected.unlink()
    assert lost.make_plan("--endpoints", "3000@new:9093") == 0
    shown = capsys.readouterr().out
    assert "set controller.quorum.voters=3000@new:9093 in" in shown
    assert "Nothing is lost: a majority of the voters is left." in shown
    before = contents(lost.folder)
    assert lost.apply() == 6
    assert "this plan changes no folder: set controller.quorum.voters=3000@new" in capsys.readouterr().err
    assert contents(lost.folder) == before


def static_settings() -> dict[str, str]:
    """The settings of a controller that is the only voter of a static quorum, at a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    return {
        "controller.quorum.voters": f"{NODE_ID}@{address}",
        "controller.quorum.bootstrap.servers": "",
        "listeners": f"CONTROLLER://{address}",
    }


def static_folder(tmp_path: Path, ids: Sequence[int] = ()) -> Path:
    """The folder of a controller that led a static quorum of its own; with ``ids`` quorum-state names these
    voters instead."""
    (tmp_path / "static").mkdir()
    file = formatted(tmp_path / "static", static_settings(), voters=())
    with ControllerProcess(file) as process:
        process.wait_for("first write committed")
    folder = tmp_path / "static" / "data"
    partition = folder / PARTITION_FOLDER
    state = read_election_state(partition)
    assert state is not None
    if ids:
        write_election_state(partition, state, Disk(), kraft_version=0, voter_ids=ids)
    return folder


def test_a_static_quorum_goes_on_when_no_lost_voter_leads(tmp_path: Path, capsys: Capture) -> None:
    """The log doesn't have the lost voters' addresses, so the operator gives them."""
    folder = static_folder(tmp_path, (NODE_ID, 3001, 3002))
    lost = Lost(folder, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = f"127.0.0.1:{server.getsockname()[1]}"
        nobody = static_settings()["listeners"].removeprefix("CONTROLLER://")
        assert lost.make_plan() == 6
        assert "no address of voter 3001 is known" in capsys.readouterr().err
        lost.collected.unlink()
        assert lost.make_plan("--voters", f"3001@{nobody},3002@{silent}") == 0
        assert f"3001 at {nobody}; 3002 at {silent}" in capsys.readouterr().out
        before = contents(lost.folder)
        assert lost.apply("--timeout-ms", "600") == 7
        assert f"something answers at {silent}" in capsys.readouterr().err
        assert contents(lost.folder) == before
    assert lost.apply() == 0
    made = read_plan(lost.plan)
    assert f"quorum-state gets epoch {made.epoch}, and names the voters {NODE_ID}" in capsys.readouterr().out
    assert recover("verify", lost.folder) == 0
    assert f"Voters: {NODE_ID}." in capsys.readouterr().out
    assert lost.apply() == 0
    assert read_evidence(lost.folder).static_voter_ids == (NODE_ID,)

    shutil.rmtree(folder)
    shutil.copytree(lost.folder, folder)
    with ControllerProcess(tmp_path / "static" / "controller.properties") as process:
        process.wait_for("first write committed")
    assert read_evidence(folder).last_epoch > made.epoch
    assert recover("verify", folder) == 0


def test_apply_wants_the_right_cluster_plan_and_folder(lost: Lost, tmp_path: Path, capsys: Capture) -> None:
    assert lost.make_plan() == 0
    before = contents(lost.folder)
    assert recover("apply", lost.plan, lost.folder, "--cluster-id", OTHER_CLUSTER, "--yes") == 6
    assert recover("apply", lost.plan, tmp_path / "missing", "--cluster-id", CLUSTER_ID, "--yes") == 5
    assert recover("apply", lost.collected, lost.folder, "--cluster-id", CLUSTER_ID, "--yes") == 5
    changed: dict[str, Any] = msgspec.json.decode(lost.plan.read_bytes())
    changed["base_offset"] -= 1
    lost.plan.write_bytes(msgspec.json.encode(changed))
    assert lost.apply() == 6
    assert "doesn't match its hash" in capsys.readouterr().err
    assert contents(lost.folder) == before


def test_apply_refuses_a_folder_that_changed_since(lost: Lost, capsys: Capture) -> None:
    assert lost.make_plan() == 0
    [segment] = (lost.folder / PARTITION_FOLDER).glob("*.log")
    last = batches_on_disk_of(lost.folder)[-1]
    os.truncate(segment, segment.stat().st_size - len(last))
    assert lost.apply() == 6
    assert "has changed since it was collected" in capsys.readouterr().err


def test_apply_refuses_while_a_leader_answers(tmp_path: Path, capsys: Capture) -> None:
    """The other two go on. The folder of the former leader must not become a quorum of its own."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        former = controllers.leader()
        controllers.kill(former)
        lost = Lost(controllers.folder(former), tmp_path)
        assert lost.make_plan() == 0
        before = contents(lost.folder)
        controllers.leader()
        assert lost.apply() == 7
        assert "a leader answers at 127.0.0.1:" in capsys.readouterr().err
        assert contents(lost.folder) == before


def test_apply_refuses_while_something_silent_has_a_voter_s_address(lost: Lost, capsys: Capture) -> None:
    """As a controller that is suspended: it may lead."""
    assert lost.make_plan() == 0
    (endpoint, *_) = msgspec.json.decode(lost.plan.read_bytes())["old_voters"][0]["endpoints"]
    before = contents(lost.folder)
    with socket.create_server((endpoint[1], endpoint[2])):
        assert lost.apply("--timeout-ms", "600") == 7
    assert f"something answers at {endpoint[1]}:{endpoint[2]}" in capsys.readouterr().err
    assert contents(lost.folder) == before


def test_apply_and_collect_refuse_the_folder_of_a_running_controller(tmp_path: Path, capsys: Capture) -> None:
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        leader = controllers.leader()
        for id in list(controllers.processes):
            controllers.kill(id)
        folder = controllers.folder(leader)
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        assert recover("collect", folder, "--output", collected) == 0
        assert recover("plan", collected, "--output", plan) == 0
        controllers.start_one(leader).wait_for("listening")
        assert recover("apply", plan, folder, "--cluster-id", CLUSTER_ID, "--yes") == 7
        assert "works on it; stop it" in capsys.readouterr().err
        running, pid = tmp_path / "running.json", controllers.processes[leader].pid
        assert recover("collect", folder, "--output", running) == 7
        assert f"{folder}: process {pid} works on it, so its log may still chang" in capsys.readouterr().err
        assert not running.exists()


class Crash(BaseException):
    """The process ends here."""


DISK_STEPS = ("write", "truncate", "flush_data", "flush_folder", "create", "rename", "remove")


def crash_at(step: int, patch: pytest.MonkeyPatch) -> list[int]:
    """Let the disk's step of this number and all later ones fail, as after a crash; returns their count."""
    count = [0]

    def stopping(name: str) -> Any:
        original = getattr(Disk, name)

        def call(self: Disk, *arguments: Any) -> Any:
            count[0] += 1
            if count[0] >= step:
                raise Crash
            return original(self, *arguments)

        return call

    for name in DISK_STEPS:
        patch.setattr(Disk, name, stopping(name))
    return count


def test_apply_is_taken_up_again_after_a_crash_at_any_point(
    lost: Lost, survivor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of steps is found by crashing later and later, until nothing crashes."""
    assert lost.make_plan() == 0
    plan = read_plan(lost.plan)
    expected: bytes | None = None
    crashes = 0
    for step in range(1, 1000):
        shutil.rmtree(lost.folder)
        shutil.copytree(survivor, lost.folder)
        shutil.rmtree(backup_path(lost.folder, plan), ignore_errors=True)
        with monkeypatch.context() as patch:
            crash_at(step, patch)
            try:
                apply_plan(plan, lost.folder, backup_path(lost.folder, plan))
                is_complete = True
            except Crash:
                is_complete = False
        crashes += not is_complete
        if not is_applied(plan, lost.folder):
            assert apply_plan(plan, lost.folder, backup_path(lost.folder, plan))
        assert recover("verify", lost.folder) == 0
        log = b"".join(batches_on_disk_of(lost.folder))
        expected = expected or log
        assert log == expected, f"after a crash at step {step}"
        if is_complete:
            break
    assert crashes > 20


def test_a_begun_plan_isn_t_verified(lost: Lost, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert lost.make_plan() == 0
    plan = read_plan(lost.plan)

    real = os.pwrite

    def write(fd: int, data: bytes, position: int) -> int:
        if data == plan.batch():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, position)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write)
        with pytest.raises(DiskFailed):
            apply_plan(plan, lost.folder, backup_path(lost.folder, plan))
    assert recover("verify", lost.folder) == 9
    assert "was begun and isn't finished" in capsys.readouterr().err
    assert lost.apply() == 0
    assert recover("verify", lost.folder) == 0


def test_all_voters_move_to_other_ports_and_lead_again(tmp_path: Path, capsys: Capture) -> None:
    """KIP-1347: the addresses in the log are old, so no voter finds another one."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        controllers.leader()
        controllers.write(range(WRITTEN))
        for id in list(controllers.processes):
            controllers.kill(id)
        controllers.move(1, 2, 3)
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        folders = {id: controllers.folder(id) for id in controllers.addresses}
        assert recover("collect", *folders.values(), "--output", collected) == 0
        assert recover("plan", collected, "--output", plan) == 6, "a majority is left"
        endpoints = ",".join(f"{id}@{address}" for id, address in controllers.addresses.items())
        assert recover("plan", collected, "--output", plan, "--endpoints", endpoints) == 0
        targets = {target["node_id"] for target in msgspec.json.decode(plan.read_bytes())["targets"]}
        for id, folder in folders.items():
            done = recover("apply", plan, folder, "--cluster-id", CLUSTER_ID, "--yes")
            assert done == (0 if id in targets else 6)
        capsys.readouterr()
        for id in targets:
            assert recover("verify", folders[id]) == 0
            shown = capsys.readouterr().out
            for voter, address in controllers.addresses.items():
                assert f"{voter} at CONTROLLER://{address} (directory " in shown
        controllers.start()
        controllers.write(range(100, 103))
        leader = controllers.leader()
        with controllers.processes[leader].client() as client:
            assert client.config("log.retention.ms") == str(1_000_102)


def test_voters_move_only_while_no_controller_runs(tmp_path: Path, capsys: Capture) -> None:
    """It needn't lead: its log must not change before the plan is applied to all equal ones."""
    with three_controllers(quorum_folder(tmp_path)) as controllers:
        controllers.leader()
        for id in list(controllers.processes):
            controllers.kill(id)
        collected, plan = tmp_path / "collected.json", tmp_path / "plan.json"
        assert recover("collect", *map(controllers.folder, controllers.addresses), "--output", collected) == 0
        endpoints = ",".join(f"{id}@{address}" for id, address in controllers.addresses.items())
        assert recover("plan", collected, "--output", plan, "--endpoints", endpoints) == 0
        target = read_plan(plan).targets[0].node_id
        other = next(id for id in controllers.addresses if id != target)
        controllers.start_one(other).wait_for("listening")
        before = contents(controllers.folder(target))
        assert recover("apply", plan, controllers.folder(target), "--cluster-id", CLUSTER_ID, "--yes") == 7
        address = controllers.addresses[other]
        assert f"a controller runs at {address}: stop all voters first" in capsys.readouterr().err
        assert contents(controllers.folder(target)) == before


def test_files_and_words_that_are_wrong(lost: Lost, tmp_path: Path, capsys: Capture) -> None:
    assert recover("collect", "--output", lost.collected) == 2
    assert recover("collect", tmp_path / "missing", "--output", lost.collected) == 5
    assert lost.make_plan() == 0
    assert recover("collect", lost.folder, "--output", lost.collected) == 1
    assert "exists already" in capsys.readouterr().err
    assert recover("plan", "--output", lost.plan) == 2
    assert recover("plan", tmp_path / "missing.json", "--output", tmp_path / "new") == 5
    for voters in ("nobody@h:1", "1@nowhere", "1@h:1,1@h:2", ","):
        assert recover("plan", lost.collected, "--output", tmp_path / "new", "--voters", voters) == 2
    for endpoints in ("nobody@h:1", "1@nowhere", "1@[::1:9093", "1@::1]:9093", "1@h:1,1@h:2", ","):
        assert recover("plan", lost.collected, "--output", tmp_path / "new", "--endpoints", endpoints) == 2
    assert not (tmp_path / "new").exists()
    assert recover("verify", tmp_path / "missing") == 5
