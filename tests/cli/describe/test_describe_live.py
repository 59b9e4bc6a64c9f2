"""``kraft-wire describe`` on running controllers of ours."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from kraft_wire.cli import main
from kraft_wire.cli.quorum import EXIT_NO_ANSWER, EXIT_UNFIT, EXIT_UNREADABLE
from tests.support.controller_process import CLUSTER_ID, NODE_ID, ControllerProcess, formatted
from tests.support.live_quorum import SNAPSHOTS, address_of, write

Capture = pytest.CaptureFixture[str]


def test_the_leader_is_asked_for_what_snapshots_do_not_say(tmp_path: Path, capsys: Capture) -> None:
    with ControllerProcess(formatted(tmp_path, SNAPSHOTS)) as process, process.client() as client:
        write(client, range(60))
        process.wait_for("snapshot written")
        address = address_of(process)
        assert main(["describe", "--bootstrap-controller", address, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["cluster_id"], found["committed"]) == (CLUSTER_ID, True)
        assert (found["overview"]["leader"], found["overview"]["voters"]) == (NODE_ID, [NODE_ID])
        assert main(["describe", "--bootstrap-controller", address, "quorum", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["quorum"]
        assert (row["controller"], row["role"], row["registered"]) == (NODE_ID, "leader", True)


def test_the_log_before_the_snapshot_says_who_led_in_the_past(tmp_path: Path, capsys: Capture) -> None:
    with ControllerProcess(formatted(tmp_path, SNAPSHOTS)) as process, process.client() as client:
        write(client, range(60))
        process.wait_for("snapshot written")
        address = address_of(process)
        assert main(["describe", "--bootstrap-controller", address, "--json"]) == 0
        offset = json.loads(capsys.readouterr().out)["offset"]
        past = ["--as-of-offset", str(offset), "--json"]
        assert main(["describe", "--bootstrap-controller", address, *past]) == 0
        overview = json.loads(capsys.readouterr().out)["overview"]
        assert (overview["leader"], overview["voters"]) == (NODE_ID, [NODE_ID])


def test_controllers_of_two_clusters_are_refused(tmp_path: Path, capsys: Capture) -> None:
    with ExitStack() as stack:
        addresses = []
        for id in (CLUSTER_ID, "AAAAAAAAAAAAAAAAAAAABA"):
            (tmp_path / id).mkdir()
            process = stack.enter_context(ControllerProcess(formatted(tmp_path / id, cluster_id=id)))
            addresses.append(address_of(process))
        assert main(["describe", "--bootstrap-controller", ",".join(addresses)]) == EXIT_UNFIT
        assert "names controllers of several clusters" in capsys.readouterr().err


def test_nobody_answers(capsys: Capture) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        words = ["describe", "--bootstrap-controller", address, "--timeout-ms", "500"]
        assert main(words) == EXIT_NO_ANSWER
        assert f"no controller answers: {address}" in capsys.readouterr().err
        assert main([*words, "--command-config", "/no/such/file"]) == EXIT_UNREADABLE
        assert "/no/such/file" in capsys.readouterr().err
