"""The controller's static settings, with Kafka's keys and defaults (org.apache.kafka.server.config)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One field a Kafka key, dots as underscores.

    ``static_configs`` holds every key that the properties file gave, as text: DescribeConfigs reports them,
    and topic configs fall back on their broker-level synonyms there.
    """

    node_id: int
    default_replication_factor: int = 1
    num_partitions: int = 1
    delete_topic_enable: bool = True
    broker_heartbeat_interval_ms: int = 2000
    broker_session_timeout_ms: int = 9000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    unclean_leader_election_enable: bool = False
    unclean_leader_election_interval_ms: int = 300_000
    min_insync_replicas: int = 1
    metadata_log_max_record_bytes_between_snapshots: int = 20 * 1024 * 1024
    metadata_log_max_snapshot_interval_ms: int = 3_600_000
    metadata_max_idle_interval_ms: int = 500
    metadata_max_retention_bytes: int = 100 * 1024 * 1024
    metadata_max_retention_ms: int = 604_800_000
    static_configs: Mapping[str, str] = {}
