"""The security protocols of listeners and connections (Kafka's SecurityProtocol)."""

from __future__ import annotations

from typing import Final

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""In the order of Kafka's ids: the id of a protocol is its place."""
