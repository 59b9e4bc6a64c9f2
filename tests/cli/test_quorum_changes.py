"""quorum add, promote and remove, and registrations refresh: against real controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.cli import main
from kraft_wire.cli.quorum.changes import registrations, remove
from kraft_wire.cli.quorum.changes.leader_client import leader_of
from kraft_wire.client.connection import Connection
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.client.survey import NodeAnswer, survey
from kraft_wire.client.voter_changes import register_controller
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.wire.address import Address
from tests.support.controller_process import CLUSTER_ID, NODE_ID, formatted
from tests.support.live_quorum import Controllers, settings, static_controller, three_controllers
from tests.support.waiting import wait_until

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Controllers]:
    with three_controllers(tmp_path) as controllers:
        asked = settings(*controllers.addresses.values())
        wait_until(
            lambda: all(len(answer.registrations or ()) == 3 for answer in survey(asked)),
            "all controllers to be registered",
        )
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


def directories(report: dict[str, Any]) -> dict[str, str]:
    """Return the roles by directory id: also a disk that was replaced is listed for a while."""
    return {replica["directory_id"]: replica["role"] for replica in report["replicas"]}


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
    assert said[0] == f"Cluster       {CLUSTER_ID}"
    assert said[1] == "Voters now    1, 2, 3: the majority is 2, 1 more may fail"
    assert said[2] == "Afterwards    1, 2, 3, 4: the majority is 3, 1 more may fail"
    assert said[-1] == "Node 4 is a voter. The change is committed."
    assert roles(status(quorum, capsys))[4] == "follower"

    assert run(quorum, "quorum", "add", file) == 0
    assert capsys.readouterr().out == "Node 4 is a voter already. Nothing was changed.\n"

    quorum.kill(4)
    assert run(quorum, "quorum", "remove", "4") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[2] == "Afterwards    1, 2, 3: the majority is 2, 1 more may fail"
    assert said[-2:] == [
        "Node 4 is no voter any more. The change is committed.",
        "The registration of controller 4 is removed.",
    ]
    report = status(quorum, capsys)
    assert 4 not in {id for id, role in roles(report).items() if role != "observer"}
    assert registered(report) == {1, 2, 3}
    assert run(quorum, "quorum", "remove", "4") == 0
    nothing = "Node 4 is no voter (the voters are 1, 2, 3), and is not registered. Nothing was changed.\n"
    assert capsys.readouterr().out == nothing
    assert run(quorum, "quorum", "remove", "4", "--keep-registration") == 0
    assert "Node 4 is no voter (the voters are 1, 2, 3). Nothing" in capsys.readouterr().out


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
    assert status(quorum, capsys)["leader_id"] != leader
    wait_until(lambda: roles(status(quorum, capsys)).get(leader) == "observer", "the old leader to observe")


def test_a_voter_that_would_join_again_stays(quorum: Controllers, capsys: Capture) -> None:
    quorum.add_observer(4, controller_quorum_auto_join_enable="true")
    quorum.processes[4].wait_for("listening")
    while roles(status(quorum, capsys)).get(4) != "follower":
        pass
    assert run(quorum, "quorum", "remove", "4") == 11
    assert "controller 4 runs with controller.quorum.auto.join.enable=true" in capsys.readouterr().err
    assert roles(status(quorum, capsys))[4] == "follower"


def test_the_registration_of_a_replaced_disk_belongs_to_the_controller_that_runs(
    quorum: Controllers, capsys: Capture
) -> None:
    """It fetches as an observer, with another directory id, until it is promoted."""
    lost = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.replace_disk(lost)
    directory_id = read_meta_properties(quorum.folder(lost)).directory_id
    wait_until(lambda: str(directory_id) in directories(status(quorum, capsys)), "the new disk to fetch")
    assert run(quorum, "quorum", "promote", str(lost)) == 6, (
        "also while the old one counts as one that fetches"
    )
    wait_until(lambda: status(quorum, capsys)["may_fail"] == 0, "the old disk to be gone")
    capsys.readouterr()
    assert run(quorum, "quorum", "promote", str(lost)) == 6
    said = capsys.readouterr().err
    assert f"node {lost} votes with directory {Uuid(bytes([lost] * 16))}, which doesn't fetch" in said
    assert f"kraft-wire quorum remove {lost} --directory-id {Uuid(bytes([lost] * 16))}` first" in said
    assert run(quorum, "quorum", "remove", str(lost)) == 0
    said = f"The registration of controller {lost} is that of directory {directory_id}, which runs: it stays."
    assert said in capsys.readouterr().out
    assert registered(status(quorum, capsys)) == {1, 2, 3}
    assert run(quorum, "quorum", "promote", str(lost)) == 0
    assert directories(status(quorum, capsys))[str(directory_id)] == "follower"


def test_a_successor_at_the_same_address_is_another_controller(quorum: Controllers, capsys: Capture) -> None:
    gone = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(gone)
    quorum.add_successor(4, of=gone)
    wait_until(lambda: roles(status(quorum, capsys)).get(4) == "observer", "the successor to fetch")
    wait_until(lambda: status(quorum, capsys)["may_fail"] == 0, "the other one to be gone")
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 0
    assert run(quorum, "quorum", "remove", str(gone)) == 0
    assert f"The registration of controller {gone} is removed." in capsys.readouterr().out
    assert gone not in registered(status(quorum, capsys))


def test_an_observer_is_promoted_with_all_its_listeners(tmp_path: Path, capsys: Capture) -> None:
    """DescribeCluster shows its address on the listener that is asked only."""
    with three_controllers(tmp_path, drafted=True) as quorum:
        quorum.leader()
        quorum.add_observer(4)
        wait_until(lambda: 4 in registered(status(quorum, capsys)), "the observer to register")
        assert run(quorum, "quorum", "promote", "4") == 0
        said = capsys.readouterr().out
        assert f"  at DRAFT://{quorum.raft_addresses[4]}" in said
        assert f"  at CONTROLLER://{quorum.addresses[4]}" in said


def lose_first_answer(monkeypatch: pytest.MonkeyPatch, request_class: type[Message]) -> list[Message]:
    """Lose the first answer to a kind of request: the leader has sent it, and it doesn't arrive. Returns the
    requests of this kind, as they are sent."""
    sent: list[Message] = []
    call = Connection.call

    def lossy(connection: Connection, request: Message, response_class: Any, timeout_s: float) -> Any:
        response = call(connection, request, response_class, timeout_s)
        if isinstance(request, request_class):
            sent.append(request)
            if len(sent) == 1:
                raise ConnectionResetError("connection reset")
        return response

    monkeypatch.setattr(Connection, "call", lossy)
    return sent


def test_a_change_whose_answer_is_lost_is_seen_in_the_quorum(
    quorum: Controllers, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum.add_observer(4)
    sent = lose_first_answer(monkeypatch, AddRaftVoterRequest)
    assert run(quorum, "quorum", "promote", "4") == 0
    assert "Node 4 is a voter. The change is committed." in capsys.readouterr().out
    assert len(sent) == 1
    sent = lose_first_answer(monkeypatch, RemoveRaftVoterRequest)
    assert run(quorum, "quorum", "remove", "4", "--keep-registration") == 0
    assert "Node 4 is no voter any more. The change is committed." in capsys.readouterr().out
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (RemoveRaftVoterRequest, "it isn't known whether the change was made"),
        (UnregisterControllerRequest, "the voter is removed, and it isn't known whether controller"),
    ],
)
def test_a_change_that_is_interrupted_after_it_was_sent_may_have_been_made(
    quorum: Controllers,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    lost: type[Message],
    said: str,
) -> None:
    call = Connection.call

    def interrupted(connection: Connection, request: Message, response_class: Any, timeout_s: float) -> Any:
        response = call(connection, request, response_class, timeout_s)
        if isinstance(request, lost):
            raise KeyboardInterrupt
        return response

    gone = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(gone)
    monkeypatch.setattr(Connection, "call", interrupted)
    assert run(quorum, "quorum", "remove", str(gone)) == 130
    assert f"interrupted: {said}" in capsys.readouterr().err


def register_old_features(controllers: Controllers, id: int) -> None:
    """Register a controller that is gone with the features of an older release."""
    listener = Endpoint("CONTROLLER", "127.0.0.1", 9)
    request = register_controller(id, Uuid(bytes([9] * 16)), listener, {"metadata.version": (6, 33)})
    with leader_of(settings(*controllers.addresses.values())) as leader:
        leader.change(request, ControllerRegistrationResponse, lambda _: None)


def test_a_refresh_whose_answer_is_lost_is_sent_again(
    quorum: Controllers, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No API shows the features of a registration: only an answer says that they are set."""
    gone = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(gone)
    wait_until(lambda: status(quorum, capsys)["may_fail"] == 0, "the controller to be gone")
    register_old_features(quorum, gone)
    sent = lose_first_answer(monkeypatch, ControllerRegistrationRequest)
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 0
    assert len(sent) == 2


