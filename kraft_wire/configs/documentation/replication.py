"""Describe the keys of a broker that concern replication."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "alter.log.dirs.replication.quota.window.num": (
        "The windows over which moves between log directories are measured."
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": "The length of each of these windows.",
    "follower.fetch.last.tiered.offset.enable": (
        "Whether a new follower begins after the last record in tiered storage. It doesn't fetch those"
        " before from the leader (KIP-1023)."
    ),
    "follower.replication.throttled.rate": (
        "So many bytes a second a broker fetches for throttled replicas. It is set dynamically for a broker."
    ),
    "leader.replication.throttled.rate": (
        "So many bytes a second a broker serves to followers of throttled replicas. It is set dynamically"
        " for a broker."
    ),
    "num.replica.alter.log.dirs.threads": (
        "The threads that move replicas between log directories. Without it, there is one a directory."
    ),
    "num.replica.fetchers": "The threads that fetch from each other broker.",
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "So many bytes a second are copied between the log directories of a broker. It is set dynamically"
        " for a broker."
    ),
    "replica.fetch.backoff.ms": "A follower waits this long after a fetch that failed.",
    "replica.fetch.max.bytes": (
        "The bytes that a follower fetches for each partition. A larger batch is fetched nevertheless."
    ),
    "replica.fetch.min.bytes": (
        "The leader answers a follower when it has so many bytes, or after replica.fetch.wait.max.ms."
    ),
    "replica.fetch.response.max.bytes": (
        "The bytes that a follower fetches at a time. A larger batch is fetched nevertheless."
    ),
    "replica.fetch.wait.max.ms": (
        "The leader answers a follower at the latest after this time. It must be below"
        " replica.lag.time.max.ms."
    ),
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are written down.",
    "replica.lag.time.max.ms": (
        "A follower that was not at the end of the leader's log for so long leaves the replicas in sync."
    ),
    "replica.selector.class": (
        "The class that picks the replica from which a consumer reads, such as the nearest one."
    ),
    "replica.socket.receive.buffer.bytes": "The receive buffer of a follower's connection.",
    "replica.socket.timeout.ms": (
        "A follower's fetch fails without response after this time. It should be above"
        " replica.fetch.wait.max.ms."
    ),
    "replication.quota.window.num": "The windows over which throttled replication is measured.",
    "replication.quota.window.size.seconds": "The length of each of these windows.",
}
