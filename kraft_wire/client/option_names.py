"""The options of a connection to a quorum."""

from __future__ import annotations

from typing import Final

from kraft_wire.client.addresses import BOOTSTRAP

CLUSTER_ID: Final = "cluster.id"
REQUEST_TIMEOUT: Final = "request.timeout.ms"
API_TIMEOUT: Final = "default.api.timeout.ms"
KAFKA: Final = "kafka."
"""The prefix of security options, as Spark's own source for Kafka has it."""
QUORUM_OPTIONS: Final = (BOOTSTRAP, CLUSTER_ID, REQUEST_TIMEOUT, API_TIMEOUT)
