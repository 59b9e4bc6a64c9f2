"""quorum status and describe: against real controllers, with a leader, without one, and from folders."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.cli import main
from kraft_wire.cli.quorum.history import read_history
from kraft_wire.cli.quorum.status import status as status_command
from kraft_wire.client.errors import QuorumError
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import QuorumHistory
from tests.support.controller_process import CLUSTER_ID, NODE_ID, ControllerProcess, formatted
from tests.support.live_quorum import Controllers, address_of, static_controller, three_controllers

Capture = pytest.CaptureFixture[str]
REFUSED = "127.0.0.1:1"


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    with three_controllers(tmp_path_factory.mktemp("quorum")) as controllers:
        controllers.write(range(3))
        controllers.all_fetch()
        yield controllers


def status(capsys: Capture, *words: str, expected: int = 0) -> dict[str, Any]:
    """Run quorum status --json, and return its report."""
    assert main(["quorum", "status", "--json", *words]) == expected
    report: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    return report


def of(controllers: Controllers) -> list[str]:
    return ["--bootstrap-controller", ",".join(controllers.addresses.values())]


def test_status_shows_every_replica_and_the_voters_history(quorum: Controllers, capsys: Capture) -> None:
    report = status(capsys, *of(quorum))
    leader = quorum.leader()
    assert (report["leader_id"], report["kraft_version"]) == (leader, 1)
    assert report["may_fail"] == 1
    replicas = {replica["id"]: replica for replica in report["replicas"]}
    assert {id: replica["role"] for id, replica in replicas.items()} == {
        id: "leader" if id == leader else "follower" for id in (1, 2, 3)
    }
    for id, replica in replicas.items():
        assert replica["endpoints"] == [f"CONTROLLER://{quorum.addresses[id]}"]
        assert replica["registered"] is True
        assert replica["auto_join"] is False
        assert replica["log_end_offset"] > 3
    assert [row["voters"] for row in report["history"]] == [[1, 2, 3]]
    assert report["notes"] == []


def test_a_log_that_is_not_read_to_its_end_says_nothing_of_registrations(
    quorum: Controllers, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first part has those of that time."""

    def broken(client: QuorumClient, found: QuorumHistory) -> None:
        read_history(client, found)
        found.registrations = {9: (Endpoint("CONTROLLER", "gone", 1),)}
        raise QuorumError("the leader went away")

    monkeypatch.setattr(status_command, "read_history", broken)
    report = status(capsys, *of(quorum))
    assert report["notes"] == ["the history of the voters is incomplete: the leader went away"]
    assert [replica["registered"] for replica in report["replicas"]] == [True] * 3
    assert report["kraft_version"] == 1


