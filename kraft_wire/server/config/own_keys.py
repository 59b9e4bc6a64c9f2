"""Define the keys of a properties file that Kafka doesn't have. They all begin with ``kraft.wire.``."""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.types import ConfigKey
from kraft_wire.controller.settings import MAX_REQUEST_ENTRIES

OWN_KEYS: Final = (ConfigKey("kraft.wire.max.request.entries", "INT", str(MAX_REQUEST_ENTRIES), minimum=1),)
