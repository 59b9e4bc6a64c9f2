"""A connection's settings out of options with Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.client.addresses import BOOTSTRAP, parse_addresses
from kraft_wire.client.errors import BadSetting
from kraft_wire.client.option_names import API_TIMEOUT, CLUSTER_ID, KAFKA, REQUEST_TIMEOUT
from kraft_wire.client.quorum import API_TIMEOUT_MS, REQUEST_TIMEOUT_MS, QuorumSettings
from kraft_wire.client.security import parse_security


def parse_settings(options: Mapping[str, str]) -> QuorumSettings:
    """Options without that prefix, but for these, are somebody else's. Raises BadSetting."""
    security = {name.removeprefix(KAFKA): value for name, value in options.items() if name.startswith(KAFKA)}
    return QuorumSettings(
        parse_addresses(options.get(BOOTSTRAP, "")),
        parse_security(security),
        _timeout_ms(options, REQUEST_TIMEOUT, REQUEST_TIMEOUT_MS),
        _timeout_ms(options, API_TIMEOUT, API_TIMEOUT_MS),
        options.get(CLUSTER_ID),
    )


def _timeout_ms(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise BadSetting(f"{name}: {text!r} isn't a number of milliseconds above 0")
    return int(text)
