"""Produce records to a topic, with the idempotent producer of librdkafka.

All go to one partition: only there do they keep their order. A message's key is the record's id, its value is
the object of the other sinks (``json_form``). Records count as exported when all replicas in sync have them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import javaproperties
import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kraft_wire.exporters.json_form import json_text
from kraft_wire.exporters.records import ExportBatch
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.blocking import BlockingSink

_POLL_S: Final = 0.1
_CLOSE_S: Final = 1.0


class KafkaSettings(
    msgspec.Struct,
    frozen=True,
    rename={
        "bootstrap_servers": "bootstrap.servers",
        "client_properties": "client.properties",
        "timeout_ms": "timeout.ms",
    },
):
    """The options of this kind of sink (``kinds.py``)."""

    bootstrap_servers: list[str]
    topic: str
    partition: int
    timeout_ms: int
    client_properties: str | None = None


def make_sink(exporter: ExporterSettings) -> KafkaTopic:
    """Return the sink of an exporter."""
    return KafkaTopic(exporter.name, msgspec.convert(exporter.options, KafkaSettings))


class KafkaTopic(BlockingSink):
    """A ``Sink`` that is one partition of a topic."""

    def __init__(self, name: str, settings: KafkaSettings) -> None:
        self._name = name
        self._settings = settings
        self._producer: Producer | None = None
        self._failed: list[KafkaError] = []
        self._last_trouble = ""

    def _open(self) -> None:
        given = self._given_properties()
        self._last_trouble = ""
        own = {
            "bootstrap.servers": ",".join(self._settings.bootstrap_servers),
            "client.id": f"kraft-wire-exporter-{self._name}",
            "enable.idempotence": True,
            "message.timeout.ms": self._settings.timeout_ms,
            "error_cb": self._note_trouble,
        }
        try:
            self._producer = Producer(given | own)
        except KafkaException as error:
            raise SinkFailed(f"{self._where}: {error.args[0].str()}") from error

    def _given_properties(self) -> dict[str, object]:
        path = self._settings.client_properties
        if path is None:
            return {}
        with Path(path).open("rb") as file:
            try:
                return dict(javaproperties.load(file))
            except javaproperties.InvalidUEscapeError as error:
                raise SinkFailed(f"{path}: {error}") from error

    def _export(self, batch: ExportBatch) -> None:
        assert self._producer is not None, "open() comes before"
        self._failed = []
        for record in batch.records:
            value = json_text(batch.cluster, record)
            self._produce(self._producer, record.id_in(batch.cluster).encode(), value)
        left = self._producer.flush(self._settings.timeout_ms / 1000 + _CLOSE_S)
        if self._failed:
            raise SinkFailed(f"{self._where}: {self._failed[0].str()}{self._last_trouble}")
        if left:
            raise SinkFailed(f"{self._where}: no answer for {left} records{self._last_trouble}")

    def _produce(self, producer: Producer, key: bytes, value: bytes) -> None:
        """Hand over one record; wait while the producer's queue is full."""
        deadline_s = time.monotonic() + self._settings.timeout_ms / 1000
        while True:
            try:
                producer.produce(
                    self._settings.topic,
                    value,
                    key,
                    self._settings.partition,
                    on_delivery=self._note_delivery,
                )
            except BufferError:
                if time.monotonic() > deadline_s:
                    raise SinkFailed(f"{self._where}: no answer{self._last_trouble}") from None
                producer.poll(_POLL_S)
            except KafkaException as error:
                raise SinkFailed(f"{self._where}: {error.args[0].str()}") from error
            else:
                return

    def _close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(_CLOSE_S)

    def _note_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _note_trouble(self, error: KafkaError) -> None:
        self._last_trouble = f" ({error.str()})"

    @property
    def _where(self) -> str:
        servers = ",".join(self._settings.bootstrap_servers)
        return f"topic {self._settings.topic}, partition {self._settings.partition}, at {servers}"
