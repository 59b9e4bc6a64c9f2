"""Define the tables as a Spark declarative pipeline: ``records`` as a streaming table, the derived ones as
materialized views. Spark decides what to compute again.

A project's transformation file calls ``define``, as in examples/declarative. Needs
``kraft-wire[declarative]``.

Spark limits the depth of a view's plan. So each step between the records and a table is a view of its own:
points, intervals of the points, and the current state of the open intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

from kraft_wire.spark.tables import brokers, churn, configs, failovers, features, partitions, topics
from kraft_wire.spark.tables.history import current
from kraft_wire.spark.tables.inputs import Tables
from kraft_wire.spark.tables.partition_points import partition_points
from kraft_wire.spark.tables.typed_records import RecordsTables
from kraft_wire.tabular.table_names import RECORDS

_OF_RECORDS: Final[dict[str, Callable[[Tables], DataFrame]]] = {
    "broker_points": brokers.broker_points,
    "churn": churn.churn,
    "failovers": failovers.failovers,
    "feature_points": features.feature_points,
    "partition_points": partition_points,
    "topic_points": topics.topic_points,
}


class _Step(NamedTuple):
    make: Callable[..., DataFrame]
    of: tuple[str, ...]


_OF_OTHERS: Final = {
    "broker_history": _Step(brokers.broker_intervals, ("broker_points",)),
    "broker_sessions": _Step(brokers.session_intervals, ("broker_points",)),
    "brokers": _Step(current, ("broker_history",)),
    "config_changes": _Step(configs.config_change_rows, ("config_points",)),
    "config_history": _Step(configs.config_intervals, ("config_points",)),
    "configs": _Step(current, ("config_history",)),
    "feature_history": _Step(features.feature_intervals, ("feature_points",)),
    "features": _Step(current, ("feature_history",)),
    "isr_history": _Step(partitions.isr_intervals, ("partition_points",)),
    "leadership": _Step(partitions.leadership_intervals, ("partition_points",)),
    "partition_history": _Step(partitions.partition_intervals, ("partition_points",)),
    "partitions": _Step(current, ("partition_history",)),
    "reassignments": _Step(partitions.reassignment_intervals, ("partition_points",)),
    "topic_history": _Step(topics.topic_intervals, ("topic_points",)),
    "topics": _Step(topics.current_topics, ("topic_history", "partitions")),
    "under_replicated": _Step(partitions.under_replicated_intervals, ("partition_points",)),
}


def define(source: Mapping[str, str]) -> None:
    """Define all tables in the current pipeline. ``source`` are the options of the data source, among them a
    ``path`` or ``bootstrap.controllers``."""
    pipelines.table(name=RECORDS)(_records(source))
    for name, derived in _OF_RECORDS.items():
        pipelines.materialized_view(name=name)(_of_records(derived))
    pipelines.materialized_view(name="config_points")(_config_points)
    for name, step in _OF_OTHERS.items():
        pipelines.materialized_view(name=name)(_of_others(step))


def _records(source: Mapping[str, str]) -> Callable[[], DataFrame]:
    options = {"startingOffsets": "earliest", **source, "table": RECORDS}

    def records() -> DataFrame:
        return SparkSession.active().readStream.format("kraft").options(**options).load()

    return records


def _of_records(derived: Callable[[Tables], DataFrame]) -> Callable[[], DataFrame]:
    return lambda: derived(RecordsTables(_read(RECORDS)))


def _config_points() -> DataFrame:
    return configs.config_points(RecordsTables(_read(RECORDS)), _read("topic_points"))


def _of_others(step: _Step) -> Callable[[], DataFrame]:
    return lambda: step.make(*map(_read, step.of))


def _read(table: str) -> DataFrame:
    return SparkSession.active().read.table(table)
