"""Read derived tables as a ``StateTables``, to compare them with a controller's state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, Row

from compat.harness.tables.state_tables import StateTables
from kraft_wire.spark.tables.brokers import brokers
from kraft_wire.spark.tables.configs import configs
from kraft_wire.spark.tables.features import features
from kraft_wire.spark.tables.inputs import Tables
from kraft_wire.spark.tables.partitions import partitions
from kraft_wire.spark.tables.topics import topics

TABLES = ("partitions", "topics", "brokers", "configs", "features")


def derived_state(tables: Tables, **then: Any) -> defaultdict[str, StateTables]:
    """Return the state of each cluster by the derived tables; an unknown cluster has empty tables."""
    rows = {
        "partitions": by_cluster(partitions(tables, **then), ("topic_id", "partition"), partition_value),
        "topics": by_cluster(
            topics(tables, **then), ("topic_id",), lambda row: (row.topic, row.partition_count)
        ),
        "brokers": by_cluster(brokers(tables, **then), ("broker_id",), broker_value),
        "configs": by_cluster(
            configs(tables, **then), ("resource_type", "resource_name", "name"), lambda row: row.value
        ),
        "features": by_cluster(features(tables, **then), ("feature",), lambda row: row.level),
    }
    states: defaultdict[str, StateTables] = defaultdict(lambda: {table: {} for table in TABLES})
    for table, of_clusters in rows.items():
        for cluster, found in of_clusters.items():
            states[cluster][table] = found
    return states


def by_cluster(
    frame: DataFrame, key: tuple[str, ...], value_of: Callable[[Row], Any]
) -> dict[str, dict[Any, Any]]:
    found: dict[str, dict[Any, Any]] = {}
    for row in frame.collect():
        name = tuple(row[column] for column in key)
        of_cluster = found.setdefault(row.cluster, {})
        assert name not in of_cluster
        of_cluster[name] = value_of(row)
    return found


def plain(value: Any) -> Any:
    """Convert lists and structs to tuples."""
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def partition_value(row: Row) -> Any:
    return plain(
        (
            row.topic,
            row.replicas,
            row.isr,
            row.leader,
            row.leader_epoch,
            row.partition_epoch,
            row.directories,
            row.leader_recovery_state,
            row.removing_replicas,
            row.adding_replicas,
            row.eligible_leader_replicas,
            row.last_known_elr,
        )
    )


def broker_value(row: Row) -> Any:
    return plain(
        (
            row.broker_epoch,
            row.incarnation_id,
            row.end_points,
            sorted(row.features),
            row.rack,
            row.fenced,
            row.in_controlled_shutdown,
            sorted(row.log_dirs),
            row.cordoned_log_dirs,
            row.registration_offset,
            row.is_migrating_zk_broker,
        )
    )
