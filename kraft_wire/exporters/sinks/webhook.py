"""Post records to a webhook: batches of CloudEvents 1.0 in JSON.

Records count as exported when the server has answered with a status from 200 to 299. After any other answer,
or none, all records of the batch are posted again. Redirects aren't followed.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from kraft_wire import __version__
from kraft_wire.exporters.json_form import json_fields
from kraft_wire.exporters.records import ExportBatch, ExportRecord
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.blocking import BlockingSink

MEDIA_TYPE: Final = "application/cloudevents-batch+json; charset=utf-8"
_MOST_READ_BYTES: Final = 64 * 1024
"""The connection is closed if an answer has more."""
_SHOWN_CHARACTERS: Final = 200
_ENCODER: Final = msgspec.json.Encoder()


class WebhookSettings(
    msgspec.Struct,
    frozen=True,
    rename={"ca_file": "ca.file", "timeout_ms": "timeout.ms", "max_batch_bytes": "max.batch.bytes"},
):
    """The options of this kind of sink (``kinds.py``)."""

    url: str
    timeout_ms: int
    max_batch_bytes: int
    authorization: str = ""
    ca_file: str | None = None


def make_sink(exporter: ExporterSettings) -> Webhook:
    """Return the sink of an exporter."""
    return Webhook(msgspec.convert(exporter.options, WebhookSettings))


def event_of(cluster: str, record: ExportRecord) -> dict[str, Any]:
    """Return a record as a CloudEvent, whose data is the object of the other sinks (``json_form``)."""
    event = {
        "specversion": "1.0",
        "id": record.id_in(cluster),
        "source": f"/clusters/{cluster}/__cluster_metadata",
        "type": f"kafka.metadata.{record.type}",
        "datacontenttype": "application/json",
        "data": json_fields(cluster, record),
    }
    time = _rfc_3339(record.timestamp_ms)
    return event if time is None else event | {"time": time}


def bodies(batch: ExportBatch, max_bytes: int) -> Iterator[bytes]:
    """Yield the records as JSON arrays of at most so many bytes; a larger record has an array of its own."""
    events: list[bytes] = []
    size_bytes = 2
    for record in batch.records:
        event = _ENCODER.encode(event_of(batch.cluster, record))
        if events and size_bytes + len(event) > max_bytes:
            yield _array(events)
            events, size_bytes = [], 2
        events.append(event)
        size_bytes += len(event) + 1
    yield _array(events)


class Webhook(BlockingSink):
    """A ``Sink`` that keeps one connection."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._url = urlsplit(settings.url)
        self._connection: HTTPConnection | None = None
        self._has_answered = False

    def _open(self) -> None:
        timeout_s = self._settings.timeout_ms / 1000
        self._connection = _connection(self._url, timeout_s, self._settings.ca_file)
        self._has_answered = False

    def _export(self, batch: ExportBatch) -> None:
        for body in bodies(batch, self._settings.max_batch_bytes):
            self._post(body)

    def _post(self, body: bytes) -> None:
        try:
            response, text = self._answer(body)
        except (OSError, HTTPException) as error:
            raise SinkFailed(f"{self._settings.url}: {_words(error)}") from error
        if not 200 <= response.status <= 299:
            raise SinkFailed(f"{self._settings.url}: {_refusal(response, text)}")

    def _answer(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        """Post, once more if the server has closed the connection since its last answer."""
        try:
            return self._ask(body)
        except ConnectionError:
            if not self._has_answered:
                raise
        self._close()
        return self._ask(body)

    def _ask(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        assert self._connection is not None, "open() comes before"
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        self._connection.request("POST", target, body, self._headers())
        response = self._connection.getresponse()
        self._has_answered = True
        text = response.read(_MOST_READ_BYTES)
        if not response.isclosed():
            self._close()
        return response, text

    def _headers(self) -> Mapping[str, str]:
        headers = {"Content-Type": MEDIA_TYPE, "User-Agent": f"kraft-wire/{__version__}"}
        authorization = self._settings.authorization
        return headers | {"Authorization": authorization} if authorization else headers

    def _close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._has_answered = False
        if self._connection is not None:
            self._connection.close()


def _connection(url: SplitResult, timeout_s: float, ca_file: str | None) -> HTTPConnection:
    assert url.hostname is not None, "the key has been checked"
    if url.scheme == "http":
        return HTTPConnection(url.hostname, url.port, timeout=timeout_s)
    trust = ssl.create_default_context(cafile=ca_file)
    return HTTPSConnection(url.hostname, url.port, timeout=timeout_s, context=trust)


def _array(events: list[bytes]) -> bytes:
    return b"[" + b",".join(events) + b"]"


def _rfc_3339(timestamp_ms: int) -> str | None:
    """Return a time as CloudEvents want it; None for one that isn't known, or that no calendar has."""
    if timestamp_ms < 0:
        return None
    try:
        time = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _refusal(response: HTTPResponse, text: bytes) -> str:
    """Say what the server answered."""
    said = f"the server answers {response.status} {response.reason}"
    location = response.getheader("Location")
    if location is not None:
        return f"{said} with the location {location[:_SHOWN_CHARACTERS]!r}: give the last address in `url`"
    shown = text.decode("utf-8", errors="replace")[:_SHOWN_CHARACTERS].strip()
    return f"{said}: {shown}" if shown else said
