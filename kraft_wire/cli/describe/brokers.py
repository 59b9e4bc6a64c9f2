"""The screen ``brokers``: a row for each registered broker."""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.cli.describe.endpoints import urls_of
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.metadata.brokers import BrokerRegistration

FENCED: Final = "fenced"
SHUTTING_DOWN: Final = "in controlled shutdown"
ACTIVE: Final = "active"


class BrokerRow(msgspec.Struct):
    """A broker. ``leads`` is the number of partitions that it leads; ``cordoned`` is null until the broker
    has told which of its directories are cordoned."""

    broker: int
    state: str
    epoch: int
    leads: int
    rack: str | None
    directories: list[str]
    cordoned: list[str] | None
    endpoints: list[str]


def broker_rows(then: MetadataThen) -> list[BrokerRow]:
    """Return the brokers by id."""
    return [
        BrokerRow(
            id,
            state_of(broker),
            broker.epoch,
            then.state.partitions.count_led_by(id),
            broker.rack,
            list(map(str, broker.directories)),
            None if broker.cordoned_directories is None else list(map(str, broker.cordoned_directories)),
            urls_of(broker.listeners),
        )
        for id, broker in sorted(then.state.brokers.items())
    ]


def state_of(broker: BrokerRegistration) -> str:
    """Return the state of a broker in a word. A broker that shuts down is fenced at the end."""
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if broker.in_controlled_shutdown else ACTIVE
