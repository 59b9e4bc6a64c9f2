"""``kraft-wire fsck`` names an epoch that was driven high, and lowers it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraft_wire.cli import main
from kraft_wire.cli.epoch_advice import FAR
from kraft_wire.log.files import ElectionState
from kraft_wire.raft.door.epoch_limits import LAST_EPOCH
from kraft_wire.storage.inspection import inspect
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.quorum_state import read_election_state, read_static_voter_ids
from kraft_wire.storage.recovery.vote_guards import NO_VOTE_UP_TO, guard_text
from kraft_wire.storage.store import Store
from tests.support.controller_process import NODE_ID, ControllerProcess, formatted

Capture = pytest.CaptureFixture[str]
KEY = "message.max.bytes"
HIGH = 5_000_000


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lone controller that has led in epoch 1 and has one setting."""
    folder = tmp_path_factory.mktemp("used")
    with ControllerProcess(formatted(folder)) as controller:
        with controller.client() as client:
            client.set_config(KEY, "1234567")
        assert controller.terminate() == 0
    return folder / "data"


@pytest.fixture
def data(tmp_path: Path, used: Path) -> Path:
    return Path(shutil.copytree(used, tmp_path / "data"))


def properties(data: Path) -> Path:
    """The properties file of the controller, of which the folder is a copy."""
    file = data.parent / "controller.properties"
    formatted_again = data.parent / "other"
    formatted_again.mkdir()
    text = formatted(formatted_again).read_text()
    file.write_text(text.replace(str(formatted_again / "data"), str(data)))
    return file


def partition(data: Path) -> Path:
    return data / "__cluster_metadata-0"


def drive_up(data: Path, epoch: int = HIGH, *, kraft_version: int = 1) -> None:
    """What requests of strangers do to a node."""
    store = Store.open(data, node_id=NODE_ID)
    voter_ids = [NODE_ID, 2, 3] if kraft_version == 0 else []
    state = ElectionState(leader_epoch=epoch, voted_id=7)
    store.write_election_state(state, kraft_version=kraft_version, voter_ids=voter_ids)
    store.close()


def contents(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition(data).iterdir()}


def test_a_lone_controller_whose_epochs_are_used_up_leads_again(data: Path, capsys: Capture) -> None:
    drive_up(data, LAST_EPOCH)
    file = properties(data)
    with ControllerProcess(file) as controller:
        assert "kraft-wire fsck" in controller.wait_for("epochs exhausted")["advice"]
    assert main(["fsck", str(data)]) == 0
    text = capsys.readouterr().out
    assert (
        f"The node's epoch is {LAST_EPOCH}, far above that of its last record, 1: 0 epochs are left" in text
    )
    command = f"kraft-wire fsck {data} --lower-epoch 2 --yes"
    assert command in text
    assert main(command.split()[1:]) == 0
    assert f"The epoch was lowered from {LAST_EPOCH} to 2." in capsys.readouterr().out
    with ControllerProcess(file) as controller, controller.client() as client:
        assert client.config(KEY) == "1234567"
        assert controller.wait_for("became leader")["epoch"] == 3


def test_the_old_files_are_kept_and_what_was_committed_stays_known(data: Path, capsys: Capture) -> None:
    drive_up(data)
    (partition(data) / NO_VOTE_UP_TO).write_text(guard_text(HIGH + 1))
    changed = ["quorum-state", "durable-floor", NO_VOTE_UP_TO]
    before = contents(data)
    floor = read_floor(partition(data))
    assert main(["fsck", str(data), "--lower-epoch", "9", "--yes"]) == 0
    kept = [partition(data) / f"{name}.lowered-1" for name in changed]
    assert [path.read_bytes() for path in kept] == [before[name] for name in changed]
    assert capsys.readouterr().out.splitlines()[:3] == [f"kept: {path}" for path in kept]
    assert floor is not None
    assert floor.committed_offset > 0
    assert read_floor(partition(data)) == floor._replace(quorum_epoch=9)
    assert read_election_state(partition(data)) == ElectionState(leader_epoch=9)
    assert not (partition(data) / NO_VOTE_UP_TO).exists()
    found = inspect(data)
    assert found.is_whole
    assert (found.last_record_epoch, found.known_epoch) == (1, 9)
    problems = [finding.problem for finding in found.findings if finding.status == "aside"]
    assert problems == ["kept when the epoch was lowered"] * 3


