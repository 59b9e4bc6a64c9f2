"""Define the static settings of a controller, with Kafka's keys and defaults."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kraft_wire.metadata.features.supported import supported_ranges
from kraft_wire.raft.config import MAX_RETENTION_BYTES, MAX_RETENTION_MS
from kraft_wire.security.secret import Secret
from kraft_wire.wire.entry_count import MAX_REQUEST_ENTRIES


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings. Each field is a Kafka key with underscores for dots.

    ``static_configs`` has every key of the properties file, as text: DescribeConfigs returns them, and topic
    configs fall back on their broker synonyms there. ``kraft_wire_max_request_entries`` is the most entries
    of a client's request, in all of its arrays. The answer to a client's change waits up to
    ``kraft_wire_answer_when_known_ms`` until all active brokers know the change.
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
    controller_quota_window_num: int = 11
    controller_quota_window_size_seconds: int = 1
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    delegation_token_secret_key: Secret | None = None
    delegation_token_max_lifetime_ms: int = 7 * 24 * 3_600_000
    delegation_token_expiry_time_ms: int = 24 * 3_600_000
    delegation_token_expiry_check_interval_ms: int = 3_600_000
    unstable_feature_versions_enable: bool = False
    metadata_max_retention_bytes: int = MAX_RETENTION_BYTES
    metadata_max_retention_ms: int = MAX_RETENTION_MS
    kraft_wire_max_request_entries: int = MAX_REQUEST_ENTRIES
    kraft_wire_answer_when_known_ms: int = 0
    static_configs: Mapping[str, str] = {}

    @property
    def feature_ranges(self) -> Mapping[str, tuple[int, int]]:
        """The lowest and highest level of each feature that this controller supports."""
        return supported_ranges(unstable=self.unstable_feature_versions_enable)