def test_it_is_uncertain_whether_a_change_is_made_that_has_no_majority(
    quorum: Controllers, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader removes one follower when the other one is gone, and can't commit that any more."""
    one, other = (id for id in quorum.addresses if id != quorum.leader())
    monkeypatch.setattr(remove, "confirm", lambda: quorum.kill(one))
    words = ("quorum", "remove", str(other), "--keep-registration", "--timeout-ms", "3000")
    assert run(quorum, *words, yes=False) == 12
    said = capsys.readouterr().err
    assert "it isn't known whether the change was made: after it was sent, no leader answered" in said


def test_a_newcomer_that_can_not_be_read_ends_with_5(
    quorum: Controllers, tmp_path: Path, capsys: Capture
) -> None:
    assert run(quorum, "quorum", "add", str(tmp_path / "no.properties")) == 5
    assert f"{tmp_path}/no.properties: cannot be read: No such file" in capsys.readouterr().err
    no_controller_s = tmp_path / "passwd"
    no_controller_s.write_text("root:x:0:0::/root\n")
    assert run(quorum, "quorum", "add", str(no_controller_s)) == 5
    file = tmp_path / "new.properties"
    file.write_text(quorum.file(1).read_text().replace(str(quorum.folder(1)), str(tmp_path / "empty")))
    assert run(quorum, "quorum", "add", str(file)) == 5
    said = "run `kraft-wire storage format` with --no-initial-controllers"
    assert said in capsys.readouterr().err
    other = tmp_path / "other"
    other.mkdir()
    wrong = formatted(other, {"node.id": "4"}, cluster_id="0Hqdn6mPQ5GrP21WaEIN5Q")
    wrong.write_text(wrong.read_text().replace("127.0.0.1:0", "127.0.0.1:9"))
    assert run(quorum, "quorum", "add", str(wrong)) == 6
    said = "belongs to cluster 0Hqdn6mPQ5GrP21WaEIN5Q, and the quorum that --bootstrap-controller names to "
    assert f"{said}{CLUSTER_ID}: check both." in capsys.readouterr().err


def test_an_observer_is_not_promoted_with_another_directory_or_listener(
    quorum: Controllers, capsys: Capture
) -> None:
    quorum.add_observer(4)
    wait_until(lambda: roles(status(quorum, capsys)).get(4) == "observer", "the observer to fetch")
    other = ("--directory-id", str(Uuid(bytes([9] * 16))), "--wait-ms", "0")
    assert run(quorum, "quorum", "promote", "4", *other) == 6
    assert "node 4 fetches with directory id" in capsys.readouterr().err
    assert run(quorum, "quorum", "promote", "4", "--endpoint", "OTHER://127.0.0.1:9") == 14
    refusal = "the leader refuses: INVALID_REQUEST: a voter needs an endpoint on listener CONTROLLER"
    assert refusal in capsys.readouterr().err


def test_registrations_that_the_leader_does_not_tell_are_not_taken_for_none(
    quorum: Controllers, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: QuorumSettings, addresses: list[Address]) -> list[NodeAnswer]:
        return [NodeAnswer(address, "connection reset") for address in addresses]

    gone = next(id for id in quorum.addresses if id != quorum.leader())
    monkeypatch.setattr(remove, "confirm", lambda: monkeypatch.setattr(registrations, "survey", silent))
    words = (str(gone), "--timeout-ms", "3000")
    assert run(quorum, "quorum", "remove", *words, yes=False) == 13
    assert f"it isn't known whether controller {gone} is registered: the leader" in capsys.readouterr().err
    for command in (("quorum", "remove"), ("registrations", "refresh", "--id")):
        assert run(quorum, *command, *words) == 1
        assert "can't be asked: connection reset; try again" in capsys.readouterr().err


def test_static_voters_can_not_be_changed(tmp_path: Path, capsys: Capture) -> None:
    """It is said before anything is asked: there is no terminal here, and no --yes."""
    with static_controller(tmp_path) as (process, address):
        process.wait_for("first write committed")
        newcomer = tmp_path / "newcomer"
        newcomer.mkdir()
        settings = {"node.id": "4", "listeners": "CONTROLLER://127.0.0.1:9"}
        file = formatted(newcomer, settings, voters=("--no-initial-controllers",))
        for words in (
            ("add", str(file)),
            ("promote", "4"),
            ("promote", str(NODE_ID)),
            ("remove", str(NODE_ID)),
        ):
            assert main(["quorum", *words, "--bootstrap-controller", address]) == 6
            said = capsys.readouterr().err
            assert "kraft.version is 0, so the voters are those of controller.quorum.voters: see" in said


def test_without_agreement_nothing_changes(quorum: Controllers, capsys: Capture) -> None:
    assert run(quorum, "quorum", "remove", "3", yes=False) == 8
    assert "give --yes" in capsys.readouterr().err
    assert sorted(roles(status(quorum, capsys))) == [1, 2, 3]


def test_what_can_not_be_changed(quorum: Controllers, capsys: Capture) -> None:
    assert run(quorum, "quorum", "promote", "9", "--wait-ms", "0") == 10
    said = capsys.readouterr()
    waits = "Waiting up to 0 s: no observer with node id 9 fetches yet. Observers that fetch: none.\n"
    assert said.out == waits
    assert "no observer with node id 9 fetches from the leader" in said.err
    assert said.err.endswith(". Nothing was changed\n")
    assert run(quorum, "quorum", "remove", "3", "--directory-id", "AQEBAQEBAQEBAQEBAQEBAQ") == 6
    assert capsys.readouterr().err == (
        "kraft-wire: voter 3 has directory id AwMDAwMDAwMDAwMDAwMDAw, not AQEBAQEBAQEBAQEBAQEBAQ, which is "
        "that of node 1. Nothing was changed\n"
    )
    for change in ("promote", "remove"):
        assert run(quorum, "quorum", change, "-3") == 2
        assert "-3 is not a node id" in capsys.readouterr().err
    assert run(quorum, "quorum", "promote", "4", "--endpoint", "nonsense") == 2
    assert "give NAME://HOST:PORT" in capsys.readouterr().err
    assert run(quorum, "quorum", "promote", "4", "--max-lag", "-1") == 2
    assert "--max-lag -1: give 0 or more" in capsys.readouterr().err


def test_a_directory_id_is_checked_for_a_node_that_is_no_voter(quorum: Controllers, capsys: Capture) -> None:
    quorum.add_observer(4)
    wait_until(lambda: 4 in registered(status(quorum, capsys)), "the observer to register")
    own = str(read_meta_properties(quorum.folder(4)).directory_id)
    for stopped in (False, True):
        if stopped:
            quorum.kill(4)
        assert run(quorum, "quorum", "remove", "4", "--directory-id", "AwMDAwMDAwMDAwMDAwMDAw") == 6
        said = capsys.readouterr()
        assert (
            f"node 4 is no voter, and observes with {own}: the leader doesn't know directory id" in said.err
        )
        assert said.out == ""
    assert run(quorum, "quorum", "remove", "4", "--directory-id", own) == 0
    assert "The registration of controller 4 is removed." in capsys.readouterr().out


def test_a_voter_that_has_just_stopped_is_not_said_to_run(quorum: Controllers, capsys: Capture) -> None:
    gone = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(gone)
    assert run(quorum, "quorum", "remove", str(gone), "--keep-registration") == 0
    said = capsys.readouterr()
    assert said.err == ""
    left = ", ".join(map(str, sorted({1, 2, 3} - {gone})))
    assert "Voters now    1, 2, 3: the majority is 2, no more may fail\n" in said.out
    assert f"Afterwards    {left}: the majority is 2, no more may fail\n" in said.out
    assert f"Not counted   {gone}: nothing answers at the address" in said.out


def test_a_majority_has_to_be_left(quorum: Controllers, capsys: Capture) -> None:
    one, other = (id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(one)
    while status(quorum, capsys)["may_fail"] == 1:
        pass
    assert run(quorum, "quorum", "remove", str(other)) == 6
    said = capsys.readouterr()
    left = ", ".join(map(str, sorted({1, 2, 3} - {other})))
    assert f"voters {left} would be left. Those that fetch: {quorum.leader()}. 2 are needed" in said.err
    assert f"Afterwards    {left}: the majority is 2, but only 1 of them fetches" in said.out


def test_a_voter_that_stopped_a_moment_ago_is_no_majority(quorum: Controllers, capsys: Capture) -> None:
    """It still counts as live by its last fetch."""
    stopped, other = (id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(stopped)
    assert run(quorum, "quorum", "remove", str(other)) == 6
    captured = capsys.readouterr()
    assert "the majority is 2, no more may fail" in captured.out
    assert f"voter {stopped} doesn't answer from this machine, and the change needs 2" in captured.err
    assert roles(status(quorum, capsys))[other] == "follower"


def test_a_voter_that_was_suspended_a_moment_ago_is_no_majority(quorum: Controllers, capsys: Capture) -> None:
    """Its system still accepts connections. Without it the removal would never be committed."""
    leader = quorum.leader()
    frozen, other = (id for id in quorum.addresses if id != leader)
    quorum.processes[frozen].pause()
    words = ["quorum", "remove", str(other), "--bootstrap-controller", quorum.addresses[leader], "--yes"]
    assert main(words) == 6
    assert f"voter {frozen} doesn't answer from this machine" in capsys.readouterr().err
    quorum.processes[frozen].resume()
    assert roles(status(quorum, capsys))[other] == "follower"


@pytest.mark.parametrize("options", [[], ["--keep-registration"]])
def test_an_id_that_no_node_ever_had_has_a_status_of_its_own(
    quorum: Controllers, capsys: Capture, options: list[str]
) -> None:
    assert run(quorum, "quorum", "remove", "77", *options) == 16
    said = capsys.readouterr()
    assert "node 77 is not known: it is no voter (the voters are 1, 2, 3), observer or registered" in said.err
    assert said.out == ""


def test_the_address_of_another_voter_is_refused_at_once(
    quorum: Controllers, tmp_path: Path, capsys: Capture
) -> None:
    quorum.add_observer(4)
    endpoint = f"CONTROLLER://{quorum.addresses[2]}"
    assert run(quorum, "quorum", "promote", "4", "--endpoint", endpoint) == 6
    assert (
        f"{quorum.addresses[2]} is the address of voter 2: correct the listeners" in capsys.readouterr().err
    )
    file = tmp_path / "mistaken.properties"
    file.write_text(quorum.file(4).read_text().replace(quorum.addresses[4], quorum.addresses[2]))
    assert run(quorum, "quorum", "add", str(file)) == 6
    assert (
        f"{quorum.addresses[2]} is the address of voter 2: correct the listeners" in capsys.readouterr().err
    )
    assert roles(status(quorum, capsys))[4] == "observer"


def test_a_controller_that_is_gone_gets_the_features_of_the_leader(
    quorum: Controllers, capsys: Capture
) -> None:
    assert run(quorum, "registrations", "refresh", "--id", "9") == 6
    assert "controller 9 is not registered; registered are 1, 2, 3" in capsys.readouterr().err
    gone = next(id for id in quorum.addresses if id != quorum.leader())
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 7
    assert f"controller {gone} runs, and registers its own features" in capsys.readouterr().err
    quorum.kill(gone)
    nothing = f"Controller {gone} is already registered with the leader's features. Nothing was changed.\n"
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 0
    assert capsys.readouterr().out == nothing
    register_old_features(quorum, gone)
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"Controller {gone} will be registered with what the leader supports:"
    assert "  supports metadata.version 7 to 33" in said
    assert said[-1] == f"Controller {gone} is registered with these features. The change is committed."
    assert run(quorum, "registrations", "refresh", "--id", str(gone)) == 0
    assert capsys.readouterr().out == nothing


def test_a_file_with_another_nodes_id_is_refused(quorum: Controllers, capsys: Capture) -> None:
    file = quorum.add_observer(4)
    file.write_text(file.read_text().replace("node.id=4", "node.id=5"))
    assert run(quorum, "quorum", "add", str(file)) == 6
    assert "is the folder of node 4, and the file says node.id=5: correct the file" in capsys.readouterr().err


def test_a_folder_that_is_a_quorum_of_its_own_is_not_added(
    quorum: Controllers, tmp_path: Path, capsys: Capture
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    settings = {"node.id": "4", "listeners": "CONTROLLER://127.0.0.1:9"}
    file = formatted(own, settings, voters=("--standalone",))
    assert run(quorum, "quorum", "add", str(file)) == 6
    said = capsys.readouterr()
    assert "was formatted with --standalone: its controller is a quorum of its own" in said.err
    assert said.err.endswith(" --no-initial-controllers. Nothing was changed\n")
    assert said.out == ""


def test_a_suspended_voter_may_make_itself_one_again_and_that_is_said(
    quorum: Controllers, capsys: Capture
) -> None:
    frozen = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.processes[frozen].pause()
    while status(quorum, capsys)["may_fail"] == 1:
        pass
    assert run(quorum, "quorum", "remove", str(frozen), "--keep-registration") == 0
    assert (
        f"warning: controller {frozen} may run, and does not say whether controller.quorum.auto.join.enable"
        in capsys.readouterr().err
    )


def test_status_names_a_voter_that_is_gone_but_still_counts(quorum: Controllers, capsys: Capture) -> None:
    gone = next(id for id in quorum.addresses if id != quorum.leader())
    quorum.kill(gone)
    report = status(quorum, capsys)
    (note,) = [note for note in report["notes"] if "can't be asked" in note]
    at = f"node {gone}, {quorum.addresses[gone]}, can't be asked from here: Connection refused"
    assert note.startswith(at)
    wait_until(lambda: status(quorum, capsys)["may_fail"] == 0, "the voter to be gone")
    assert at in status(quorum, capsys)["notes"]


def test_a_newcomer_with_the_id_of_a_voter_that_runs_is_not_told_to_remove_it(
    quorum: Controllers, capsys: Capture
) -> None:
    twin_of = next(id for id in quorum.addresses if id != quorum.leader())
    file = quorum.add_observer(4, node_id=str(twin_of))
    assert run(quorum, "quorum", "add", str(file)) == 6
    said = capsys.readouterr().err
    assert f"node {twin_of} votes with directory {Uuid(bytes([twin_of] * 16))}, and " in said
    assert " fetches" in said
    assert "quorum remove" not in said
