"""Describe the keys of a broker or controller that concern its listeners, connections and threads."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "advertised.listeners": "The addresses that clients are told, where they differ from listeners.",
    "background.threads": "The threads for the broker's background work.",
    "client.quota.callback.class": (
        "The class that decides which quota a client has, in place of Kafka's own rules."
    ),
    "connection.failed.authentication.delay.ms": (
        "A connection that failed to authenticate is closed after this time, so that the client doesn't try"
        " again at once."
    ),
    "connections.max.idle.ms": "A connection without traffic is closed after this time.",
    "delete.records.purgatory.purge.interval.requests": (
        "After so many completed requests, the list of waiting DeleteRecords requests is cleaned."
    ),
    "fetch.max.bytes": "A fetch gets about so many bytes, if the client doesn't ask for fewer.",
    "fetch.purgatory.purge.interval.requests": (
        "After so many completed requests, the list of waiting fetches is cleaned."
    ),
    "inter.broker.listener.name": "The listener that brokers use among themselves.",
    "kafka.metrics.polling.interval.secs": "How often kafka.metrics.reporters are called.",
    "kafka.metrics.reporters": "The classes that get the metrics of the older library (Yammer).",
    "listener.security.protocol.map": "The security protocol of each listener, as NAME:PROTOCOL.",
    "listeners": (
        "The addresses on which this node listens, as NAME://HOST:PORT. No host stands for the default"
        " interface, 0.0.0.0 for all."
    ),
    "max.connection.creation.rate": (
        "So many new connections a second are accepted. A listener can have its own limit."
    ),
    "max.connections": "So many connections are open at a time. A listener can have its own limit.",
    "max.connections.per.ip": (
        "So many connections of one address are open at a time. With 0, only the addresses of"
        " max.connections.per.ip.overrides can connect."
    ),
    "max.connections.per.ip.overrides": "Limits for single addresses or host names, as HOST:NUMBER.",
    "max.incremental.fetch.session.cache.slots": "So many fetch sessions are kept.",
    "max.request.partition.size.limit": "The most partitions that one answer to DescribeTopicPartitions has.",
    "metric.reporters": "The classes that get the node's metrics.",
    "metrics.num.samples": "The samples that a metric is computed from.",
    "metrics.recording.level": (
        "The metrics with this level, or a more important one, are recorded: INFO, DEBUG or TRACE."
    ),
    "metrics.sample.window.ms": "The time that a sample of a metric covers.",
    "num.io.threads": "The threads that process requests.",
    "num.network.threads": "The threads of a listener that read requests and write responses.",
    "producer.purgatory.purge.interval.requests": (
        "After so many completed requests, the list of waiting produce requests is cleaned."
    ),
    "queued.max.request.bytes": (
        "No more requests are read while those that wait have so many bytes. -1: there is no limit."
    ),
    "queued.max.requests": "No more requests are read while so many wait.",
    "quota.window.num": "The windows over which the traffic of clients is measured for quotas.",
    "quota.window.size.seconds": "The length of each of these windows.",
    "request.timeout.ms": "A request that this node sends fails without response after this time.",
    "security.inter.broker.protocol": (
        "The security protocol among brokers, if inter.broker.listener.name is not set."
    ),
    "share.fetch.purgatory.purge.interval.requests": (
        "After so many completed requests, the list of waiting share fetches is cleaned."
    ),
    "socket.connection.setup.timeout.max.ms": (
        "The longest time that an attempt to connect may take, after attempts that failed."
    ),
    "socket.connection.setup.timeout.ms": (
        "The time that the first attempt to connect may take. It doubles with each one that fails."
    ),
    "socket.listen.backlog.size": (
        "So many connections wait to be accepted. The operating system may lower it."
    ),
    "socket.receive.buffer.bytes": (
        "The size of a socket's receive buffer. -1 is the operating system's default."
    ),
    "socket.request.max.bytes": "The largest request that is read.",
    "socket.send.buffer.bytes": "The size of a socket's send buffer. -1 is the operating system's default.",
    "telemetry.max.bytes": "The largest push of metrics that a client may send (KIP-714).",
}
