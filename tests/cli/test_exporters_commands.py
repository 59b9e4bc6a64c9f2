"""exporters list, pause, resume and reset: against real controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.cli import main
from kraft_wire.cli.exporters.list_them import report_of, text_of
from kraft_wire.protocol.own_messages.exporter_positions_response import Position
from tests.support.controller_process import ServerProcess
from tests.support.http_client import HTTP, scraped
from tests.support.live_quorum import Controllers, static_controller, three_controllers
from tests.support.scrapes import PLAIN
from tests.support.waiting import wait_until

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Controllers]:
    """Controllers with an exporter ``audit``, each with a folder of its own."""
    with three_controllers(tmp_path) as controllers:
        for id in (1, 2, 3):
            controllers.kill(id)
            keys = {
                "kraft.wire.exporters": "audit",
                "kraft.wire.exporter.audit.type": "jsonl",
                "kraft.wire.exporter.audit.path": str(tmp_path / f"audit-{id}"),
                "kraft.wire.exporter.audit.start": "0",
                **HTTP,
            }
            with controllers.file(id).open("a") as file:
                file.writelines(f"{key}={value}\n" for key, value in keys.items())
            controllers.start_one(id)
        controllers.leader()
        yield controllers


def run(controllers: Controllers, *words: str) -> int:
    return main(["exporters", *words, "--bootstrap-controller", ",".join(controllers.addresses.values())])


def audit(controllers: Controllers, capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert run(controllers, "list", "--json") == 0
    (row,) = msgspec.json.decode(capsys.readouterr().out)["exporters"]
    found: dict[str, Any] = row
    return found


def wait_for_lag(controllers: Controllers, capsys: Capture, *, above: int = -1, at_most: int = 10**9) -> None:
    def has_lag() -> bool:
        lag = audit(controllers, capsys)["lag"]
        return lag is not None and above < lag <= at_most

    wait_until(has_lag, "the exporter's lag")


def offsets(folder: Path) -> list[int]:
    """Return the offsets of the lines of all controllers' exporters."""
    return [
        msgspec.json.decode(line)["offset"]
        for path in sorted(folder.glob("audit-*/*.jsonl"))
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


def test_a_paused_exporter_stays_paused_after_a_failover_and_goes_on_where_it_was(
    quorum: Controllers, tmp_path: Path, capsys: Capture
) -> None:
    quorum.write(range(5))
    wait_for_lag(quorum, capsys, at_most=0)
    assert run(quorum, "pause", "audit") == 0
    assert "Exporter audit is paused" in capsys.readouterr().out
    quorum.processes[quorum.leader()].wait_for("exporters stopped")
    quorum.write(range(5, 10))
    wait_for_lag(quorum, capsys, above=4)
    assert audit(quorum, capsys)["state"] == "paused"
    before = offsets(tmp_path)
    quorum.kill(quorum.leader())
    quorum.write(range(10, 15))
    assert audit(quorum, capsys)["state"] == "paused"
    assert offsets(tmp_path) == before
    assert run(quorum, "resume", "audit") == 0
    wait_for_lag(quorum, capsys, at_most=0)
    assert audit(quorum, capsys)["state"] == "exporting"
    after = offsets(tmp_path)
    assert set(after) == set(range(max(after) + 1))


def test_a_reset_exporter_exports_again_once(quorum: Controllers, tmp_path: Path, capsys: Capture) -> None:
    quorum.write(range(5))
    wait_for_lag(quorum, capsys, at_most=0)
    assert run(quorum, "reset", "audit", "--to", "0") == 8, "not confirmed"
    shown = capsys.readouterr()
    assert "the records from there on come twice" in shown.out
    assert "--yes" in shown.err
    assert run(quorum, "reset", "audit", "--to", "0", "--yes") == 0
    reset = quorum.processes[quorum.leader()].wait_for("exporter reset")
    assert (reset["exporter"], reset["reset"].split("@")[0]) == ("audit", "0")
    wait_until(lambda: offsets(tmp_path).count(0) == 2, "the first record to come twice")
    wait_for_lag(quorum, capsys, at_most=0)
    assert audit(quorum, capsys)["reset"] == reset["reset"]
    assert offsets(tmp_path).count(0) == 2


def test_kafka_s_tools_can_order_it_too(quorum: Controllers, capsys: Capture) -> None:
    """It is an ordinary configuration of all brokers."""
    with quorum.processes[quorum.leader()].client() as client:
        client.set_config("kraft.wire.exporter.audit.paused", "true")
    wait_until(lambda: audit(quorum, capsys)["state"] == "paused", "the pause")
    leader = quorum.processes[quorum.leader()]
    wait_until(lambda: _shown_as_paused(leader), "the pause in the metrics")


def _shown_as_paused(controller: ServerProcess) -> bool:
    (sample,) = scraped(controller, PLAIN)["kraft_wire_exporters_paused"].samples
    return (sample.labels, sample.value) == ({"exporter": "audit"}, 1)


@pytest.mark.parametrize("words", [["pause", "other"], ["resume", "other"], ["reset", "other", "--yes"]])
def test_an_exporter_that_there_is_not_ends_with_6(
    quorum: Controllers, words: list[str], capsys: Capture
) -> None:
    assert run(quorum, *words) == 6
    assert "has no exporter 'other'; it has audit" in capsys.readouterr().err


def test_a_controller_without_exporters_ends_with_6(tmp_path: Path, capsys: Capture) -> None:
    with static_controller(tmp_path) as (_, address):
        for words in (["list"], ["pause", "audit"]):
            assert main(["exporters", *words, "--bootstrap-controller", address]) == 6
            assert "has no exporters: name them in kraft.wire.exporters" in capsys.readouterr().err


def test_a_place_that_there_is_not_is_wrong_usage(capsys: Capture) -> None:
    assert main(["exporters", "reset", "audit", "--to", "top", "--bootstrap-controller", "127.0.0.1:1"]) == 2
    assert "--to top" in capsys.readouterr().err


def test_the_table() -> None:
    report = report_of(
        "c1:9093",
        1_000,
        [Position("audit", 990), Position("lake", 1_000, "", True), Position("new", -1, "", False, 3)],
    )
    assert list(text_of(report)) == [
        "Exporters of c1:9093; records up to 1000 are committed:",
        "EXPORTER  POSITION  LAG  STATE",
        "audit     990       10   exporting",
        "lake      1000      0    paused",
        "new       -         -    failing (3 attempts)",
    ]
