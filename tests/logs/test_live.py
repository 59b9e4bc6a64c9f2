"""The data source gives the same rows and positions for live controllers as for their disks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kraft_wire.client.errors import WrongServer
from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.logs.live_store import LiveStore
from kraft_wire.logs.metadata_at import Moment, metadata_at
from kraft_wire.logs.positions import positions_json
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.logs.store import LogRange
from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.spark.options import BadOption, parse_options
from kraft_wire.spark.reading import CorruptSegment, rows_of
from tests.logs.test_metadata_at import found_in
from tests.support.changing_proxy import changing_proxy
from tests.support.controller_process import CLUSTER_ID, GIVE_UP_S, ControllerProcess, formatted
from tests.support.live_quorum import (
    QUIET,
    SNAPSHOTS,
    TRIMMED,
    address_of,
    settings,
    settled,
    three_controllers,
    write,
)
from tests.support.spark_readers import Row, Stream, batch

MakeStream = Callable[..., Stream]
BOOTSTRAP = "bootstrap.controllers"


def live(address: str, **options: str) -> list[Row]:
    return batch(None, **{BOOTSTRAP: address}, **options)


@pytest.fixture
def live_stream() -> Iterator[MakeStream]:
    """Return a function that makes a stream of the controllers at some addresses."""
    with ExitStack() as stack:

        def make(address: str, **options: str) -> Stream:
            stream = Stream(None, **{BOOTSTRAP: address}, **options)
            stack.callback(stream.stop)
            return stream

        yield make


def committed(rows: list[Row]) -> list[Row]:
    """Over the wire all records are known to be committed; a folder doesn't say so of its end."""
    return [{**row, "committed": True} for row in rows]


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[ControllerProcess]:
    """A controller with snapshots, to which nothing more is written."""
    with ControllerProcess(formatted(tmp_path, SNAPSHOTS)) as process, process.client() as client:
        write(client, range(60))
        process.wait_for("snapshot written")
        yield process


@pytest.mark.parametrize("start", ["earliest", "snapshot"])
def test_a_batch_is_what_is_on_disk(
    controller: ControllerProcess, start: str, live_stream: MakeStream
) -> None:
    address = address_of(controller)
    between = {
        "startingOffsets": json.dumps(live_stream(address, startingOffsets=start).position),
        "endingOffsets": json.dumps(live_stream(address).position),
    }
    rows = live(address, **between)
    there = batch(controller.log_dir.parent, **between)
    assert len(rows) > 20
    assert any(row["in_snapshot"] for row in rows) == (start == "snapshot")
    assert rows == committed(there)