def test_status_as_text_names_all_columns(quorum: Controllers, capsys: Capture) -> None:
    assert main(["quorum", "status", "--no-history", *of(quorum)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"Leader          {quorum.leader()}" in lines
    assert "May fail        1 more voter" in lines
    (header,) = [line for line in lines if line.startswith("Id ")]
    assert header.split() == [
        *("Id", "Directory", "Role", "Epoch", "LogEnd", "Lag", "LagMs"),
        *("LastCaughtUp", "Registered", "AutoJoin", "Endpoints"),
    ]
    assert not any(line.startswith("Voters by") for line in lines)


def test_stale_asks_each_controller_itself(quorum: Controllers, capsys: Capture) -> None:
    follower = next(id for id in quorum.addresses if id != quorum.leader())
    words = ["--stale", "--bootstrap-controller", f"{quorum.addresses[follower]},{REFUSED}"]
    report = status(capsys, *words)
    assert (report["leader_id"], report["last_known_leader_id"]) == (None, quorum.leader())
    asked, refused = report["notes"]
    leader = f"remembers node {quorum.leader()} as leader of epoch "
    assert asked.startswith(f"{quorum.addresses[follower]} {leader}")
    assert refused.startswith(f"{REFUSED} can't be asked: ")


def test_digest_compares_the_states_of_all_controllers_at_one_offset(
    quorum: Controllers, capsys: Capture
) -> None:
    words = [
        "--no-history",
        "--digest",
        "--bootstrap-controller",
        f"{quorum.addresses[quorum.leader()]},{REFUSED}",
    ]
    report = status(capsys, *words)
    *states, refused = report["states"]
    assert sorted(state["id"] for state in states) == [1, 2, 3]
    assert len({(state["end_offset"], state["digest"]) for state in states}) == 1
    assert states[0]["record_count"] > 0
    assert (refused["id"], refused["digest"]) == (None, None)
    assert refused["problem"]
    assert report["states_differ"] == ""


def test_digest_of_a_log_that_grows_fast_asks_for_later_and_later_offsets(
    quorum: Controllers, capsys: Capture
) -> None:
    with ThreadPoolExecutor(1) as writer:
        writer.submit(quorum.write, range(100, 160))
        report = status(capsys, *of(quorum), "--no-history", "--digest")
    (digest,) = {state["digest"] for state in report["states"]}
    assert digest is not None


def test_digest_as_text(quorum: Controllers, capsys: Capture) -> None:
    assert main(["quorum", "status", "--no-history", "--digest", *of(quorum)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line == "State of the metadata:")
    assert [line.split(":")[0] for line in lines[at + 1 :]] == ["  node 1", "  node 2", "  node 3"]


@pytest.mark.parametrize(
    "words", [["--digest", "--stale", "--bootstrap-controller", REFUSED], ["--digest", "--from-dir", "."]]
)
def test_a_digest_needs_a_leader(words: list[str], capsys: Capture) -> None:
    assert main(["quorum", "status", *words]) == 2
    assert "--digest" in capsys.readouterr().err


@contextmanager
def another_leader(folder: Path, cluster_id: str = CLUSTER_ID) -> Iterator[str]:
    """Run a controller that is the only voter of its own quorum; gives its address."""
    with ControllerProcess(formatted(folder, cluster_id=cluster_id)) as process:
        yield address_of(process)


def test_two_controllers_that_lead_end_with_17(quorum: Controllers, tmp_path: Path, capsys: Capture) -> None:
    """As after a recovery, when old controllers were started on their old folders."""
    with another_leader(tmp_path) as address:
        for words in ([], ["--no-history"], ["--stale"]):
            options = [*of(quorum)[:-1], f"{of(quorum)[-1]},{address}", *words]
            assert main(["quorum", "status", "--json", *options]) == 17
            said = capsys.readouterr()
            assert "2 controllers lead: node " in said.err
            leaders = msgspec.json.decode(said.out)["leaders"]
            assert {row["id"] for row in leaders} == {quorum.leader(), NODE_ID}


def test_controllers_of_two_clusters_end_with_6(quorum: Controllers, tmp_path: Path, capsys: Capture) -> None:
    other = "0Hqdn6mPQ5GrP21WaEIN5Q"
    with another_leader(tmp_path, other) as address:
        options = [*of(quorum)[:-1], f"{of(quorum)[-1]},{address}"]
        for words in (["status"], ["status", "--stale"], ["remove", "3", "--yes"], ["promote", "3"]):
            assert main(["quorum", *words, *options]) == 6
            said = capsys.readouterr()
            assert said.err.startswith("kraft-wire: --bootstrap-controller names controllers of several clus")
            assert f"{other} ({address})" in said.err
            assert said.out == ""


def test_status_from_the_folders_of_running_controllers(quorum: Controllers, capsys: Capture) -> None:
    report = status(capsys, "--from-dir", str(quorum.folder(1)), "--from-dir", str(quorum.folder(2)))
    replicas = {replica["id"]: replica for replica in report["replicas"]}
    assert sorted(replicas) == [1, 2, 3]
    assert (replicas[1]["role"], replicas[1]["pid"]) == ("voter", quorum.processes[1].pid)
    assert replicas[1]["log_end_offset"] > 3
    assert (replicas[3]["role"], replicas[3]["log_end_offset"]) == ("voter", None)
    assert all(replica["registered"] for replica in replicas.values())
    format_voters, first_leader_s = report["history"]
    assert format_voters["offset"] == -1
    assert first_leader_s["voters"] == [1, 2, 3]


def test_describe_status_has_kafka_s_lines(quorum: Controllers, capsys: Capture) -> None:
    assert main(["quorum", "describe", "--status", *of(quorum)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *("ClusterId", "LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag", "MaxFollowerLagTimeMs"),
        *("CurrentVoters", "CurrentObservers"),
    ]
    assert lines[1] == f"LeaderId:               {quorum.leader()}"
    assert (
        f'{{"id": 1, "directoryId": "AQEBAQEBAQEBAQEBAQEBAQ", "endpoints": ["CONTROLLER://{quorum.addresses[1]}"]}}'
        in lines[6]
    )
    assert lines[7] == "CurrentObservers:       []"


def test_describe_replication_has_kafka_s_columns(quorum: Controllers, capsys: Capture) -> None:
    assert main(["quorum", "describe", "--replication", "--human-readable", *of(quorum)]) == 0
    header, first, *others = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert [name.strip() for name in header] == [
        *("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp"),
        *("Status", ""),
    ]
    assert (first[0].strip(), first[6].strip()) == (str(quorum.leader()), "Leader")
    assert [row[6].strip() for row in others] == ["Follower", "Follower"]
    assert first[4].strip().endswith(" ms ago")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["status"], "give either --bootstrap-controller or --from-dir"),
        (
            ["status", "--from-dir", "d", "--bootstrap-controller", "h:1"],
            "give either ",
        ),
        (["status", "--stale", "--from-dir", "d"], "--stale goes with --bootstrap-controller"),
        (
            ["status", "--bootstrap-controller", "nowhere"],
            "'nowhere' isn't host:port",
        ),
        (["status", "--bootstrap-controller", "h:1", "--timeout-ms", "0"], "--timeout-ms 0 is not a number"),
        (["describe", "--bootstrap-controller", "h:1"], "give one of --status and --replication"),
        (
            ["describe", "--bootstrap-controller", "h:1", "--status", "--replication"],
            "give one of --status and --replication",
        ),
        (
            ["describe", "--bootstrap-controller", "h:1", "--status", "--human-readable"],
            "--human-readable goes with --replication",
        ),
    ],
)
def test_wrong_options_end_with_2(words: list[str], problem: str, capsys: Capture) -> None:
    assert main(["quorum", *words]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("words", [["status"], ["status", "--stale"], ["describe", "--status"]], ids=" ".join)
def test_no_controller_ends_with_3(words: list[str], capsys: Capture) -> None:
    options = ["--bootstrap-controller", REFUSED, "--timeout-ms", "500"]
    assert main(["quorum", *words, *options]) == 3
    assert capsys.readouterr().err.startswith(f"kraft-wire: no controller answers: {REFUSED}: ")


@pytest.mark.parametrize("host", ["c1..example", "c" * 64 + ".example"])
def test_what_can_not_be_a_host_is_one_that_can_not_be_asked(
    host: str, quorum: Controllers, capsys: Capture
) -> None:
    """A controller may have told such a name."""
    given = f"{host}:9093,{quorum.addresses[quorum.leader()]}"
    report = status(capsys, "--no-history", "--bootstrap-controller", given)
    assert f"{host}:9093 can't be asked from here: {host!r} can't be the name of a host" in report["notes"]


def test_bad_security_settings_end_with_2(tmp_path: Path, capsys: Capture) -> None:
    for number, line in enumerate(
        ("security.protocol=NONE", "security.protocol=SSL\nssl.truststore.location=/no")
    ):
        config = tmp_path / f"{number}.properties"
        config.write_text(line)
        for words in (["status"], ["status", "--stale"], ["describe", "--status"]):
            options = ["--bootstrap-controller", REFUSED, "--timeout-ms", "500", "--command-config"]
            assert main(["quorum", *words, *options, str(config)]) == 2
            shown = capsys.readouterr().err
            assert shown.startswith("kraft-wire: --command-config: s")
            assert "kafka." not in shown


@pytest.mark.parametrize(
    "words", [["status"], ["describe", "--status"], ["remove", "2", "--yes"]], ids=" ".join
)
def test_missing_security_settings_end_with_5(words: list[str], tmp_path: Path, capsys: Capture) -> None:
    missing = tmp_path / "missing.properties"
    options = ["--bootstrap-controller", REFUSED, "--command-config", str(missing)]
    assert main(["quorum", *words, *options]) == 5
    assert capsys.readouterr().err == f"kraft-wire: {missing}: cannot be read: No such file or directory\n"


def test_a_static_quorum_has_no_history(tmp_path: Path, capsys: Capture) -> None:
    with static_controller(tmp_path) as (process, address):
        process.wait_for("first write committed")
        report = status(capsys, "--bootstrap-controller", address)
    assert (report["leader_id"], report["kraft_version"], report["history"]) == (NODE_ID, 0, [])
    assert report["may_fail"] == 0
    from_disk = status(capsys, "--from-dir", str(tmp_path / "data"))
    assert from_disk["notes"] == [f"the log names no voters: controller.quorum.voters does ({NODE_ID})"]


def test_an_unreadable_folder_ends_with_5(tmp_path: Path, capsys: Capture) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        assert main(["quorum", "status", "--from-dir", str(folder)]) == 5
        assert str(folder) in capsys.readouterr().err


def test_without_a_leader_status_shows_what_is_known_and_ends_with_4(tmp_path: Path, capsys: Capture) -> None:
    with three_controllers(tmp_path) as controllers:
        for _ in range(2):
            controllers.kill(controllers.leader())
        (survivor,) = controllers.processes
        assert main(["quorum", "status", *of(controllers), "--timeout-ms", "3000"]) == 4
        shown = capsys.readouterr()
        assert f"{controllers.addresses[survivor]} " in shown.out
        assert "Leader          none (last known: " in shown.out
        yet, *_ = shown.err.splitlines()
        assert yet.startswith("kraft-wire: no leader yet, asking for up to 3 s: ")
        assert "kraft-wire: no leader in 3000 ms: " in shown.err
        assert "[Errno" not in shown.err
        assert "--stale" not in shown.err, "what it shows is shown already"
        assert "Start the voters that don't answer" in shown.err
        lines = [line for line in shown.out.splitlines() if line]
        rows = {line.split()[0]: line for line in lines if line.split()[0].isdigit()}
        assert set(rows) == {"1", "2", "3"}
        assert {id for id, line in rows.items() if "silent" not in line} == {str(survivor)}
        assert all(controllers.addresses[int(id)] in line for id, line in rows.items())
        assert main(["quorum", "describe", "--status", *of(controllers), "--timeout-ms", "1500"]) == 4
        words = ["--stale", "--bootstrap-controller", controllers.addresses[survivor]]
        assert status(capsys, *words)["leader_epoch"] >= 1
