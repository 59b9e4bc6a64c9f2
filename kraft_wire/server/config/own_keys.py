"""Define the keys of a properties file that Kafka doesn't have. They all begin with ``kraft.wire.``."""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.types import ConfigKey
from kraft_wire.controller.settings import MAX_REQUEST_ENTRIES
from kraft_wire.wire.entry_count import LIMIT_KEY
from kraft_wire.wire.server_side import HELD_BYTES_KEY, MAX_HELD_BYTES

OWN_KEYS: Final = (
    ConfigKey("kraft.wire.answer.when.known.ms", "INT", "0", minimum=0),
    ConfigKey(HELD_BYTES_KEY, "LONG", str(MAX_HELD_BYTES), minimum=1),
    ConfigKey(LIMIT_KEY, "INT", str(MAX_REQUEST_ENTRIES), minimum=1),
)
