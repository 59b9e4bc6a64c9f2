"""Describe the keys of a broker that concern tiered storage (KIP-405)."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "remote.fetch.max.wait.ms": "A fetch waits at most this long for data of tiered storage.",
    "remote.list.offsets.request.timeout.ms": (
        "A request for an offset by time that needs tiered storage fails after this time."
    ),
    "remote.log.index.file.cache.total.size.bytes": (
        "The disk space for indexes that were fetched from tiered storage."
    ),
    "remote.log.index.file.cache.ttl.ms": (
        "An index that was fetched from tiered storage is removed from the disk when nobody needed it for"
        " so long."
    ),
    "remote.log.manager.copier.thread.pool.size": "The threads that copy segments to tiered storage.",
    "remote.log.manager.copy.max.bytes.per.second": "So many bytes a second are copied to tiered storage.",
    "remote.log.manager.copy.quota.window.num": "The windows over which copying is measured.",
    "remote.log.manager.copy.quota.window.size.seconds": "The length of each of these windows.",
    "remote.log.manager.expiration.thread.pool.size": (
        "The threads that delete expired segments of tiered storage."
    ),
    "remote.log.manager.fetch.max.bytes.per.second": "So many bytes a second are read from tiered storage.",
    "remote.log.manager.fetch.quota.window.num": "The windows over which reading is measured.",
    "remote.log.manager.fetch.quota.window.size.seconds": "The length of each of these windows.",
    "remote.log.manager.follower.thread.pool.size": "The threads that follow what the leaders have copied.",
    "remote.log.manager.task.interval.ms": (
        "How often segments are looked for that are to be copied or deleted."
    ),
    "remote.log.manager.task.retry.backoff.max.ms": (
        "The longest wait before a failed task of tiered storage is tried again."
    ),
    "remote.log.manager.task.retry.backoff.ms": (
        "The first wait before a failed task of tiered storage is tried again."
    ),
    "remote.log.manager.task.retry.jitter": "These waits vary by this part, by chance.",
    "remote.log.manager.thread.pool.size": "The threads that schedule the work of tiered storage.",
    "remote.log.metadata.custom.metadata.max.bytes": (
        "The most bytes that a storage manager may add to the metadata of a segment."
    ),
    "remote.log.metadata.manager.class.name": "The class that keeps the metadata of copied segments.",
    "remote.log.metadata.manager.class.path": "The class path of that class, if it is not the broker's.",
    "remote.log.metadata.manager.impl.prefix": "Keys with this prefix are handed to the metadata manager.",
    "remote.log.metadata.manager.listener.name": (
        "The listener that the metadata manager uses to reach brokers."
    ),
    "remote.log.reader.max.pending.tasks": "So many reads of tiered storage may wait. More are refused.",
    "remote.log.reader.threads": "The threads that read from tiered storage.",
    "remote.log.storage.manager.class.name": "The class that stores segments elsewhere.",
    "remote.log.storage.manager.class.path": "The class path of that class, if it is not the broker's.",
    "remote.log.storage.manager.impl.prefix": "Keys with this prefix are handed to the storage manager.",
    "remote.log.storage.system.enable": (
        "Whether this broker has tiered storage. Topics use it with remote.storage.enable."
    ),
}
