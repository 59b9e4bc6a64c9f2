"""Define what a metric is: its own name and meaning, and its names in the dialects of dashboards for Kafka.

There are three dialects: A, the rules with which Strimzi reads Kafka's JMX beans; B, Strimzi's reporter; and
C, the rules of Confluent's jmx-monitoring-stacks. A name that several have is exposed once. In a dialect a
name that ends in ``_total`` is a counter, every other one a gauge.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec


class Kind(Enum):
    """The kind of a metric, as OpenMetrics names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Spelling(Enum):
    """The spelling of a label's values: names of features differ."""

    AS_OURS = "metadataVersion"
    WITH_HYPHENS = "metadata-version"


class Names(msgspec.Struct, frozen=True):
    """The names of a metric in the dialects A, B and C, empty where a dialect hasn't got it, and further
    names that all dialects have.

    ``labels`` are the dialects' names of the labels. A dialect's value is ours times ``factor``.
    """

    a: str = ""
    b: str = ""
    c: str = ""
    labels: tuple[str, ...] = ()
    factor: float = 1
    more: tuple[str, ...] = ()
    spelling: Spelling = Spelling.AS_OURS

    @property
    def all(self) -> list[str]:
        """Each name once."""
        return list(dict.fromkeys(filter(None, (self.a, self.b, self.c, *self.more))))


class Definition(msgspec.Struct, frozen=True):
    """A metric. ``name`` is our own name; it ends with ``unit`` if there is one, and a counter's with _total.

    ``on_leader_only``: nodes that don't lead don't have it. ``event`` is the log event of the same thing; the
    name has its words.
    """

    name: str
    kind: Kind
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    names: Names = Names()
    on_leader_only: bool = False
    event: str = ""


PREFIX: Final = "kraft_wire_"
MS: Final = 1000.0
NO_NAMES: Final = Names()


def raft(name: str, factor: float = 1, more: tuple[str, ...] = ()) -> Names:
    """Return the names of an attribute of Kafka's raft-metrics."""
    other = f"kafka_server_raft_metrics_{name}"
    return Names(f"kafka_server_raftmetrics_{name}", other, other, factor=factor, more=more)


def channel(name: str) -> Names:
    """Return the names of a total of Kafka's raft-channel-metrics. B's client library cuts ``_total`` off
    what isn't a counter, and C's rules leave these totals out."""
    return Names(f"kafka_server_raftchannelmetrics_{name}_total", f"kafka_server_raft_channel_metrics_{name}")


def bean(bean: str, labels: tuple[str, ...] = (), factor: float = 1, more: tuple[str, ...] = ()) -> Names:
    """Return the name of a bean's value. It is the same in all dialects."""
    name = f"kafka_{bean}"
    return Names(name, name, name, labels, factor, more)


def controller(
    name: str, labels: tuple[str, ...] = (), factor: float = 1, more: tuple[str, ...] = ()
) -> Names:
    """Return the name of a value of Kafka's KafkaController beans."""
    return bean(f"controller_kafkacontroller_{name}", labels, factor, more)


def gauge(
    name: str,
    help: str,
    names: Names = NO_NAMES,
    *,
    unit: str = "",
    labels: tuple[str, ...] = (),
    on_leader_only: bool = False,
    event: str = "",
) -> Definition:
    """Define a value that goes up and down."""
    return Definition(f"{PREFIX}{name}", Kind.GAUGE, help, unit, labels, names, on_leader_only, event)


def counter(
    name: str, help: str, names: Names = NO_NAMES, labels: tuple[str, ...] = (), event: str = ""
) -> Definition:
    """Define a count of what happened since this process started."""
    return Definition(f"{PREFIX}{name}_total", Kind.COUNTER, help, "", labels, names, event=event)


def seconds(name: str, help: str, labels: tuple[str, ...] = (), event: str = "") -> Definition:
    """Define a histogram of durations."""
    return Definition(f"{PREFIX}{name}_seconds", Kind.HISTOGRAM, help, "seconds", labels, event=event)
