"""Records that are posted to a webhook, a real HTTP server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from kraft_wire.exporters.json_form import json_fields
from kraft_wire.exporters.records import ExportBatch
from kraft_wire.exporters.settings import read_exporters
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.webhook import MEDIA_TYPE, Webhook, bodies, event_of, make_sink
from tests.exporters.export_samples import exported, of_value
from tests.support.metadata_records import topic_record

CLUSTER = "q3YRw3NrQz6yVPNUPcbbDA"


class Receiver(ThreadingHTTPServer):
    """A server that keeps what it gets, and answers as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        """What to answer next; 204 once there is nothing left."""
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self.closes_after_answer = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?a=b"

    @property
    def offsets(self) -> list[int]:
        return [
            event["data"]["offset"] for _, _, body in self.requests for event in msgspec.json.decode(body)
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        status, headers, text = self.server.answers.pop(0) if self.server.answers else (204, {}, b"")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = self.server.closes_after_answer

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with _serving(Receiver()) as server:
        yield server


@contextmanager
def _serving(server: Receiver) -> Iterator[Receiver]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _sink(url: str, **options: str) -> Webhook:
    prefix = "kraft.wire.exporter.hook."
    given = {prefix + key.replace("_", "."): value for key, value in options.items()}
    read = read_exporters(["hook"], {f"{prefix}type": "http", f"{prefix}url": url, **given})
    assert read.problems == ()
    return make_sink(read.exporters[0])


def _batch(*offsets: int) -> ExportBatch:
    return ExportBatch(CLUSTER, [exported(topic_record(offset), offset) for offset in offsets])


async def test_a_batch_is_one_request_of_cloud_events(receiver: Receiver) -> None:
    sink = _sink(receiver.url, authorization="Bearer secret")
    await sink.open()
    await sink.export(_batch(305, 307))
    await sink.close()
    ((path, headers, body),) = receiver.requests
    assert path == "/hook?a=b"
    assert (headers["Content-Type"], headers["Authorization"]) == (MEDIA_TYPE, "Bearer secret")
    assert receiver.offsets == [305, 307]
    record = exported(topic_record(305), 305)
    assert msgspec.json.decode(body)[0] == {
        "specversion": "1.0",
        "id": f"{CLUSTER}/305/0",
        "source": f"/clusters/{CLUSTER}/__cluster_metadata",
        "type": "kafka.metadata.TopicRecord",
        "datacontenttype": "application/json",
        "data": json_fields(CLUSTER, record),
        "time": "2023-11-14T22:13:20.000Z",
    }


async def _post_three_batches(receiver: Receiver) -> None:
    sink = _sink(receiver.url)
    await sink.open()
    for offset in range(3):
        await sink.export(_batch(offset))
    await sink.close()
    assert receiver.offsets == [0, 1, 2]


async def test_batches_share_a_connection(receiver: Receiver) -> None:
    await _post_three_batches(receiver)
    assert receiver.connections == 1


async def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(receiver: Receiver) -> None:
    receiver.closes_after_answer = True
    await _post_three_batches(receiver)
    assert receiver.connections == 3


async def test_a_large_batch_is_several_requests_in_order(receiver: Receiver) -> None:
    sink = _sink(receiver.url, max_batch_bytes="900")
    await sink.open()
    await sink.export(_batch(*range(7)))
    await sink.close()
    assert len(receiver.requests) > 2
    assert all(len(body) <= 900 for _, _, body in receiver.requests)
    assert receiver.offsets == list(range(7))


def test_a_record_that_is_too_large_is_alone_in_its_request() -> None:
    assert [len(msgspec.json.decode(body)) for body in bodies(_batch(0, 1), 1)] == [1, 1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((500, {}, b"the disk is full"), "the server answers 500 Internal Server Error: the disk is full"),
        ((404, {}, b""), "the server answers 404 Not Found"),
        (
            (302, {"Location": "http://elsewhere/"}, b""),
            "'http://elsewhere/': give the last address in `url`",
        ),
        ((500, {}, b"x" * 100_000), "x" * 200),
    ],
)
async def test_every_other_answer_is_a_failure_that_says_what_was_answered(
    receiver: Receiver, answer: tuple[int, dict[str, str], bytes], words: str
) -> None:
    receiver.answers.append(answer)
    sink = _sink(receiver.url)
    await sink.open()
    with pytest.raises(SinkFailed, match="hook") as failure:
        await sink.export(_batch(0, 1))
    assert str(failure.value).endswith(words)
    await sink.close()
    await sink.open()
    await sink.export(_batch(0, 1))
    await sink.close()
    assert receiver.offsets == [0, 1, 0, 1]


async def test_a_server_that_is_not_there_is_a_failure() -> None:
    with _serving(Receiver()) as gone:
        url = gone.url
    sink = _sink(url)
    await sink.open()
    with pytest.raises(SinkFailed, match="Connection refused"):
        await sink.export(_batch(0))
    await sink.close()


async def test_a_server_that_does_not_answer_in_time_is_a_failure() -> None:
    with _silent() as url:
        sink = _sink(url, timeout_ms="50")
        await sink.open()
        with pytest.raises(SinkFailed, match="timed out"):
            await sink.export(_batch(0))
        await sink.close()


@contextmanager
def _silent() -> Iterator[str]:
    """Yield the URL of a socket that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


async def test_a_server_without_the_wanted_certificate_is_a_failure(receiver: Receiver) -> None:
    sink = _sink(receiver.url.replace("http:", "https:"))
    await sink.open()
    with pytest.raises(SinkFailed, match="SSL"):
        await sink.export(_batch(0))
    await sink.close()


@pytest.mark.parametrize("timestamp_ms", [-1, 1 << 62])
def test_a_time_that_no_calendar_has_is_left_out(timestamp_ms: int) -> None:
    record = of_value(b"", 0)
    record.timestamp_ms = timestamp_ms
    assert "time" not in event_of(CLUSTER, record)


def test_a_record_that_can_not_be_decoded_is_an_event_with_its_bytes() -> None:
    event = event_of(CLUSTER, of_value(b"\x01\x64\x07\xff\x00", 9))
    assert event["type"] == "kafka.metadata.Unknown"
    assert event["data"]["raw"] == b"\x01\x64\x07\xff\x00"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "ftp://host/",
        "http://",
        "http://host:0/",
        "http://host:x/",
        "http://u:p@host/",
        "http://h/a b",
    ],
)
def test_a_url_that_can_not_be_used_is_refused(url: str) -> None:
    prefix = "kraft.wire.exporter.hook."
    (problem,) = read_exporters(["hook"], {f"{prefix}type": "http", f"{prefix}url": url}).problems
    assert problem.startswith(f"{prefix}url={url}: ")
