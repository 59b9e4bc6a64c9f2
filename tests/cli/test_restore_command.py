"""``kraft-wire pipeline restore``: what it says, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kraft_wire.cli import main
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.storage.folder import read_meta_properties
from tests.support.java_rows import CLUSTER, NODE, log_arrow, log_batches, log_rows

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake/records"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_batches(log_arrow(NODE)), folder / "0.parquet")
    return folder.parent


def restore(lake: Path, into: Path, *options: str) -> int:
    common = ["--target", str(lake), "--into", str(into), f"--cluster={CLUSTER}", "--node-id", "7"]
    return main(["pipeline", "restore", *common, *options])


def test_everything(lake: Path, tmp_path: Path, capsys: Capture) -> None:
    assert restore(lake, tmp_path / "new") == 0
    said, errors = capsys.readouterr()
    assert errors == ""
    assert said.splitlines() == [
        f"{tmp_path}/new: the log from offset 0 to offset 114, epoch 3, 2026-11-21T11:55:19.351+00:00.",
        f"Its node needs node.id=7 and log.dirs={tmp_path}/new; it and its brokers need "
        "controller.quorum.bootstrap.servers=HOST:PORT.",
    ]
    properties = read_meta_properties(tmp_path / "new")
    assert (properties.cluster_id, properties.node_id) == (CLUSTER, 7)
    (*batches, _) = log_batches(tmp_path / "new" / PARTITION_FOLDER)
    assert batches == list(log_batches(NODE))


@pytest.mark.parametrize("time", ["2026-11-21T11:54:30", "2026-11-21T12:54:30+01:00"])
def test_a_time_is_the_last_offset_until_then(time: str, lake: Path, tmp_path: Path, capsys: Capture) -> None:
    moment_ms = datetime(2026, 11, 21, 11, 54, 30, tzinfo=UTC).timestamp() * 1000
    last = max(row.offset for row in log_rows(NODE) if row.timestamp_ms <= moment_ms)
    assert restore(lake, tmp_path / "new", "--as-of-time", time) == 0
    assert f"from offset 0 to offset {last}, epoch" in capsys.readouterr().out


def test_an_offset_without_voters_needs_static_ones(lake: Path, tmp_path: Path, capsys: Capture) -> None:
    assert restore(lake, tmp_path / "new", "--as-of-offset", "0") == 0
    assert "brokers need controller.quorum.voters=7@HOST:PORT." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        (["--as-of-offset", "1", "--as-of-time", "2026-11-21"], 2, "exclude each other; give one of them"),
        (["--as-of-time", "noon"], 2, "--as-of-time 'noon' is not a time, such as 2026-11-22T01:30:00"),
        (["--as-of-time", "1999-01-01"], 1, "there is no record of 1999-01-01T00:00:00+00:00 or before"),
        (["--as-of-offset", "115"], 1, "offset 115 is asked for, and the rows end at offset 114"),
        (["--as-of-offset", "-1"], 2, "--as-of-offset -1: an offset must be at least 0"),
        (["--node-id", "-3"], 2, "--node-id -3: a node id must be at least 0"),
        (["--cluster", "none"], 1, f"nothing of cluster 'none'; its clusters: {CLUSTER}"),
        (["--target", "/nowhere"], 1, "/nowhere has no table records"),
    ],
)
def test_what_is_refused(
    options: list[str], status: int, complaint: str, lake: Path, tmp_path: Path, capsys: Capture
) -> None:
    common = {"--target": str(lake), "--into": str(tmp_path / "new"), "--cluster": CLUSTER, "--node-id": "7"}
    given = {**common, **dict(zip(options[::2], options[1::2], strict=True))}
    assert main(["pipeline", "restore", *(f"{name}={value}" for name, value in given.items())]) == status
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_folder_in_use_is_refused(lake: Path, capsys: Capture) -> None:
    assert restore(lake, lake) == 1
    assert f"{lake}: is not empty; give an empty folder, or a new one" in capsys.readouterr().err
