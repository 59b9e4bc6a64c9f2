"""server and dev: what reaches the server, with the server itself standing aside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from server_stand_in import ServerStandIn

from kraft_wire.cli import main
from kraft_wire.server.config import load_node_config, load_properties
from kraft_wire.server.logging import LEVEL_VARIABLE
from kraft_wire.storage.folder import read_meta_properties

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
    assert main(["server", str(controller_file), "--log-level", "loud"]) == 1
    assert capsys.readouterr().err.startswith("kraft-wire: --log-level: unknown log level 'loud'")
    monkeypatch.setenv(LEVEL_VARIABLE, "quiet")
    assert main(["server", str(controller_file)]) == 1
    assert capsys.readouterr().err.startswith(f"kraft-wire: {LEVEL_VARIABLE}: unknown log level 'quiet'")
    assert server.configs == []


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
    assert main(["dev", "--port", "19093", "--broker-port", "19093"]) == 1
    assert "--port and --broker-port are both 19093" in capsys.readouterr().err
    assert server.configs == []


def test_dev_without_a_folder_leaves_none(server: ServerStandIn) -> None:
    assert main(["dev", "--port", "0"]) == 0
    (config,) = server.configs
    assert config.listeners[0].port > 0
    assert not Path(config.metadata_log_dir).parent.exists()


def test_dev_refuses_what_is_no_port(server: ServerStandIn, capsys: Capture) -> None:
    assert main(["dev", "--port", "99999"]) == 1
    assert capsys.readouterr().err == (
        "kraft-wire: 99999 is not a port; give one from 1 to 65535, or 0 for any\n"
    )
    assert server.configs == []
