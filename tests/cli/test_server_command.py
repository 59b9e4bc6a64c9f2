"""server and dev: what reaches the server, with the server itself standing aside."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kraft_wire.cli import main
from kraft_wire.server.config.server_config import load_node_config, load_properties
from kraft_wire.server.logging import LEVEL_VARIABLE
from kraft_wire.storage.folder import read_meta_properties
from tests.cli.server_stand_in import ServerStandIn
from tests.support.controller_process import GIVE_UP_S, formatted

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("options", [(), ("--override", "node.id=7", "--override=num.partitions=3")])
def test_server_hands_over_the_configuration(
    options: tuple[str, ...], server: ServerStandIn, controller_file: Path
) -> None:
    assert main(["server", str(controller_file), *options]) == 0
    (config,) = server.configs
    assert config.node_id == (7 if options else 1)
    assert config.settings.num_partitions == (3 if options else 1)


def test_server_s_exit_code_is_the_command_s(server: ServerStandIn, controller_file: Path) -> None:
    server.exit_code = 1
    assert main(["server", str(controller_file)]) == 1


def test_keys_without_effect_are_logged(
    server: ServerStandIn, controller_file: Path, capsys: Capture
) -> None:
    assert main(["server", str(controller_file), "--override", "num.io.threads=4"]) == 0
    (line,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (line["level"], line["file"]) == ("warning", str(controller_file))
    assert line["event"].startswith("num.io.threads has no effect")


def test_a_bad_file_never_reaches_the_server(
    server: ServerStandIn, controller_file: Path, capsys: Capture
) -> None:
    words = ["server", str(controller_file), "--override", "node.id=x", "--override", "num.partitions=0"]
    assert main(words) == 1
    assert server.configs == []
    assert capsys.readouterr().err.splitlines() == [
        f"kraft-wire: {controller_file}: 2 problems",
        "  node.id=x: must be a whole number of 32 bits",
        "  num.partitions=0: must be at least 1",
    ]


def test_an_unknown_log_level_is_refused(
    server: ServerStandIn,
    controller_file: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for command in (["server", str(controller_file)], ["dev"]):
        assert main([*command, "--log-level", "loud"]) == 2
        assert capsys.readouterr().err == (
            'kraft-wire: Invalid value "loud" for --log-level. '
            'Choose from: "debug", "info", "warning", "error".\n'
        )
    monkeypatch.setenv(LEVEL_VARIABLE, "quiet")
    assert main(["server", str(controller_file)]) == 2
    assert capsys.readouterr().err.startswith(f"kraft-wire: {LEVEL_VARIABLE}: unknown log level 'quiet'")
    assert server.configs == []


@pytest.mark.parametrize("words", [["--log-level", "ERROR"], ["--log-level=Error"]], ids="/".join)
def test_a_log_level_is_read_in_any_case(server: ServerStandIn, tmp_path: Path, words: list[str]) -> None:
    assert main(["dev", "--dir", str(tmp_path / "new"), "--port", "0", *words]) == 0
    assert logging.getLogger().level == logging.ERROR


def test_dev_formats_for_controller_and_broker_and_prints_the_broker_s_file(
    server: ServerStandIn, tmp_path: Path, capsys: Capture
) -> None:
    words = ["dev", "--dir", str(tmp_path / "new"), "--port", "19093", "--broker-port", "19092"]
    assert main(words) == 0
    (config,) = server.configs
    assert [endpoint.port for endpoint in config.listeners] == [19093]
    controller = read_meta_properties(Path(config.metadata_log_dir))
    broker_file = tmp_path / "new" / "broker.properties"
    broker = load_node_config(str(broker_file))
    assert broker.process_roles == ("broker",)
    assert read_meta_properties(Path(broker.metadata_log_dir)).cluster_id == controller.cluster_id
    properties = load_properties(str(broker_file))
    assert properties["controller.quorum.bootstrap.servers"] == "127.0.0.1:19093"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert broker_file.read_text() in capsys.readouterr().out


def test_dev_goes_on_with_what_is_there(server: ServerStandIn, tmp_path: Path) -> None:
    words = ["dev", "--dir", str(tmp_path), "--port", "19093"]
    assert main(words) == 0
    before = read_meta_properties(tmp_path / "controller")
    assert main(words) == 0
    assert read_meta_properties(tmp_path / "controller") == before
    assert len(server.configs) == 2


def test_dev_in_the_folder_of_another_leaves_its_broker_s_file(
    server: ServerStandIn, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["dev", "--dir", str(tmp_path), "--port", "19093"]) == 0
    before = (tmp_path / "broker.properties").read_text()
    capsys.readouterr()
    server.refuses = OSError(0, "another process holds this lock")
    assert main(["dev", "--dir", str(tmp_path), "--port", "19094"]) == 1
    assert (tmp_path / "broker.properties").read_text() == before
    assert capsys.readouterr().out == ""


def test_dev_does_not_blame_the_disk_for_a_wrong_folder(server: ServerStandIn, capsys: Capture) -> None:
    assert main(["dev", "--dir", "/proc/kraft-wire"]) == 1
    reason = "creation failed: No such file or directory"
    assert capsys.readouterr().err == f"kraft-wire: /proc/kraft-wire: {reason}\n"
    assert server.configs == []


def test_dev_refuses_one_port_for_both(server: ServerStandIn, capsys: Capture) -> None:
    assert main(["dev", "--port", "19093", "--broker-port", "19093"]) == 2
    assert "--port and --broker-port are both 19093" in capsys.readouterr().err
    assert server.configs == []


def test_dev_without_a_folder_leaves_none(server: ServerStandIn) -> None:
    assert main(["dev", "--port", "0"]) == 0
    (config,) = server.configs
    assert config.listeners[0].port > 0
    assert not Path(config.metadata_log_dir).parent.exists()


def test_dev_refuses_what_is_no_port(server: ServerStandIn, capsys: Capture) -> None:
    assert main(["dev", "--port", "99999"]) == 2
    assert capsys.readouterr().err == (
        "kraft-wire: --port 99999 is not a port; give one from 1 to 65535, or 0 for any\n"
    )
    assert server.configs == []


def test_dev_names_the_option_of_a_port_in_use_and_formats_nothing(
    server: ServerStandIn, tmp_path: Path, capsys: Capture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["dev", "--dir", str(tmp_path / "dev"), "--port", str(port)]) == 1
    assert capsys.readouterr().err == (
        f"kraft-wire: --port {port}: Address already in use; give another --port, or 0 for any free one\n"
    )
    assert not (tmp_path / "dev").exists()
    assert server.configs == []


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_format_of_the_log_can_be_chosen(
    form: str, server: ServerStandIn, controller_file: Path, capsys: Capture
) -> None:
    words = ["server", str(controller_file), "--override", "num.io.threads=4", "--log-format", form]
    assert main(words) == 0
    line = capsys.readouterr().err
    assert line.startswith("{") == (form == "json")
    assert "num.io.threads has no effect" in line


def test_a_server_whose_stderr_is_closed_runs_and_stops(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file = formatted(tmp_path, {"listeners": f"CONTROLLER://127.0.0.1:{port}"})
    words = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "kraft_wire", "server", str(file)]
    deadline = time.monotonic() + GIVE_UP_S
    with subprocess.Popen(words) as process:
        while True:
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        process.terminate()
        assert process.wait(GIVE_UP_S) == 0
