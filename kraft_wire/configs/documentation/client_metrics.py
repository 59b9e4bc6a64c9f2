"""Describe the keys of client metrics subscriptions (KIP-714)."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "interval.ms": "How often clients push their metrics.",
    "match": (
        "The clients that a subscription is for: a list of NAME=PATTERN, such as"
        " client_software_name=librdkafka. Empty: all clients."
    ),
    "metrics": (
        "The prefixes of the names of the metrics that clients push. * stands for all, an empty list for"
        " none."
    ),
}