def test_a_guard_of_the_vote_that_was_driven_high_is_lowered_without_quorum_state(data: Path) -> None:
    drive_up(data)
    (partition(data) / "quorum-state").unlink()
    (partition(data) / NO_VOTE_UP_TO).write_text(guard_text(HIGH + 1))
    assert main(["fsck", str(data), "--lower-epoch", "9", "--yes"]) == 0
    with ControllerProcess(properties(data)) as controller:
        assert 9 < controller.wait_for("became leader")["epoch"] < FAR


def test_static_voters_stay_in_quorum_state(data: Path) -> None:
    drive_up(data, kraft_version=0)
    assert main(["fsck", str(data), "--lower-epoch", "9", "--yes"]) == 0
    assert read_static_voter_ids(partition(data)) == [NODE_ID, 2, 3]


def test_a_voter_with_peers_is_told_to_lower_all_together(tmp_path: Path, capsys: Capture) -> None:
    voters = ",".join(
        f"{id}@127.0.0.1:{9000 + place}:AAAAAAAAAAAAAAAAAAAA{place}w"
        for place, id in enumerate((NODE_ID, 2, 3))
    )
    formatted(tmp_path, voters=("--initial-controllers", voters))
    data = tmp_path / "data"
    drive_up(data)
    assert main(["fsck", str(data)]) == 0
    advice = capsys.readouterr().out.splitlines()[-1]
    assert "stop all controllers and brokers. Run fsck on the metadata folder of each" in advice
    assert "this one needs an epoch of at least 1" in advice
    assert f"kraft-wire fsck {data} --lower-epoch EPOCH --yes" in advice


def test_an_epoch_of_the_records_themselves_cannot_be_lowered(data: Path, capsys: Capture) -> None:
    drive_up(data, LAST_EPOCH - 10)
    with ControllerProcess(properties(data)) as controller:
        controller.wait_for("active controller")
    main(["fsck", str(data)])
    advice = capsys.readouterr().out.splitlines()[-1]
    assert f"The last record has epoch {LAST_EPOCH - 9}, and 9 epochs are left" in advice


def test_without_yes_nothing_is_changed_and_the_conditions_are_named(data: Path, capsys: Capture) -> None:
    drive_up(data)
    before = contents(data)
    assert main(["fsck", str(data), "--lower-epoch", "9"]) == 3
    assert "only while every controller and broker of the cluster is stopped" in capsys.readouterr().err
    assert contents(data) == before


@pytest.mark.parametrize("epoch", ["0", "1"])
def test_an_epoch_that_records_have_is_refused(data: Path, capsys: Capture, epoch: str) -> None:
    drive_up(data)
    before = contents(data)
    assert main(["fsck", str(data), "--lower-epoch", epoch, "--yes"]) == 2
    assert f"epoch {epoch} isn't above that of the last record, 1" in capsys.readouterr().err
    assert contents(data) == before


def test_an_epoch_is_never_raised(data: Path, capsys: Capture) -> None:
    before = contents(data)
    assert main(["fsck", str(data), "--lower-epoch", "9", "--yes"]) == 0
    assert "The epoch isn't above 9: nothing was changed." in capsys.readouterr().out
    assert contents(data) == before


def test_the_folder_of_a_running_controller_is_refused(data: Path, capsys: Capture) -> None:
    with ControllerProcess(properties(data)) as controller:
        controller.wait_for("active controller")
        assert main(["fsck", str(data), "--lower-epoch", "9", "--yes"]) == 2
        assert f"process {controller.pid} holds this lock" in capsys.readouterr().err


def test_a_damaged_folder_is_refused(data: Path, capsys: Capture) -> None:
    drive_up(data)
    log = partition(data) / "00000000000000000000.log"
    flipped = bytearray(log.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    log.write_bytes(flipped)
    assert main(["fsck", str(data), "--lower-epoch", "9", "--yes"]) == 2
    assert "repair the folder first" in capsys.readouterr().err


def test_an_epoch_somewhat_above_the_last_record_is_usual(data: Path, capsys: Capture) -> None:
    drive_up(data, 1 + FAR)
    assert main(["fsck", str(data)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Everything is whole."


@pytest.mark.parametrize("options", ["--yes", "--lower-epoch 9 --json", "--lower-epoch 9 --repair"])
def test_options_that_do_not_go_together_are_wrong_usage(data: Path, options: str) -> None:
    assert main(["fsck", str(data), *options.split()]) == 2
