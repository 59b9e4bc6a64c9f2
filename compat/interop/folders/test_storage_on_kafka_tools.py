"""Kafka's tool reads every file of a log folder that ``kraft_wire.storage`` wrote without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.harness.kafka.tool_server import ToolResult
from compat.harness.kafka.tools import KafkaTools, segments, snapshots
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.format import Checkpoint, FormatPlan, format_folders
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.store import Store

DUMP = "org.apache.kafka.tools.DumpLogSegments"
START_MS = 1_795_262_005_000
DIRECTORY_ID = Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ")
FEATURE = encode_metadata_record(FeatureLevelRecord(name="metadata.version", feature_level=25), 0)
NO_OP = encode_metadata_record(NoOpRecord(), 0)
CONTROL = [KRaftVersionRecord(kraft_version=1)]
BATCHES_AN_EPOCH = 700


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with several segments and epochs, two snapshots, a truncation and a restart."""
    path = tmp_path_factory.mktemp("written") / "metadata"
    format_folders(
        FormatPlan(
            cluster_id="4L6g3nShT-eMCtK--X86sw",
            node_id=1,
            directories=[path],
            metadata_dir=path,
            new_directory_id=lambda: DIRECTORY_ID,
            checkpoint=Checkpoint(CONTROL, [FEATURE], START_MS),
        )
    )
    for epoch in (1, 2, 4):
        _write_epoch(path, epoch)
    return path


def _write_epoch(path: Path, epoch: int) -> None:
    """Write an epoch, truncate its last batches, and write a snapshot of half of it."""
    store = Store.open(path, node_id=1, config=LogConfig(segment_bytes=50_000))
    store.write_election_state(ElectionState(1, epoch), kraft_version=1)
    log = store.log
    time_ms = START_MS + log.end_offset
    log.append([encode_control_batch(log.end_offset, epoch, time_ms, [LeaderChangeMessage(leader_id=1)])])
    for number in range(BATCHES_AN_EPOCH):
        values = [FEATURE] + [NO_OP] * (number % 7)
        log.append([encode_batch(log.end_offset, epoch, time_ms + number // 3, values)])
        if number == BATCHES_AN_EPOCH // 2:
            snapshot_id = SnapshotId(log.end_offset, epoch)
    log.flush()
    log.truncate_to(log.end_offset - 30)
    store.snapshots.write(snapshot_id, encode_snapshot(snapshot_id, CONTROL, [FEATURE], time_ms, time_ms))
    store.close()


def _dump(tools: KafkaTools, files: list[Path], *options: str) -> ToolResult:
    names = ",".join(str(file) for file in files)
    return tools.run(DUMP, [*options, "--files", names]).check()


def _index_files(folder: Path) -> list[Path]:
    return [log.with_suffix(suffix) for log in segments(folder) for suffix in (".index", ".timeindex")]


def test_every_record_is_there_once_and_every_batch_is_valid(folder: Path, tools: KafkaTools) -> None:
    assert len(segments(folder)) > 2
    dumped = _dump(tools, segments(folder), "--cluster-metadata-decoder", "--deep-iteration").stdout
    offsets = [int(line.split()[2]) for line in dumped.splitlines() if line.startswith("| offset:")]
    assert offsets == list(range(len(offsets)))
    assert "isvalid: false" not in dumped and "Found" not in dumped
    epochs = {
        line.split("partitionLeaderEpoch: ")[1].split()[0]
        for line in dumped.splitlines()
        if "isvalid" in line
    }
    assert epochs == {"1", "2", "4"}


def test_snapshots_are_read_without_a_warning(folder: Path, tools: KafkaTools) -> None:
    files = snapshots(folder)
    assert len(files) == 4
    dumped = _dump(tools, files, "--cluster-metadata-decoder", "--deep-iteration")
    assert dumped.stderr == "" and "isvalid: false" not in dumped.stdout
    assert dumped.stdout.count("SnapshotHeader") == dumped.stdout.count("SnapshotFooter") == len(files)


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", "--print-data-log"])
def test_indexes_agree_with_their_segments(folder: Path, tools: KafkaTools, option: str) -> None:
    """The tool prints every index entry that doesn't agree to standard error."""
    dumped = _dump(tools, _index_files(folder), option)
    assert dumped.stderr == ""
    if option == "--index-sanity-check":
        assert dumped.stdout.count("passed sanity check") == len(_index_files(folder))
    if option == "--print-data-log":
        assert dumped.stdout.count("position:") > len(segments(folder))
        assert dumped.stdout.count("timestamp:") > len(segments(folder))
