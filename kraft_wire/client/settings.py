"""The options of a connection to a quorum, and the settings that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.client.addresses import BOOTSTRAP, parse_addresses
from kraft_wire.client.security_options import Security, parse_security
from kraft_wire.security.errors import BadSetting
from kraft_wire.wire.address import Address

CLUSTER_ID: Final = "cluster.id"
REQUEST_TIMEOUT: Final = "request.timeout.ms"
API_TIMEOUT: Final = "default.api.timeout.ms"
KAFKA: Final = "kafka."
"""The prefix of security options, as in Spark's own Kafka source."""
QUORUM_OPTIONS: Final = (BOOTSTRAP, CLUSTER_ID, REQUEST_TIMEOUT, API_TIMEOUT)

REQUEST_TIMEOUT_MS: Final = 30_000
API_TIMEOUT_MS: Final = 60_000
"""The defaults of Kafka's clients for request.timeout.ms and default.api.timeout.ms."""


class QuorumSettings(msgspec.Struct, frozen=True):
    """The settings that are needed to reach a quorum. They can be sent to other processes.

    If ``cluster_id`` is given, controllers aren't asked for it. To ask takes Alter on the cluster and
    metadata.version 3.7.
    """

    bootstrap: tuple[Address, ...]
    security: Security = Security()
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    api_timeout_ms: int = API_TIMEOUT_MS
    cluster_id: str | None = None


def parse_settings(options: Mapping[str, str]) -> QuorumSettings:
    """Return the settings of ``QUORUM_OPTIONS`` and of every option with the prefix "kafka.".

    Other options are ignored. Raises BadSetting.
    """
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
