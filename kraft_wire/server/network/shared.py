"""Hold what the connections of a server share: limits, the table of APIs, turns and places."""

from __future__ import annotations

import math

import msgspec
import trio

from kraft_wire.configs.own_keys import MAX_HELD_BYTES
from kraft_wire.controller.decision.api_table import Api, ApiTable
from kraft_wire.server.network.complaints import Mistakes
from kraft_wire.server.network.held_bytes import HeldBytes
from kraft_wire.server.network.places import Places
from kraft_wire.server.network.turns import Turns
from kraft_wire.wire.dialect import Dialect
from kraft_wire.wire.entry_count import MAX_REQUEST_ENTRIES
from kraft_wire.wire.server_side import ServedApi

API_KEY_BYTES = 2


class Limits:
    """The limits of one connection: the size of a frame, the idle time (as in Kafka, none if below 0), and
    the entries of a request; and the limit of the bytes that all connections hold."""

    def __init__(
        self,
        max_frame_bytes: int,
        max_idle_ms: int,
        max_request_entries: int = MAX_REQUEST_ENTRIES,
        max_held_bytes: int = MAX_HELD_BYTES,
    ) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.max_idle_ms = max_idle_ms
        self.max_request_entries = max_request_entries
        self.max_held_bytes = max_held_bytes

    @property
    def max_idle_seconds(self) -> float:
        """The maximum idle time; infinite if there is no limit."""
        return self.max_idle_ms / 1000 if self.max_idle_ms >= 0 else math.inf


class Shared(msgspec.Struct, frozen=True):
    """The limits, APIs, turns, places and counters that all connections share."""

    limits: Limits
    apis: ApiTable
    turns: Turns
    places: Places
    held: HeldBytes
    mistakes: Mistakes
    decoding: trio.CapacityLimiter
    found: dict[tuple[int, int], ServedApi]
    dialect: Dialect | None = None

    @classmethod
    def of(cls, limits: Limits, apis: ApiTable) -> Shared:
        """Return what the connections of a server share."""
        held, decoding = HeldBytes(limits.max_held_bytes), trio.CapacityLimiter(1)
        return cls(limits, apis, Turns(), Places(), held, Mistakes(), decoding, {})

    def speaking(self, dialect: Dialect) -> Shared:
        """Return the same for the connections of a listener that speaks a dialect."""
        return msgspec.structs.replace(self, found={}, dialect=dialect)

    def find_api(self, api_key: int, version: int) -> ServedApi | None:
        """Find an API that is served. What was found once is found faster."""
        known = self.found.get((api_key, version))
        if known is not None:
            return known
        found = self._look_up(api_key, version)
        if found is not None:
            self.found[api_key, version] = found
        return found

    def _look_up(self, api_key: int, version: int) -> ServedApi | None:
        if self.dialect is not None and not self.dialect.is_served(api_key, version):
            return None
        form = None if self.dialect is None else self.dialect.form(api_key)
        if form is not None:
            api_key, version = form.own_key, form.own_versions[version]
        api = self.apis.served(api_key, version)
        if api is None:
            return None
        request_class = api.request_class if form is None else form.request_class
        most_entries = api.max_entries(self.limits.max_request_entries)
        return ServedApi(request_class, most_entries, api.named_items, form, api.max_bytes)

    def api_of(self, whole: bytes) -> Api | None:
        """Return the API of a request that isn't decoded; None if it isn't served."""
        api_key = int.from_bytes(whole[:API_KEY_BYTES])
        return self.apis.find(api_key if self.dialect is None else self.dialect.own_key(api_key))
