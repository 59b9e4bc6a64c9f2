"""Define the keys of a properties file that Kafka doesn't have. They all begin with ``kraft.wire.``."""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.types import ConfigKey
from kraft_wire.wire.entry_count import LIMIT_KEY, MAX_REQUEST_ENTRIES

HELD_BYTES_KEY: Final = "kraft.wire.max.held.bytes"
MAX_HELD_BYTES: Final = 512 * 1024 * 1024
"""Of requests and unsent responses of all connections of a server together."""
LEAST_HELD_BYTES: Final = 16 * 1024 * 1024
"""With less, ordinary requests of a few clients would cost them their connections."""
LEAST_REQUEST_ENTRIES: Final = 100
DRAFT_LISTENERS_KEY: Final = "kraft.wire.kip853.draft.listeners"
HTTP_LISTENER_KEY: Final = "kraft.wire.http.listener"
EXPORTERS_KEY: Final = "kraft.wire.exporters"
EXPORTER_PREFIX: Final = "kraft.wire.exporter."
"""The keys of each exporter begin with it, followed by the exporter's name and a dot."""
PREFIX: Final = "kraft.wire."
"""All our own keys begin with it, and none of Kafka's."""

OWN_KEYS: Final = {
    key.name: key
    for key in (
        ConfigKey(
            "kraft.wire.answer.when.known.ms",
            "INT",
            "0",
            minimum=0,
            documentation="How long an answer to a change of topics, partitions or configurations waits until"
            " all live brokers know the change. 0: it doesn't wait.",
        ),
        ConfigKey(
            DRAFT_LISTENERS_KEY,
            "LIST",
            "",
            distinct=True,
            documentation="The controller listeners that speak KIP-853 as it was drafted, not as it was"
            " released. Kafka's own controllers and brokers can't use them.",
        ),
        ConfigKey(
            EXPORTERS_KEY,
            "LIST",
            "",
            distinct=True,
            documentation="The names of the exporters that the active controller runs. Each has keys of its"
            f" own: {EXPORTER_PREFIX}NAME.type and others.",
        ),
        ConfigKey(
            "kraft.wire.exporters.max.log.bytes",
            "LONG",
            str(1024 * 1024 * 1024),
            minimum=-1,
            documentation="Records that an exporter hasn't exported are kept until log and snapshots have so"
            " many bytes, though metadata.max.retention is exceeded. -1: there is no limit.",
        ),
        ConfigKey(
            "kraft.wire.exporters.max.log.ms",
            "LONG",
            str(14 * 24 * 3600 * 1000),
            minimum=-1,
            documentation="Records that an exporter hasn't exported are kept until the snapshot before them"
            " is so old, though metadata.max.retention is exceeded. -1: there is no limit.",
        ),
        ConfigKey(
            HTTP_LISTENER_KEY,
            "STRING",
            "",
            documentation="The HOST:PORT at which this controller serves /metrics, /livez and /readyz over"
            " HTTP. Port 0 is any free port. Empty: there is no such listener.",
        ),
        ConfigKey(
            HELD_BYTES_KEY,
            "LONG",
            str(MAX_HELD_BYTES),
            minimum=LEAST_HELD_BYTES,
            documentation="The most bytes of requests and unsent responses of all connections. A request in"
            " work counts with up to eight times its size. Above the limit, the connection that holds most is"
            " dropped.",
        ),
        ConfigKey(
            LIMIT_KEY,
            "INT",
            str(MAX_REQUEST_ENTRIES),
            minimum=LEAST_REQUEST_ENTRIES,
            documentation="The most entries of one request, which are the elements of its arrays.",
        ),
    )
}
