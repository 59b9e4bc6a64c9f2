"""Describe the keys of a broker that concern groups, offsets and transactions."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "The longest wait between two attempts to add a partition to a transaction on the server's side."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "The wait after the first failed attempt to add a partition to a transaction on the server's side."
    ),
    "errors.deadletterqueue.auto.create.topics.enable": (
        "Whether a missing dead letter queue of a share group is created."
    ),
    "errors.deadletterqueue.topic.name.prefix": "The names of dead letter queues begin with this.",
    "group.consumer.assignment.interval.ms": (
        "The value of consumer groups that don't set consumer.assignment.interval.ms."
    ),
    "group.consumer.assignor.offload.enable": (
        "The value of consumer groups that don't set consumer.assignor.offload.enable."
    ),
    "group.consumer.assignors": (
        "The assignors of consumer groups: names of Kafka's own, or classes. The first one is used if"
        " members name none."
    ),
    "group.consumer.heartbeat.interval.ms": (
        "The value of consumer groups that don't set consumer.heartbeat.interval.ms."
    ),
    "group.consumer.max.assignment.interval.ms": (
        "The largest consumer.assignment.interval.ms that a group may have."
    ),
    "group.consumer.max.heartbeat.interval.ms": (
        "The largest consumer.heartbeat.interval.ms that a group may have."
    ),
    "group.consumer.max.session.timeout.ms": "The largest consumer.session.timeout.ms that a group may have.",
    "group.consumer.max.size": "The most members of a consumer group.",
    "group.consumer.migration.policy": (
        "Whether groups turn from the classic protocol to the consumer protocol while they have members"
        " (upgrade), back (downgrade), both (bidirectional), or neither (disabled)."
    ),
    "group.consumer.min.assignment.interval.ms": (
        "The smallest consumer.assignment.interval.ms that a group may have."
    ),
    "group.consumer.min.heartbeat.interval.ms": (
        "The smallest consumer.heartbeat.interval.ms that a group may have."
    ),
    "group.consumer.min.session.timeout.ms": (
        "The smallest consumer.session.timeout.ms that a group may have."
    ),
    "group.consumer.regex.refresh.interval.ms": (
        "How often the topics are looked up that match the patterns of a consumer group."
    ),
    "group.consumer.session.timeout.ms": (
        "The value of consumer groups that don't set consumer.session.timeout.ms."
    ),
    "group.coordinator.append.linger.ms": (
        "The group coordinator waits up to this time to write more records together. -1: it decides by"
        " itself."
    ),
    "group.coordinator.background.threads": (
        "The threads of the group coordinator for long work, such as assignments."
    ),
    "group.coordinator.cached.buffer.max.bytes": (
        "The group coordinator keeps a buffer for its next write if it is at most so large."
    ),
    "group.coordinator.rebalance.protocols": "The kinds of groups that a broker serves.",
    "group.coordinator.threads": "The threads of the group coordinator.",
    "group.initial.rebalance.delay.ms": (
        "How long the first rebalance of a classic group waits for more members."
    ),
    "group.max.session.timeout.ms": (
        "The largest session timeout that a member of a classic group may ask for."
    ),
    "group.max.size": "The most members of a classic group.",
    "group.min.session.timeout.ms": (
        "The smallest session timeout that a member of a classic group may ask for."
    ),
    "group.share.assignment.interval.ms": (
        "The value of share groups that don't set share.assignment.interval.ms."
    ),
    "group.share.assignor.offload.enable": (
        "The value of share groups that don't set share.assignor.offload.enable."
    ),
    "group.share.assignors": "The assignor of share groups: a name of Kafka's own, or a class.",
    "group.share.delivery.count.limit": (
        "The value of share groups that don't set share.delivery.count.limit."
    ),
    "group.share.dlq.manager.class.name": (
        "The class that writes to the dead letter queues of share groups. It is for tests."
    ),
    "group.share.heartbeat.interval.ms": (
        "The value of share groups that don't set share.heartbeat.interval.ms."
    ),
    "group.share.initialize.retry.interval.ms": (
        "A share group's state in a new partition is initialized again after this time without success."
    ),
    "group.share.max.assignment.interval.ms": (
        "The largest share.assignment.interval.ms that a group may have."
    ),
    "group.share.max.delivery.count.limit": "The largest share.delivery.count.limit that a group may have.",
    "group.share.max.heartbeat.interval.ms": "The largest share.heartbeat.interval.ms that a group may have.",
    "group.share.max.partition.max.record.locks": (
        "The largest share.partition.max.record.locks that a group may have."
    ),
    "group.share.max.record.lock.duration.ms": (
        "The largest share.record.lock.duration.ms that a group may have."
    ),
    "group.share.max.session.timeout.ms": "The largest share.session.timeout.ms that a group may have.",
    "group.share.max.share.sessions": "So many share sessions are open on a broker at a time.",
    "group.share.max.size": "The most members of a share group.",
    "group.share.min.assignment.interval.ms": (
        "The smallest share.assignment.interval.ms that a group may have."
    ),
    "group.share.min.delivery.count.limit": "The smallest share.delivery.count.limit that a group may have.",
    "group.share.min.heartbeat.interval.ms": (
        "The smallest share.heartbeat.interval.ms that a group may have."
    ),
    "group.share.min.partition.max.record.locks": (
        "The smallest share.partition.max.record.locks that a group may have."
    ),
    "group.share.min.record.lock.duration.ms": (
        "The smallest share.record.lock.duration.ms that a group may have."
    ),
    "group.share.min.session.timeout.ms": "The smallest share.session.timeout.ms that a group may have.",
    "group.share.partition.max.record.locks": (
        "The value of share groups that don't set share.partition.max.record.locks."
    ),
    "group.share.persister.class.name": "The class that stores the state of share groups. It is for tests.",
    "group.share.record.lock.duration.ms": (
        "The value of share groups that don't set share.record.lock.duration.ms."
    ),
    "group.share.session.timeout.ms": "The value of share groups that don't set share.session.timeout.ms.",
    "group.streams.acceptable.recovery.lag": (
        "The value of streams groups that don't set streams.acceptable.recovery.lag."
    ),
    "group.streams.assignment.interval.ms": (
        "The value of streams groups that don't set streams.assignment.interval.ms."
    ),
    "group.streams.assignor.offload.enable": (
        "The value of streams groups that don't set streams.assignor.offload.enable."
    ),
    "group.streams.assignors": (
        "The assignors of streams groups. The first one is used if a group names none."
    ),
    "group.streams.heartbeat.interval.ms": (
        "The value of streams groups that don't set streams.heartbeat.interval.ms."
    ),
    "group.streams.initial.rebalance.delay.ms": (
        "The value of streams groups that don't set streams.initial.rebalance.delay.ms."
    ),
    "group.streams.max.assignment.interval.ms": (
        "The largest streams.assignment.interval.ms that a group may have."
    ),
    "group.streams.max.heartbeat.interval.ms": (
        "The largest streams.heartbeat.interval.ms that a group may have."
    ),
    "group.streams.max.session.timeout.ms": "The largest streams.session.timeout.ms that a group may have.",
    "group.streams.max.size": "The most members of a streams group.",
    "group.streams.max.standby.replicas": "The largest streams.num.standby.replicas that a group may have.",
    "group.streams.max.warmup.replicas": "The largest streams.num.warmup.replicas that a group may have.",
    "group.streams.min.assignment.interval.ms": (
        "The smallest streams.assignment.interval.ms that a group may have."
    ),
    "group.streams.min.heartbeat.interval.ms": (
        "The smallest streams.heartbeat.interval.ms that a group may have."
    ),
    "group.streams.min.session.timeout.ms": "The smallest streams.session.timeout.ms that a group may have.",
    "group.streams.min.task.offset.interval.ms": (
        "The smallest streams.task.offset.interval.ms that a group may have."
    ),
    "group.streams.num.standby.replicas": (
        "The value of streams groups that don't set streams.num.standby.replicas."
    ),
    "group.streams.num.warmup.replicas": (
        "The value of streams groups that don't set streams.num.warmup.replicas."
    ),
    "group.streams.rack.aware.assignment.tags": (
        "The value of streams groups that don't set streams.rack.aware.assignment.tags."
    ),
    "group.streams.session.timeout.ms": (
        "The value of streams groups that don't set streams.session.timeout.ms."
    ),
    "group.streams.task.offset.interval.ms": (
        "The value of streams groups that don't set streams.task.offset.interval.ms."
    ),
    "group.streams.topology.description.plugin.class": (
        "The class that keeps the topologies which streams groups describe."
    ),
    "offset.metadata.max.bytes": "The most bytes of text that a client may store beside an offset.",
    "offsets.commit.timeout.ms": (
        "A commit of offsets fails if not all replicas in sync have it after this time."
    ),
    "offsets.load.buffer.size": "The bytes that are read at a time when offsets are loaded.",
    "offsets.retention.check.interval.ms": "How often offsets are looked through for those that expired.",
    "offsets.retention.minutes": (
        "The offsets of a group without members, or without interest in the topic, are deleted after this"
        " time."
    ),
    "offsets.topic.compression.codec": (
        "The compression of the offsets topic, as a number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "offsets.topic.num.partitions": (
        "The partitions of the offsets topic. It must not change in a running cluster."
    ),
    "offsets.topic.replication.factor": "The replicas of the offsets topic.",
    "offsets.topic.segment.bytes": "The size of the offsets topic's segments. Smaller ones load faster.",
    "share.coordinator.append.linger.ms": (
        "The share coordinator waits up to this time to write more records together. -1: it decides by"
        " itself."
    ),
    "share.coordinator.cached.buffer.max.bytes": (
        "The share coordinator keeps a buffer for its next write if it is at most so large."
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "A partition without changes gets a new snapshot of its share state after this time."
    ),
    "share.coordinator.load.buffer.size": (
        "The bytes that are read at a time when the state of share groups is loaded."
    ),
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "After so many updates of a share state a new snapshot of it is written."
    ),
    "share.coordinator.state.topic.compression.codec": (
        "The compression of the topic of share states, as a number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "share.coordinator.state.topic.min.isr": "The min.insync.replicas of the topic of share states.",
    "share.coordinator.state.topic.num.partitions": (
        "The partitions of the topic of share states. It must not change in a running cluster."
    ),
    "share.coordinator.state.topic.prune.interval.ms": (
        "How often old records of the topic of share states are deleted."
    ),
    "share.coordinator.state.topic.replication.factor": "The replicas of the topic of share states.",
    "share.coordinator.state.topic.segment.bytes": "The size of the segments of the topic of share states.",
    "share.coordinator.threads": "The threads of the share coordinator.",
    "share.coordinator.write.timeout.ms": "A write of the share coordinator fails after this time.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often transactions are aborted that took too long."
    ),
    "transaction.max.timeout.ms": "The longest timeout of a transaction that a producer may ask for.",
    "transaction.partition.verification.enable": (
        "Whether a broker checks that a partition was added to a transaction before it accepts its records."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often transactional ids are looked through for those that expired."
    ),
    "transaction.state.log.load.buffer.size": (
        "The bytes that are read at a time when transactions are loaded."
    ),
    "transaction.state.log.min.isr": "The min.insync.replicas of the topic of transactions.",
    "transaction.state.log.num.partitions": (
        "The partitions of the topic of transactions. It must not change in a running cluster."
    ),
    "transaction.state.log.replication.factor": "The replicas of the topic of transactions.",
    "transaction.state.log.segment.bytes": "The size of the segments of the topic of transactions.",
    "transaction.two.phase.commit.enable": (
        "Whether producers may use transactions without timeout, for two-phase commits (KIP-939)."
    ),
    "transactional.id.expiration.ms": "A transactional id that was not used for so long is forgotten.",
}
