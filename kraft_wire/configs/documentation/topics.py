"""Describe the keys of topics."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "cleanup.policy": (
        "What happens to old data: delete removes segments that exceed retention, compact keeps the last"
        " record of each key. Both together are allowed; an empty list keeps everything."
    ),
    "compression.gzip.level": (
        "The level that the broker compresses with if compression.type is gzip. -1 is gzip's own default."
    ),
    "compression.lz4.level": "The level that the broker compresses with if compression.type is lz4.",
    "compression.type": (
        "How the broker stores batches: compressed with this codec, uncompressed, or as the producer sent"
        " them (producer)."
    ),
    "compression.zstd.level": "The level that the broker compresses with if compression.type is zstd.",
    "delete.retention.ms": (
        "How long a compacted topic keeps the tombstones of removed keys. A consumer that reads from the"
        " beginning has so much time to see them."
    ),
    "errors.deadletterqueue.group.enable": (
        "Whether share groups may use this topic as their dead letter queue."
    ),
    "file.delete.delay.ms": "How long the files of a removed segment stay on disk.",
    "flush.messages": (
        "After so many records the log is forced to disk. Replication protects records without it."
    ),
    "flush.ms": (
        "After so many milliseconds the log is forced to disk. Replication protects records without it."
    ),
    "follower.replication.throttled.replicas": (
        "The replicas whose fetching is throttled, as PARTITION:BROKER, or * for all. The rate is the"
        " broker's follower.replication.throttled.rate."
    ),
    "index.interval.bytes": (
        "The index gets an entry after so many bytes of the log. Less finds an offset faster and makes the"
        " index larger."
    ),
    "internal.segment.bytes": "The size of a segment below the limit of segment.bytes. It is for tests.",
    "leader.replication.throttled.replicas": (
        "The replicas whose followers are served at a throttled rate, as PARTITION:BROKER, or * for all."
        " The rate is the broker's leader.replication.throttled.rate."
    ),
    "local.retention.bytes": (
        "With tiered storage: the bytes of a partition that stay on the broker's disk. -2 stands for"
        " retention.bytes."
    ),
    "local.retention.ms": (
        "With tiered storage: how long segments stay on the broker's disk. -2 stands for retention.ms."
    ),
    "max.compaction.lag.ms": "A record of a compacted topic is compacted at the latest after this time.",
    "max.decompressed.message.bytes": "The largest size of a single record after its batch is decompressed.",
    "max.message.bytes": "The largest batch that a producer may send, after compression.",
    "message.timestamp.after.max.ms": (
        "A record is refused if its timestamp is so far ahead of the broker's clock. It counts for"
        " CreateTime."
    ),
    "message.timestamp.before.max.ms": (
        "A record is refused if its timestamp is earlier than the broker's clock by more than this. It"
        " counts for CreateTime."
    ),
    "message.timestamp.type": (
        "Whether a record's timestamp is the producer's (CreateTime) or the time at which the broker"
        " appended it (LogAppendTime)."
    ),
    "min.cleanable.dirty.ratio": (
        "A log is compacted when the part that was not compacted yet exceeds this ratio. Less wastes less"
        " space and compacts more often."
    ),
    "min.compaction.lag.ms": "A record of a compacted topic is not compacted before this time is over.",
    "min.insync.replicas": (
        "With acks=all a write succeeds only while at least so many replicas are in sync. With fewer,"
        " producers get NOT_ENOUGH_REPLICAS."
    ),
    "preallocate": "Whether the file of a new segment gets its whole size on disk at once.",
    "remote.copy.lag.bytes": (
        "With tiered storage: a segment is copied when the log after it has so many bytes, or when"
        " remote.copy.lag.ms is over. 0 copies segments at once. -1 takes the limit from"
        " local.retention.bytes, and has no effect if that has no limit."
    ),
    "remote.copy.lag.ms": (
        "With tiered storage: a segment is copied when it is older than this, or when remote.copy.lag.bytes"
        " is reached. 0 copies segments at once. -1 takes the limit from local.retention.ms, and has no"
        " effect if that has no limit."
    ),
    "remote.log.copy.disable": "Whether copying to tiered storage stops. What was copied stays readable.",
    "remote.log.delete.on.disable": (
        "Whether the copied data is deleted when remote.storage.enable becomes false."
    ),
    "remote.storage.enable": (
        "Whether the segments of this topic are copied to tiered storage. To turn it off, set"
        " remote.log.delete.on.disable as well."
    ),
    "retention.bytes": (
        "A partition's oldest segments are deleted when it is larger than this. -1: size doesn't matter. It"
        " counts if cleanup.policy has delete."
    ),
    "retention.ms": (
        "Segments are deleted when their newest record is older than this. -1: age doesn't matter. It"
        " counts if cleanup.policy has delete."
    ),
    "segment.bytes": (
        "The size at which a segment is closed and a new one begins. Retention and compaction work on"
        " closed segments."
    ),
    "segment.index.bytes": "The largest size of a segment's index.",
    "segment.jitter.ms": (
        "Each segment is closed up to this time earlier, by chance, so that not all partitions begin new"
        " ones together."
    ),
    "segment.ms": "The age at which a segment is closed, though it is not full.",
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may lead when no other can. Acknowledged records may be lost"
        " then."
    ),
}
