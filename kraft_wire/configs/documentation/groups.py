"""Describe the keys of groups."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "consumer.assignment.interval.ms": (
        "The least time between two assignments of a consumer group. Changes within it are gathered."
    ),
    "consumer.assignor.offload.enable": (
        "Whether assignments of consumer groups are computed outside of the coordinator's thread."
    ),
    "consumer.heartbeat.interval.ms": "How often members of a consumer group send heartbeats.",
    "consumer.session.timeout.ms": (
        "A member of a consumer group that sends no heartbeat for so long is removed."
    ),
    "errors.deadletterqueue.copy.record.enable": (
        "Whether the dead letter queue gets the whole record, and not only headers that say which one it was."
    ),
    "errors.deadletterqueue.topic.name": (
        "The topic that gets the records which a share group couldn't process. Empty: they are dropped."
    ),
    "share.assignment.interval.ms": (
        "The least time between two assignments of a share group. Changes within it are gathered."
    ),
    "share.assignor.offload.enable": (
        "Whether assignments of share groups are computed outside of the coordinator's thread."
    ),
    "share.auto.offset.reset": (
        "Where a share group begins to read a partition: earliest, latest, or by_duration:P… for a time ago."
    ),
    "share.delivery.count.limit": (
        "A record is delivered at most so many times. Then it counts as processed, or goes to the dead"
        " letter queue."
    ),
    "share.heartbeat.interval.ms": "How often members of a share group send heartbeats.",
    "share.isolation.level": (
        "Whether a share group gets all records (read_uncommitted) or no records of aborted transactions"
        " (read_committed)."
    ),
    "share.partition.max.record.locks": (
        "So many records of a partition may be with consumers of a share group at a time."
    ),
    "share.record.lock.duration.ms": (
        "A consumer has so much time to process a record. Then another consumer gets it."
    ),
    "share.renew.acknowledge.enable": "Whether consumers may ask for more time to process a record.",
    "share.session.timeout.ms": "A member of a share group that sends no heartbeat for so long is removed.",
    "streams.acceptable.recovery.lag": (
        "A standby counts as caught up if its state lags by at most so many offsets."
    ),
    "streams.assignment.interval.ms": (
        "The least time between two assignments of a streams group. Changes within it are gathered."
    ),
    "streams.assignor.name": "The assignor of the streams group. Null: the broker's first one.",
    "streams.assignor.offload.enable": (
        "Whether assignments of streams groups are computed outside of the coordinator's thread."
    ),
    "streams.heartbeat.interval.ms": "How often members of a streams group send heartbeats.",
    "streams.initial.rebalance.delay.ms": (
        "How long the first assignment of an empty streams group waits for more members."
    ),
    "streams.num.standby.replicas": "The number of standby copies of each task's state.",
    "streams.num.warmup.replicas": "So many tasks may build up their state on another member at a time.",
    "streams.rack.aware.assignment.tags": "The client tags that standby copies are spread by, such as zone.",
    "streams.session.timeout.ms": (
        "A member of a streams group that sends no heartbeat for so long is removed."
    ),
    "streams.task.offset.interval.ms": "How often members report how far the state of their tasks is.",
}
