"""The exporters of a `kraft-wire observe`, beside controllers that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.cli import main
from tests.support.controller_process import ObserverProcess
from tests.support.live_quorum import Controllers, three_controllers
from tests.support.waiting import wait_until

Capture = pytest.CaptureFixture[str]


def offsets(folder: Path) -> list[int]:
    """Return the offsets of the records of the log, without those of a snapshot."""
    records = [
        msgspec.json.decode(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]
    return [record["offset"] for record in records if record["index"] == 0]


def is_whole(found: list[int]) -> bool:
    """Whether each record is there once, in order."""
    return found == list(range(found[0], found[-1] + 1))


def wait_for_offset(folder: Path, offset: int) -> None:
    wait_until(lambda: bool(found := offsets(folder)) and max(found) >= offset, f"offset {offset}")


def last_offset(controllers: Controllers) -> int:
    return controllers.described().high_watermark - 1


def test_it_exports_all_once_through_failovers_and_restarts_and_takes_orders(
    tmp_path: Path, capsys: Capture
) -> None:
    audit, data = tmp_path / "audit", tmp_path / "observer"
    file = tmp_path / "observer.properties"
    file.write_text(
        "kraft.wire.exporters=audit\nkraft.wire.exporter.audit.type=jsonl\n"
        f"kraft.wire.exporter.audit.path={audit}\n"
    )
    (tmp_path / "quorum").mkdir()
    with three_controllers(tmp_path / "quorum") as controllers:
        bootstrap = ",".join(controllers.addresses.values())
        with ObserverProcess(data, bootstrap, "--config", str(file)) as observer:
            controllers.write(range(5))
            wait_for_offset(audit, last_offset(controllers))
            controllers.kill(lost := controllers.leader())
            controllers.write(range(5, 10))
            wait_for_offset(audit, last_offset(controllers))
            assert observer.terminate() == 0
        controllers.start_one(lost)
        controllers.write(range(10, 15))
        with ObserverProcess(data, bootstrap, "--config", str(file)) as observer:
            wait_for_offset(audit, last_offset(controllers))
            found = offsets(audit)
            assert is_whole(found)

            options = ["--bootstrap-controller", bootstrap, "--observer", observer.address]
            assert main(["exporters", "pause", "audit", *options]) == 0
            observer.wait_for("exporters stopped")
            controllers.write(range(15, 20))
            assert (row := listed(options, capsys))["state"] == "paused"
            assert row["position"] >= found[-1] + 1
            assert main(["exporters", "resume", "audit", *options]) == 0
            wait_for_offset(audit, last_offset(controllers))
            assert is_whole(offsets(audit))
            assert observer.terminate() == 0


def listed(options: list[str], capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["exporters", "list", "--json", *options]) == 0
    (row,) = msgspec.json.decode(capsys.readouterr().out)["exporters"]
    found: dict[str, Any] = row
    return found
