"""``kraft-wire pipeline run`` refuses wrong options before it starts Spark."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kraft_wire.cli import main
from kraft_wire.lake.protocol import Lake, one_command
from kraft_wire.log.files import PARTITION_FOLDER


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["--source", "/logs", "--trigger-interval", "abc"],
            "--trigger-interval 'abc' is not an interval, such as '10 seconds'",
        ),
        ([], "give either --source or --bootstrap-controllers"),
        (
            ["--source", "/logs", "--bootstrap-controllers", "localhost:9093"],
            "give either --source or --bootstrap-controllers",
        ),
        (["--source", "/logs", "--option", "tail"], "--option tail: give NAME=VALUE"),
        (["--source", "/logs", "--setting", "=1"], "--setting =1: give NAME=VALUE"),
        (["--source", "/logs", "--option", "Table=topic"], "--option Table: the pipeline sets it itself"),
        (
            ["--source", "/a", "--master", "yarn", "--remote", "sc://b"],
            "give either --master or --remote",
        ),
        (
            ["--source", "/logs", "--option", "corrupt=rows"],
            "--option corrupt: 'rows' is not fail or row",
        ),
        (["--bootstrap-controllers", "foo"], "--bootstrap-controllers: 'foo' isn't host:port"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "run", "--target", str(tmp_path / "lake"), *words]) == 2
    assert capsys.readouterr().err == f"kraft-wire: {reason}\n"
    assert not (tmp_path / "lake").exists()


def test_a_source_without_logs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "run", "--target", str(tmp_path / "lake"), "--source", "/no/logs"]) == 1
    assert capsys.readouterr().err == (
        "kraft-wire: no __cluster_metadata-0 in or below /no/logs: "
        "give a node's metadata folder, or one above\n"
    )
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("remote", ["nonsense", "http://localhost", "sc://", "sc://localhost:many"])
def test_a_server_is_named_by_its_url(
    remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--source", "/logs", "--target", str(tmp_path / "lake"), "--remote", remote]
    assert main(["pipeline", "run", *words]) == 2
    assert capsys.readouterr().err.startswith(f"kraft-wire: --remote {remote}: ")


def test_a_server_that_does_not_listen_is_told_of_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        remote = f"sc://127.0.0.1:{closed.getsockname()[1]}/;user_id=me"
    words = ["--source", "/logs", "--target", str(tmp_path / "lake"), "--remote", remote]
    assert main(["pipeline", "run", *words]) == 1
    assert f"--remote {remote}: Connection refused; is a server running there?" in capsys.readouterr().err


def test_a_target_that_another_pipeline_has_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs" / PARTITION_FOLDER).mkdir(parents=True)
    for taken in (Lake, one_command):
        with taken(tmp_path / "lake"):
            words = ["--source", str(tmp_path / "logs"), "--target", str(tmp_path / "lake")]
            assert main(["pipeline", "run", *words]) == 1
        assert "another pipeline writes there; stop it, or choose another" in capsys.readouterr().err