def test_tasks_share_a_range_without_doubles(controller: ControllerProcess) -> None:
    address = address_of(controller)
    options = parse_options({BOOTSTRAP: address})
    assert options.quorum is not None
    store = LiveStore(options.quorum, split_offsets=7)
    (bounds,) = store.bounds().values()
    pieces = list(store.pieces(LogRange(CLUSTER_ID, 0, bounds.end.offset)))
    store.close()
    rows = [row for found in rows_of(store, pieces, options) for row in found.to_pylist()]
    assert len(pieces) == -(-bounds.end.offset // 7)
    assert rows == live(address, endingOffsets=positions_json({CLUSTER_ID: bounds.end}))


def test_the_metadata_is_that_of_the_folder(controller: ControllerProcess) -> None:
    store = LiveStore(settings(address_of(controller)))
    (bounds,) = store.bounds().values()
    for offset in (None, bounds.end.offset - 7):
        there = metadata_at(store, bounds, Moment(offset))
        on_disk = found_in(controller.log_dir.parent, Moment(offset))
        assert canonical(there.state) == canonical(on_disk.state)
        assert there.state.configs.get(ResourceType.BROKER, "") or offset is None
        assert (there.offset, there.epoch, there.time_ms) == (on_disk.offset, on_disk.epoch, on_disk.time_ms)
        assert not there.may_be_uncommitted
    store.close()


def test_each_table_has_its_own_rows(controller: ControllerProcess) -> None:
    rows = live(address_of(controller), table="config", columns="offset,name,value")
    assert rows == batch(controller.log_dir.parent, table="config", columns="offset,name,value")
    assert rows[-1]["value"] == "1000059"


def test_a_stream_reads_on_from_the_position_of_a_folder_and_back(controller: ControllerProcess) -> None:
    address, folder = address_of(controller), controller.log_dir.parent
    on_disk = Stream(folder, startingOffsets="earliest")
    on_disk.trigger()
    with controller.client() as client:
        write(client, range(3))
    there = live(address, startingOffsets=json.dumps(on_disk.position))
    assert [json.loads(row["json"])["value"] for row in there] == ["1000000", "1000001", "1000002"]
    rows = live(address, endingOffsets=json.dumps(on_disk.position))
    assert rows == committed(on_disk.rows)


@pytest.mark.parametrize(
    "limit", [{}, {"maxOffsetsPerTrigger": "7"}, {"maxBytesPerTrigger": "500"}], ids=["all", "7", "500 B"]
)
@pytest.mark.parametrize("start", ["earliest", "snapshot"])
def test_a_stream_is_a_batch_in_pieces(
    controller: ControllerProcess, start: str, limit: dict[str, str], live_stream: MakeStream
) -> None:
    address = address_of(controller)
    stream = live_stream(address, startingOffsets=start, **limit)
    triggers = 0
    while stream.trigger():
        triggers += 1
        if triggers == 3:
            stream.restart()
    assert triggers > 2 or not limit or start == "snapshot", "which may hold nearly all by now"
    assert stream.rows == live(
        address, startingOffsets=json.dumps(stream.start), endingOffsets=json.dumps(stream.position)
    )


def test_a_stream_without_a_beginning_reads_what_comes(
    controller: ControllerProcess, live_stream: MakeStream
) -> None:
    stream = live_stream(address_of(controller))
    assert stream.trigger() == []
    with controller.client() as client:
        write(client, range(2))
        assert [row["type"] for row in stream.trigger()] == ["ConfigRecord"] * 2
        assert stream.trigger() == []
        write(client, range(1))
    assert len(stream.trigger()) == 1
    assert {row["committed"] for row in stream.rows} == {True}
    assert {row["cluster"] for row in stream.rows} == {CLUSTER_ID}


def test_a_stream_goes_on_through_a_failover_without_loss_or_doubles(
    tmp_path: Path, live_stream: MakeStream
) -> None:
    with three_controllers(tmp_path) as controllers:
        controllers.write(range(10))
        stream = live_stream(",".join(controllers.addresses.values()), startingOffsets="earliest")
        _read_up_to(stream, 9)
        controllers.kill(controllers.leader())
        controllers.write(range(10, 20))
        _read_up_to(stream, 19)
        stream.restart()
        controllers.write(range(20, 25))
        _read_up_to(stream, 24)
        (id, *_) = controllers.processes
        there = batch(controllers.folder(id), endingOffsets=json.dumps(stream.position))
    offsets = [row["offset"] for row in stream.rows]
    assert offsets == list(range(len(offsets)))
    assert stream.rows == committed(there)
    assert list(dict.fromkeys(_values(stream))) == list(range(25)), (
        "one that nobody confirmed is written again"
    )


def _read_up_to(stream: Stream, value: int) -> None:
    """A new leader may not know yet that later records are committed."""
    deadline = time.monotonic() + GIVE_UP_S
    while value not in _values(stream):
        assert time.monotonic() < deadline, f"{value} isn't among {_values(stream)}"
        stream.trigger()


def _values(stream: Stream) -> list[int]:
    configs = [json.loads(row["json"]) for row in stream.rows if row["type"] == "ConfigRecord"]
    return [int(each["value"]) - 1_000_000 for each in configs if each["name"] == "log.retention.ms"]


def test_a_trimmed_position_is_an_error_or_starts_over_from_the_snapshot(
    tmp_path: Path, live_stream: MakeStream
) -> None:
    with ControllerProcess(formatted(tmp_path, TRIMMED)) as process, process.client() as client:
        address = address_of(process)
        strict, lenient = live_stream(address), live_stream(address, failOnDataLoss="false")
        first = process.log_dir / "00000000000000000000.log"
        while first.exists():
            write(client, range(20))
        with QuorumClient(settings(address)) as quorum:
            settled(process, LiveLog(quorum))  # else the log may be trimmed between the plan and the read
        with pytest.raises(DataLoss, match="the records after it were deleted"):
            strict.trigger()
        rows = lenient.trigger()
        assert rows[0]["in_snapshot"]
        write(client, range(2))
        assert [row["in_snapshot"] for row in lenient.trigger()] == [False, False]


def test_positions_that_the_log_does_not_have_are_errors(
    controller: ControllerProcess, live_stream: MakeStream
) -> None:
    address = address_of(controller)
    (here,) = live_stream(address).position.values()
    for position, problem in (
        ({**here, "offset": here["offset"] + 1}, "the log was truncated, or is another one"),
        ({**here, "epoch": here["epoch"] + 1}, "has records of another epoch there"),
        ({"epoch": 1, "offset": 3, "snapshot": True}, "there is no such snapshot"),
    ):
        with pytest.raises(DataLoss, match=problem):
            live(address, startingOffsets=json.dumps({CLUSTER_ID: position}))
    with pytest.raises(DataLoss, match="there is no log of this cluster; the clusters with logs: "):
        live(address, startingOffsets=json.dumps({"other": here}))


def test_a_cluster_id_that_is_given_is_asked_of_nobody_and_has_to_be_right(
    controller: ControllerProcess,
) -> None:
    address = address_of(controller)
    assert live(address, **{"cluster.id": CLUSTER_ID}) == live(address)
    with pytest.raises(WrongServer, match=f"{address}: INCONSISTENT_CLUSTER_ID: .* cluster.id"):
        live(address, **{"cluster.id": "AAAAAAAAQACAAAAAAAAAAA"})


def test_a_damaged_batch_is_an_error_or_a_row_and_never_a_gap(tmp_path: Path) -> None:
    with changing_proxy() as proxy:
        file = formatted(tmp_path, {**QUIET, "advertised.listeners": f"CONTROLLER://{proxy.address}"})
        with ControllerProcess(file) as process, process.client() as client:
            host, port = address_of(process).split(":")
            proxy.target = host, int(port)
            write(client, range(9))
            whole = live(proxy.address)
            proxy.changes[b"1000005"] = b"1000004"
            (offset,) = (row["offset"] for row in whole if "1000005" in row["json"])
            problem = rf"{proxy.address}: no batch at byte \d+ \(offset {offset}\): checksum"
            with pytest.raises(CorruptSegment, match=problem):
                live(proxy.address)
            (damaged,) = live(proxy.address, table="corrupt", corrupt="row")
            rows = live(proxy.address, corrupt="row")
    assert (damaged["file"], damaged["offset"]) == (proxy.address, offset)
    assert rows == [row for row in whole if row["offset"] != offset]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({BOOTSTRAP: "nowhere"}, "bootstrap.controllers: 'nowhere' isn't host:port"),
        ({BOOTSTRAP: "a:1", "path": "/logs"}, "bootstrap.controllers: a quorum has no path"),
        ({BOOTSTRAP: "a:1", "request.timeout.ms": "0"}, "request.timeout.ms: '0' isn't a number of milli"),
        ({BOOTSTRAP: "a:1", "default.api.timeout.ms": "x"}, "default.api.timeout.ms: 'x' isn't a number"),
        ({BOOTSTRAP: "a:1", "kafka.ssl.key": "hunter-2"}, "kafka.ssl.key: unknown"),
        ({"table": "records"}, "path: give a folder .*; or give bootstrap.controllers"),
    ],
)
def test_options_that_can_not_be_used_are_named(options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOption, match=problem) as error:
        batch(options.get("path"), **{name: text for name, text in options.items() if name != "path"})
    assert "hunter-2" not in str(error.value)
