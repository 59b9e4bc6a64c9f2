"""Describe the keys of a broker that concern topics and their logs."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "auto.create.topics.enable": "Whether a topic is created when a client asks for it.",
    "compression.gzip.level": "The gzip level of topics that don't set one. -1 is gzip's own default.",
    "compression.lz4.level": "The lz4 level of topics that don't set one.",
    "compression.type": (
        "The compression of topics that don't set one: a codec, uncompressed, or what the producer sent"
        " (producer)."
    ),
    "compression.zstd.level": "The zstd level of topics that don't set one.",
    "default.replication.factor": "The replicas of a new topic that doesn't say how many.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "log.cleaner.backoff.ms": "A compacting thread that found nothing to do sleeps for this time.",
    "log.cleaner.dedupe.buffer.size": (
        "The memory of all compacting threads for the keys that they have seen."
    ),
    "log.cleaner.delete.retention.ms": (
        "How long compacted topics that don't set delete.retention.ms keep tombstones."
    ),
    "log.cleaner.enable": "Whether topics are compacted at all. Deprecated: it should stay true.",
    "log.cleaner.io.buffer.load.factor": (
        "How full the memory for keys may get. More compacts more at a time, with more collisions."
    ),
    "log.cleaner.io.buffer.size": "The memory of all compacting threads for reading and writing.",
    "log.cleaner.io.max.bytes.per.second": "Compacting reads and writes at most so many bytes a second.",
    "log.cleaner.max.compaction.lag.ms": (
        "The latest compaction of topics that don't set max.compaction.lag.ms."
    ),
    "log.cleaner.min.cleanable.ratio": "The ratio of topics that don't set min.cleanable.dirty.ratio.",
    "log.cleaner.min.compaction.lag.ms": (
        "The earliest compaction of topics that don't set min.compaction.lag.ms."
    ),
    "log.cleaner.threads": "The threads that compact logs.",
    "log.cleanup.policy": "The policy of topics that don't set cleanup.policy.",
    "log.dir": "The folder of the logs, if log.dirs is not set.",
    "log.dir.failure.timeout.ms": (
        "A broker ends when it can't tell the controller for so long that a log directory failed while it"
        " led partitions there."
    ),
    "log.dirs": "The folders of the logs.",
    "log.flush.interval.messages": "The limit of topics that don't set flush.messages.",
    "log.flush.interval.ms": (
        "The limit of topics that don't set flush.ms. Without it, this is log.flush.scheduler.interval.ms."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "How often the offsets are written down up to which logs are on disk."
    ),
    "log.flush.scheduler.interval.ms": "How often logs are looked through for what is to be forced to disk.",
    "log.flush.start.offset.checkpoint.interval.ms": (
        "How often the offsets are written down at which logs begin."
    ),
    "log.index.interval.bytes": (
        "The distance of index entries in topics that don't set index.interval.bytes."
    ),
    "log.index.size.max.bytes": "The largest index in topics that don't set segment.index.bytes.",
    "log.initial.task.delay.ms": (
        "How long a broker waits after its start before it cleans and flushes logs. It is for tests."
    ),
    "log.local.retention.bytes": "The limit of topics that don't set local.retention.bytes.",
    "log.local.retention.ms": "The limit of topics that don't set local.retention.ms.",
    "log.message.timestamp.after.max.ms": (
        "The limit of topics that don't set message.timestamp.after.max.ms."
    ),
    "log.message.timestamp.before.max.ms": (
        "The limit of topics that don't set message.timestamp.before.max.ms."
    ),
    "log.message.timestamp.type": "The kind of timestamp in topics that don't set message.timestamp.type.",
    "log.preallocate": "Whether segments get their whole size at once in topics that don't set preallocate.",
    "log.remote.copy.lag.bytes": "The lag of topics that don't set remote.copy.lag.bytes.",
    "log.remote.copy.lag.ms": "The lag of topics that don't set remote.copy.lag.ms.",
    "log.retention.bytes": "The limit of topics that don't set retention.bytes.",
    "log.retention.check.interval.ms": "How often logs are looked through for segments to delete.",
    "log.retention.hours": (
        "The limit in hours of topics that don't set retention.ms. log.retention.minutes and"
        " log.retention.ms come before it."
    ),
    "log.retention.minutes": (
        "The limit in minutes of topics that don't set retention.ms. log.retention.ms comes before it."
    ),
    "log.retention.ms": "The limit of topics that don't set retention.ms. -1: age doesn't matter.",
    "log.roll.hours": (
        "The age in hours at which segments are closed in topics that don't set segment.ms. log.roll.ms"
        " comes before it."
    ),
    "log.roll.jitter.hours": (
        "The jitter in hours of topics that don't set segment.jitter.ms. log.roll.jitter.ms comes before it."
    ),
    "log.roll.jitter.ms": "The jitter of topics that don't set segment.jitter.ms.",
    "log.roll.ms": "The age at which segments are closed in topics that don't set segment.ms.",
    "log.segment.bytes": "The size of segments in topics that don't set segment.bytes.",
    "log.segment.delete.delay.ms": "The delay of topics that don't set file.delete.delay.ms.",
    "max.decompressed.message.bytes": "The limit of topics that don't set max.decompressed.message.bytes.",
    "message.max.bytes": "The limit of topics that don't set max.message.bytes.",
    "min.insync.replicas": "The least replicas in sync of topics that don't set min.insync.replicas.",
    "num.partitions": "The partitions of a new topic that doesn't say how many.",
    "num.recovery.threads.per.data.dir": (
        "The threads of each log directory that load logs at the start and flush them at the end."
    ),
    "producer.id.expiration.check.interval.ms": (
        "How often producer ids are looked through for those that expired. It is for tests."
    ),
    "producer.id.expiration.ms": (
        "A partition forgets a producer that wrote nothing for so long. A later retry of an old batch is"
        " not recognized then."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may lead, in topics that don't say so."
    ),
}
