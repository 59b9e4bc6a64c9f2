"""The benchmark of codecs measures the right things."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.benches.codec.codecs import KAFKA_PYTHON, KIO, OURS_PURE
from compat.benches.codec.imports import LAZILY, ImportCost
from compat.benches.codec.measure import QUICK, Measured, Row, Timing
from compat.benches.codec.payloads import Payload, payloads
from compat.benches.codec.table import Report, markdown, plain
from compat.benches.codec.workers import JAVA, Codec, Worker, codecs
from compat.benches.machine import this_machine
from compat.harness.processes import ProcessFailed
from kraft_wire.protocol.fast_read import MOST_UUIDS
from kraft_wire.protocol.messages.vote_request import VoteRequest

SIZES = {
    "MetadataResponse": 55_280,
    "FetchRequest": 132,
    "VoteRequest": 106,
    "BrokerHeartbeatRequest": 23,
    "PartitionRecord": 117,
    "BrokerRegistrationRequest": 294,
}
NAMES = (OURS_PURE, KIO, KAFKA_PYTHON, JAVA)
LACKING = {
    KIO: {"PartitionRecord"},
    KAFKA_PYTHON: {"VoteRequest", "BrokerHeartbeatRequest", "PartitionRecord", "BrokerRegistrationRequest"},
}


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Codec]:
    """Return how each codec's worker is started, by the codec's name."""
    classes: Path = tmp_path_factory.mktemp("classes")
    return {codec.name: codec for codec in codecs(NAMES, classes, None)}


@pytest.fixture(params=NAMES)
def worker(workers: dict[str, Codec], request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker(workers[request.param]) as worker:
        yield worker


def test_the_payloads_are_as_large_as_those_that_were_measured_before() -> None:
    measured = {payload.message: len(payload.data) for payload in payloads()}
    blob = measured.pop("FetchResponse")
    assert measured == SIZES
    assert 64 * 1024 < blob < 64 * 1024 + 100


def test_other_ids_are_more_than_a_codec_remembers_and_never_repeat() -> None:
    for payload in payloads():
        others = payload.with_other_ids()
        assert len(set(others)) == len(others)
        assert {len(data) for data in others} <= {len(payload.data)}
    [vote] = [payload for payload in payloads() if payload.message == "VoteRequest"]
    ids = [
        uuid
        for data in vote.with_other_ids()
        for topic in VoteRequest.decode(data, vote.version).topics
        for partition in topic.partitions
        for uuid in (partition.replica_directory_id, partition.voter_directory_id)
    ]
    assert len(set(ids)) == len(ids) > MOST_UUIDS


def test_every_codec_writes_back_what_it_reads_or_lacks_it(worker: Worker) -> None:
    lacking = {
        payload.message
        for payload in payloads()
        if worker.load(payload.message, payload.version, payload.data) is None
    }
    assert lacking == LACKING.get(worker.codec.name, set())


def test_every_codec_measures(worker: Worker) -> None:
    [payload] = [payload for payload in payloads() if payload.message == "FetchRequest"]
    worker.load(payload.message, payload.version, payload.data)
    assert all(worker.time_ns(operation, 100) > 0 for operation in ("decode", "encode"))
    worker.load(payload.message, payload.version, *payload.with_other_ids()[:10])
    assert worker.time_ns("decode", 10) > 0


def test_a_codec_that_writes_other_bytes_is_refused(worker: Worker) -> None:
    """All codecs read a length with one unnecessary byte, and none writes it."""
    with pytest.raises(ProcessFailed, match="ended with 1"):
        worker.load("FetchRequest", 17, _with_a_long_length(payloads()))


def _with_a_long_length(known: list[Payload]) -> bytes:
    """Return the request with two bytes instead of one for the size of its last tagged field."""
    [payload] = [payload for payload in known if payload.message == "FetchRequest"]
    assert payload.data[-15:-13] == b"\x01\x0d", "tag 1 of 13 bytes"
    return payload.data[:-14] + b"\x8d\x00" + payload.data[-13:]


def test_a_missed_goal_is_named_and_bold() -> None:
    report = _report(ours_ns=400)
    assert "≥ 1 reached" in plain(report) and "≥ 6 missed" in plain(report)
    assert "2.50 / **2.50**" in markdown(report)
    assert "1 of 2 goals reached" in markdown(report)


def test_a_message_that_a_codec_lacks_is_a_dash() -> None:
    [row] = [line for line in markdown(_report(ours_ns=100)).splitlines() if "VoteRequest" in line]
    assert [cell.strip() for cell in row.split("|")][2:5] == ["100 / 100", "1,000 / 1,000", "–"]


def _report(ours_ns: float) -> Report:
    [payload] = [payload for payload in payloads() if payload.message == "VoteRequest"]
    timings = {OURS_PURE: Timing(ours_ns, ours_ns), KIO: Timing(1000, 1000)}
    versions = {OURS_PURE: "1", KIO: "2", KAFKA_PYTHON: "3"}
    measured = Measured([Row(payload, {"decode": timings, "encode": timings})], versions)
    return Report(this_machine(), measured, [ImportCost(LAZILY, 0.01, 0.02, 1 << 20)], QUICK)
