"""Describe the keys of a broker or controller that concern its role, the quorum and the metadata."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "alter.config.policy.class.name": "The policy that may refuse changes of configurations.",
    "auto.leader.rebalance.enable": "Whether the controller makes the preferred replicas leaders again.",
    "broker.heartbeat.interval.ms": "How often a broker sends a heartbeat to the active controller.",
    "broker.id": "The older name of node.id.",
    "broker.rack": "The rack, or zone, of this broker. Replicas are spread over racks.",
    "broker.session.timeout.ms": "The controller fences a broker that sends no heartbeat for so long.",
    "config.providers": (
        "The names of providers that replace ${NAME:PATH:KEY} in values. Each has keys of its own:"
        " config.providers.NAME.class and others."
    ),
    "controlled.shutdown.enable": "Whether a broker hands its leaderships over before it ends.",
    "controller.listener.names": (
        "The listeners of the controllers. A broker connects to the first of them; a controller serves all"
        " of them."
    ),
    "controller.performance.always.log.threshold.ms": (
        "An event of the controller that takes longer is logged."
    ),
    "controller.performance.sample.period.ms": "How often the controller logs its slowest event.",
    "controller.quorum.append.linger.ms": (
        "The leader of the quorum waits up to this time to write more records together."
    ),
    "controller.quorum.auto.join.enable": (
        "Whether a controller that is not a voter asks to become one (KIP-853)."
    ),
    "controller.quorum.bootstrap.servers": (
        "The HOST:PORT addresses of controllers that are asked for the leader. They don't need to be voters."
    ),
    "controller.quorum.election.backoff.max.ms": (
        "A candidate that was not elected waits up to this time before it stands again."
    ),
    "controller.quorum.election.timeout.ms": (
        "A candidate waits for votes for this time, and up to twice as long by chance."
    ),
    "controller.quorum.fetch.max.bytes": "A fetch from the quorum's leader gets about so many bytes.",
    "controller.quorum.fetch.snapshot.max.bytes": "A fetch of a snapshot gets at most so many bytes.",
    "controller.quorum.fetch.timeout.ms": (
        "A follower that hears nothing from the leader for so long becomes a candidate. A leader that is"
        " not fetched from by a majority resigns."
    ),
    "controller.quorum.request.timeout.ms": (
        "A request within the quorum fails without response after this time."
    ),
    "controller.quorum.retry.backoff.ms": "A failed request within the quorum is sent again after this time.",
    "controller.quorum.voters": (
        "The voters of a static quorum, as ID@HOST:PORT. A dynamic quorum has its voters in the log and"
        " leaves this empty."
    ),
    "controller.quota.window.num": (
        "The windows over which changes of metadata are counted for controller_mutation_rate."
    ),
    "controller.quota.window.size.seconds": "The length of each of these windows.",
    "controller.socket.timeout.ms": (
        "A request from a broker to the controller fails without response after this time."
    ),
    "cordoned.log.dirs": "The log directories that get no new replicas (KIP-1066). * stands for all.",
    "create.topic.policy.class.name": "The policy that may refuse new topics.",
    "early.start.listeners": (
        "The listeners that accept requests before the authorizer is ready. Controllers default to their own."
    ),
    "initial.broker.registration.timeout.ms": (
        "A broker that can't register at the controller for so long ends."
    ),
    "internal.metadata.delete.delay.millis": "How long removed files of the metadata log stay on disk.",
    "internal.metadata.log.segment.bytes": (
        "The size of a segment of the metadata log below the limit of metadata.log.segment.bytes. It is for"
        " tests."
    ),
    "internal.metadata.max.batch.size.in.bytes": (
        "The largest batch that the controller writes to the metadata log. It is for tests."
    ),
    "leader.imbalance.check.interval.seconds": (
        "How often the controller looks for leaders that are not the preferred ones."
    ),
    "metadata.log.dir": "The folder of the metadata log. Without it, this is the first one of log.dirs.",
    "metadata.log.max.record.bytes.between.snapshots": (
        "After so many bytes of records a new snapshot is written."
    ),
    "metadata.log.max.snapshot.interval.ms": (
        "After this time a new snapshot is written, if there are new records. 0: time doesn't matter."
    ),
    "metadata.log.segment.bytes": "The size at which a segment of the metadata log is closed.",
    "metadata.log.segment.ms": "The age at which a segment of the metadata log is closed.",
    "metadata.max.idle.interval.ms": (
        "How often the active controller writes a record without effect, so that the metadata offset"
        " advances. 0: never."
    ),
    "metadata.max.retention.bytes": (
        "Old segments and snapshots of the metadata log are deleted when it is larger, if a newer snapshot"
        " holds what was in them."
    ),
    "metadata.max.retention.ms": (
        "Old segments and snapshots of the metadata log are deleted at this age, if a newer snapshot holds"
        " what was in them."
    ),
    "node.id": "The number of this node. Each node of a cluster has its own.",
    "process.roles": "What this node is: broker, controller, or both.",
    "server.max.startup.time.ms": "A node that is not ready after this time ends.",
    "unclean.leader.election.interval.ms": (
        "How often the controller looks for partitions without leader that may elect a replica which is not"
        " in sync."
    ),
    "unstable.api.versions.enable": (
        "Whether versions of APIs that may still change are served. It is for tests."
    ),
    "unstable.feature.versions.enable": (
        "Whether versions of features that may still change can be used. It is for tests."
    ),
}
