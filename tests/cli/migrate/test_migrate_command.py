"""quorum migrate --check: against real controllers of ours."""

from __future__ import annotations

import shlex
import socket
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.cli import main
from kraft_wire.client.connection import DRAFT_SIGNS
from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.survey import survey
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from kraft_wire.raft.drafted.dialect import DRAFTED
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, guard_text
from kraft_wire.wire.served_versions import ServedVersions
from tests.support.controller_process import NODE_ID, ControllerProcess, formatted
from tests.support.live_quorum import QUIET, Controllers, three_controllers
from tests.support.live_quorum import settings as settings_of
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Capture = pytest.CaptureFixture[str]
REFUSED = "127.0.0.1:1"


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    with three_controllers(tmp_path_factory.mktemp("quorum")) as controllers:
        controllers.write(range(3))
        controllers.all_fetch()
        yield controllers


def of(controllers: Controllers) -> list[str]:
    return ["--bootstrap-controller", ",".join(controllers.addresses.values())]


def file_of(controllers: Controllers, id: int) -> Path:
    return controllers.folder(id).parent / "controller.properties"


def files_of(controllers: Controllers) -> list[str]:
    return [f"--config={file_of(controllers, id)}" for id in controllers.addresses]


def check(capsys: Capture, to: str, *words: str, expected: int = 0) -> dict[str, Any]:
    """Run the check with --json, and return its report."""
    capsys.readouterr()
    assert main(["quorum", "migrate", "--check", "--to", to, "--json", *words]) == expected
    report: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    return report


def test_the_followers_go_to_java_first(quorum: Controllers, capsys: Capture) -> None:
    report = check(capsys, "java", *of(quorum), *files_of(quorum))
    leader = quorum.leader()
    follower = min({1, 2, 3} - {leader})
    assert report["next"]["node"] == f"controller {follower}"
    stop, start = report["next"]["commands"]
    assert shlex.split(stop, comments=True) == ["kill", str(quorum.processes[follower].pid)]
    assert start == f"kafka-server-start.sh {file_of(quorum, follower)}"
    assert {node["software"] for node in report["nodes"]} == {"kraft-wire"}
    assert {node["role"] for node in report["nodes"]} == {"leader", "voter"}
    assert shlex.split(report["again"])[:6] == ["kraft-wire", "quorum", "migrate", "--check", "--to", "java"]


def test_a_release_that_is_too_old_is_in_the_way(quorum: Controllers, capsys: Capture) -> None:
    report = check(capsys, "java", *of(quorum), "--kafka-release", "4.3", expected=15)
    assert [finding["kind"] for finding in report["findings"]] == ["in the way"]
    assert "--kafka-release 4.3" in report["again"]


def test_a_guard_in_the_folder_is_in_the_way(quorum: Controllers, capsys: Capture) -> None:
    guard = quorum.folder(1) / "__cluster_metadata-0" / LOST_BELOW
    guard.write_text(guard_text(5))
    try:
        report = check(capsys, "java", *of(quorum), *files_of(quorum), expected=15)
    finally:
        guard.unlink()
    assert report["next"]["node"] == "controller 1"
    assert f"has {LOST_BELOW}" in report["next"]["why"]


@pytest.mark.parametrize("to", ["kraft-wire", "dynamic"])
def test_nothing_is_left_to_do(quorum: Controllers, to: str, capsys: Capture) -> None:
    report = check(capsys, to, *of(quorum), *files_of(quorum))
    assert (report["is_reached"], report["next"]) == (True, None)
    assert {node["state"] for node in report["nodes"]} == {"done"}
    report = check(capsys, to, *of(quorum))
    assert report["is_reached"]


