"""List the kinds of sinks, their own keys, and where their code is. Imports none of them."""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.configs.types import ConfigKey


class SinkKind(msgspec.Struct, frozen=True):
    """A kind of sink. ``module`` defines ``make_sink``; ``keys`` are named without the exporter's prefix."""

    module: str
    keys: tuple[ConfigKey, ...]


KINDS: Final = {
    "jsonl": SinkKind(
        "kraft_wire.exporters.sinks.jsonl",
        (
            ConfigKey("path", "STRING", required=True, not_empty=True),
            ConfigKey("max.file.bytes", "LONG", str(128 * 1024 * 1024), minimum=1),
            ConfigKey("max.file.age.ms", "LONG", str(24 * 3600 * 1000), minimum=1000),
        ),
    ),
}
"""By the value of the key ``type``."""
