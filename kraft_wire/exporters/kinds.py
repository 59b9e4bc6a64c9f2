"""List the kinds of sinks that come with this package: their keys, and where their code is. Imports none."""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.configs.types import ConfigKey

BATCH_BYTES: Final = 1024 * 1024
FILE_BATCH_BYTES: Final = 8 * BATCH_BYTES
"""For sinks with a file for each batch."""


class SinkKind(msgspec.Struct, frozen=True):
    """A kind of sink. ``module`` defines ``make_sink``; ``keys`` are named without the exporter's prefix.

    ``needs`` is the module of an optional dependency, and ``extra`` the extra of this package that has it. A
    kind that ``takes_all`` gets every record: its exporters have no filters. ``batch_bytes``: about so many
    bytes of the log are one batch, if there is more to export; at least one batch of the log. ``pace_key`` is
    the key, if there is one, that says after how many milliseconds new records are read again.
    """

    module: str
    keys: tuple[ConfigKey, ...]
    needs: str = ""
    extra: str = ""
    takes_all: bool = False
    batch_bytes: int = BATCH_BYTES
    pace_key: str = ""


KINDS: Final = {
    "jsonl": SinkKind(
        "kraft_wire.exporters.sinks.jsonl",
        (
            ConfigKey("path", "STRING", required=True, not_empty=True),
            ConfigKey("max.file.bytes", "LONG", str(128 * 1024 * 1024), minimum=1),
            ConfigKey("max.file.age.ms", "LONG", str(24 * 3600 * 1000), minimum=1000),
        ),
    ),
    "parquet": SinkKind(
        "kraft_wire.exporters.sinks.parquet",
        (
            ConfigKey("path", "STRING", required=True, not_empty=True),
            ConfigKey("max.file.bytes", "LONG", str(128 * 1024 * 1024), minimum=1),
        ),
        needs="pyarrow",
        extra="parquet",
        batch_bytes=FILE_BATCH_BYTES,
    ),
    "lake": SinkKind(
        "kraft_wire.exporters.sinks.lake",
        (
            ConfigKey("path", "STRING", required=True, not_empty=True),
            ConfigKey("interval.ms", "INT", "1000", minimum=0),
        ),
        needs="pyarrow",
        extra="parquet",
        takes_all=True,
        batch_bytes=FILE_BATCH_BYTES,
        pace_key="interval.ms",
    ),
    "http": SinkKind(
        "kraft_wire.exporters.sinks.webhook",
        (
            ConfigKey("url", "STRING", required=True, rule="HTTP URL"),
            ConfigKey("authorization", "PASSWORD"),
            ConfigKey("ca.file", "STRING", not_empty=True),
            ConfigKey("timeout.ms", "INT", "10000", minimum=1),
            ConfigKey("max.batch.bytes", "INT", str(1024 * 1024), minimum=1),
        ),
    ),
    "kafka": SinkKind(
        "kraft_wire.exporters.sinks.kafka",
        (
            ConfigKey("bootstrap.servers", "LIST", required=True, not_empty=True, distinct=True),
            ConfigKey("topic", "STRING", required=True, not_empty=True),
            ConfigKey("partition", "INT", "0", minimum=0),
            ConfigKey("client.properties", "STRING", not_empty=True),
            ConfigKey("timeout.ms", "INT", "30000", minimum=1000),
        ),
        needs="confluent_kafka",
        extra="kafka",
    ),
}
"""By the value of the key ``type``."""
