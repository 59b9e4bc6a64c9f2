"""quorum add, promote and remove, and registrations refresh: against real controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.cli import main
from tests.support.live_quorum import Controllers, three_controllers

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Controllers]:
    with three_controllers(tmp_path) as controllers:
        controllers.leader()
        yield controllers


def run(controllers: Controllers, *words: str, yes: bool = True) -> int:
    """Run a command on a quorum, and return its exit status."""
    bootstrap = ",".join(controllers.addresses.values())
    return main([*words, "--bootstrap-controller", bootstrap, *(["--yes"] if yes else [])])


def status(controllers: Controllers, capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert run(controllers, "quorum", "status", "--json", "--no-history", yes=False) == 0
    report: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    return report


def roles(report: dict[str, Any]) -> dict[int, str]:
    return {replica["id"]: replica["role"].partition(",")[0] for replica in report["replicas"]}


def registered(report: dict[str, Any]) -> set[int]:
    return {replica["id"] for replica in report["replicas"] if replica["registered"]} | {
        int(note.split()[1]) for note in report["notes"] if " is registered and is no voter" in note
    }


def test_a_controller_is_added_and_removed_and_its_registration_with_it(
    quorum: Controllers, capsys: Capture
) -> None:
    file = str(quorum.add_observer(4))
    assert run(quorum, "quorum", "add", file) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Voters now    1, 2, 3: the majority is 2, 1 more may fail"
    assert said[1] == "Afterwards    1, 2, 3, 4: the majority is 3, 1 more may fail"
    assert said[-1] == "Node 4 is a voter. The change is committed."
    assert roles(status(quorum, capsys))[4] == "follower"

    assert run(quorum, "quorum", "add", file) == 0
    assert capsys.readouterr().out == "Node 4 is a voter already. Nothing was changed.\n"

    quorum.kill(4)
    assert run(quorum, "quorum", "remove", "4") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "Afterwards    1, 2, 3: the majority is 2, 1 more may fail"
    assert said[-2:] == [
        "Node 4 is no voter any more. The change is committed.",
        "The registration of controller 4 is removed.",
    ]
    report = status(quorum, capsys)
    assert 4 not in {id for id, role in roles(report).items() if role != "observer"}
    assert registered(report) == {1, 2, 3}
    assert run(quorum, "quorum", "remove", "4") == 6
    assert "node 4 is no voter (the voters are 1, 2, 3), and is not registered" in capsys.readouterr().err


def test_an_observer_is_promoted_by_its_id_and_a_running_voter_keeps_its_registration(
    quorum: Controllers, capsys: Capture
) -> None:
    quorum.add_observer(4)
    assert run(quorum, "quorum", "promote", "4") == 0
    assert "at CONTROLLER://127.0.0.1:" in capsys.readouterr().out
    assert run(quorum, "quorum", "promote", "4") == 0
    assert "Node 4 is a voter already" in capsys.readouterr().out
    assert run(quorum, "quorum", "remove", "4") == 13
    captured = capsys.readouterr()
    assert "Node 4 is no voter any more. The change is committed." in captured.out
    assert "controller 4 still runs, and would register again" in captured.err
    assert roles(status(quorum, capsys))[4] == "observer"


def test_the_leader_is_removed(quorum: Controllers, capsys: Capture) -> None:
    leader = quorum.leader()
    assert run(quorum, "quorum", "remove", str(leader), "--keep-registration") == 0
    report = status(quorum, capsys)
    assert report["leader_id"] != leader
    assert roles(report)[leader] == "observer"


def test_a_voter_that_would_join_again_stays(quorum: Controllers, capsys: Capture) -> None:
    quorum.add_observer(4, controller_quorum_auto_join_enable="true")
    quorum.processes[4].wait_for("listening")
    while roles(status(quorum, capsys)).get(4) != "follower":
        pass
    assert run(quorum, "quorum", "remove", "4") == 11
    assert "controller 4 runs with controller.quorum.auto.join.enable=true" in capsys.readouterr().err
    assert roles(status(quorum, capsys))[4] == "follower"


def test_without_agreement_nothing_changes(quorum: Controllers, capsys: Capture) -> None:
    assert run(quorum, "quorum", "remove", "3", yes=False) == 8
    assert "give --yes" in capsys.readouterr().err
    assert sorted(roles(status(quorum, capsys))) == [1, 2, 3]


def test_what_can_not_be_changed(quorum: Controllers, capsys: Capture) -> None:
    assert run(quorum, "quorum", "promote", "9", "--wait-ms", "0") == 10
    assert "no observer with node id 9 fetches from the leader" in capsys.readouterr().err
    assert run(quorum, "quorum", "remove", "3", "--directory-id", "AQEBAQEBAQEBAQEBAQEBAQ") == 6
    assert "voter 3 has directory id AwMDAwMDAwMDAwMDAwMDAw, not AQEB" in capsys.readouterr().err
    assert run(quorum, "quorum", "promote", "4", "--endpoint", "nonsense") == 2
    assert "give NAME://HOST:PORT" in capsys.readouterr().err
    assert run(quorum, "quorum", "promote", "4", "--max-lag", "-1") == 2
    assert "--max-lag -1: give 0 or more" in capsys.readouterr().err


def test_a_majority_has_to_be_left(quorum: Controllers, capsys: Capture) -> None:
    one, other = (id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(one)
    while status(quorum, capsys)["may_fail"] == 1:
        pass
    assert run(quorum, "quorum", "remove", str(other)) == 6
    assert "2 are needed to commit the change: start the others first" in capsys.readouterr().err


def test_a_controller_that_is_gone_gets_the_features_of_the_leader(
    quorum: Controllers, capsys: Capture
) -> None:
    assert run(quorum, "registrations", "refresh", "--id", "9") == 6
    assert "controller 9 is not registered; registered are 1, 2, 3" in capsys.readouterr().err
    gone = next(id for id in quorum.addresses if id != quorum.leader())
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 7
    assert f"controller {gone} runs, and registers its own features" in capsys.readouterr().err
    quorum.kill(gone)
    while status(quorum, capsys)["may_fail"] == 1:
        pass
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"Controller {gone} gets the features of the leader:"
    assert "  metadata.version 7 to 33" in said
    assert said[-1] == f"Controller {gone} is registered with these features. The change is committed."