def test_a_file_without_a_bootstrap_server_that_answers(
    quorum: Controllers, capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.properties"
    bootstrap = ",".join(quorum.addresses.values())
    file.write_text(file_of(quorum, 1).read_text().replace(bootstrap, f"{REFUSED},nowhere"))
    report = check(capsys, "dynamic", *of(quorum), f"--config={file}")
    assert report["next"]["node"] == "controller 1"
    assert f"controller.quorum.bootstrap.servers={bootstrap}" in report["next"]["commands"][1]
    (node, *_) = report["nodes"]
    assert [finding["what"].partition(" names ")[2] for finding in node["findings"]] == [
        f"{REFUSED}, where no controller of this cluster answers: Connection refused",
        "nowhere, where no controller of this cluster answers: it is not host:port",
    ]


def test_the_text(quorum: Controllers, capsys: Capture) -> None:
    assert main(["quorum", "migrate", "--check", "--to", "java", *of(quorum)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "Wanted         Java on all controllers"
    assert "Nothing is in the way. Not known: 3." in lines
    assert lines[-2] == "Then ask again:"


def test_a_stopped_voter_is_in_the_way(tmp_path: Path, capsys: Capture) -> None:
    with three_controllers(tmp_path) as controllers:
        controllers.all_fetch()
        stopped = min({1, 2, 3} - {controllers.leader()})
        controllers.kill(stopped)
        while True:
            code = main(["quorum", "migrate", "--check", "--to", "java", *of(controllers), "--json"])
            report = msgspec.json.decode(capsys.readouterr().out)
            if code == 15:  # the leader has noticed
                break
        report = check(capsys, "java", *of(controllers), *files_of(controllers), expected=15)
        assert report["next"]["node"] == f"controller {stopped}"
        assert report["next"]["commands"] == [f"kafka-server-start.sh {file_of(controllers, stopped)}"]
        states = {node["name"]: node["state"] for node in report["nodes"]}
        assert states.pop(f"controller {stopped}") == "not known"
        assert set(states.values()) == {"to do"}


def test_a_static_quorum_becomes_dynamic_by_the_printed_commands(tmp_path: Path, capsys: Capture) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    settings = {
        **QUIET,
        "controller.quorum.voters": f"{NODE_ID}@localhost:{port}",
        "controller.quorum.bootstrap.servers": "",
        "listeners": f"CONTROLLER://{address}",
    }
    file = formatted(tmp_path, settings, voters=())
    options = ["--bootstrap-controller", address, f"--config={file}"]
    with ControllerProcess(file) as process:
        process.wait_for("first write committed")
        before = log_end(address)
        report = check(capsys, "dynamic", *options)
        assert log_end(address) == before
        assert report["next"]["commands"] == [
            f"kafka-features.sh --bootstrap-controller {address} upgrade --feature kraft.version=1"
        ]
        (finding,) = report["nodes"][0]["findings"]
        assert finding["kind"] == "note"
        assert f"reached at {address}, which it advertises, not at localhost:{port}" in finding["what"]
        upgrade(port)
        report = check(capsys, "dynamic", *options)
        sed, printf, kill, start = report["next"]["commands"]
        subprocess.run(f"{sed}\n{printf}", shell=True, check=True)
        assert shlex.split(kill, comments=True) == ["kill", str(process.pid)]
        assert start == f"kraft-wire server {file}"
        assert check(capsys, "dynamic", *options)["next"]["commands"] == [kill, start]
    with ControllerProcess(file) as process:
        process.wait_for("first write committed")
        assert check(capsys, "dynamic", *options)["is_reached"]


def log_end(address: str) -> int:
    with QuorumClient(settings_of(address)) as client:
        return LiveLog(client).ends().high_watermark


def upgrade(port: int) -> None:
    """Upgrade kraft.version as kafka-features.sh does."""
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
    with WireClient(port) as client:
        assert client.call(request, 2, UpdateFeaturesResponse).error_code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--to", "java"], "quorum migrate only checks, and changes nothing: give --check."),
        (["--to", "java", "--check", "--kafka-release", "9.9"], "--kafka-release: release version '9.9' is"),
        (
            ["--to", "java", "--check", "--kafka-release", "4.x"],
            "is unknown; use a release, such as 4.3, or one",
        ),
        (["--to", "dynamic", "--check", "--kafka-release", "4.4"], "--kafka-release goes with --to java"),
        (["--to", "python", "--check"], 'Invalid value "python" for --to'),
        (["--check"], "--to is missing"),
    ],
)
def test_wrong_usage_ends_with_2(words: list[str], problem: str, capsys: Capture) -> None:
    assert main(["quorum", "migrate", *words, "--bootstrap-controller", REFUSED]) == 2
    assert problem in capsys.readouterr().err


def test_a_file_that_can_not_be_read_ends_with_5(tmp_path: Path, capsys: Capture) -> None:
    words = ["--bootstrap-controller", REFUSED, f"--config={tmp_path / 'no.properties'}"]
    assert main(["quorum", "migrate", "--check", "--to", "java", *words]) == 5
    assert "no.properties: cannot be read" in capsys.readouterr().err


def test_no_controller_ends_with_3_and_no_leader_with_4(tmp_path: Path, capsys: Capture) -> None:
    words = ["quorum", "migrate", "--check", "--to", "java", "--timeout-ms", "1500"]
    assert main([*words, "--bootstrap-controller", REFUSED]) == 3
    assert capsys.readouterr().err.startswith("kraft-wire: no controller answers: ")
    with three_controllers(tmp_path) as controllers:
        for _ in range(2):
            controllers.kill(controllers.leader())
        assert main([*words, *of(controllers)]) == 4
        assert "no leader in 1500 ms" in capsys.readouterr().err


def test_drafted_listeners_are_seen_and_not_asked(tmp_path: Path, capsys: Capture) -> None:
    """The first endpoint of each voter is a drafted one."""
    assert DRAFTED.is_spoken_by(served(DRAFT_SIGNS))
    with three_controllers(tmp_path, drafted=True) as controllers:
        asked = settings_of(*controllers.addresses.values())
        wait_until(
            lambda: all(len(answer.registrations or ()) == 3 for answer in survey(asked)),
            "all controllers to be registered",
        )
        report = check(capsys, "java", *of(controllers), *files_of(controllers), expected=15)
        assert {node["address"] for node in report["nodes"]} == set(controllers.addresses.values())
        assert "kraft.wire.kip853.draft.listeners names DRAFT" in report["next"]["why"]
        drafted = ",".join(controllers.raft_addresses.values())
        words = ["quorum", "status", "--bootstrap-controller", drafted, "--timeout-ms", "3000"]
        assert main(words) == 3
        said = capsys.readouterr().err
        hint = "this listener speaks KIP-853's draft: use another one of controller.listener.names"
        for address in controllers.raft_addresses.values():
            assert f"{address}: {hint}" in said


def served(keys: Iterable[int]) -> ServedVersions:
    return ServedVersions(ApiVersionsResponse(api_keys=[ApiVersion(api_key=key) for key in keys]))
