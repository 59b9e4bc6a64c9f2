"""Derive tables of brokers: their registrations, and when they were fenced."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraft_wire.spark.tables.effects import effective, facts, read
from kraft_wire.spark.tables.history import (
    SPAN,
    as_events,
    bounded,
    current,
    intervals,
    last_known,
    so_far,
    union,
)
from kraft_wire.spark.tables.inputs import Tables, Until
from kraft_wire.spark.tables.open_rows import OpenRows, nothing_before

KEY: Final = ("broker_id", "cluster")
REGISTERED: Final = (
    "broker_epoch",
    "incarnation_id",
    "rack",
    "end_points",
    "features",
    "is_migrating_zk_broker",
)
"""Columns that only a registration sets."""
CHANGING: Final = ("fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
FIELDS: Final = (*REGISTERED, *CHANGING, "registration_offset")


def broker_history(tables: Tables) -> DataFrame:
    """Return every state of every broker's registration.

    Key: cluster, broker_id, start_offset. Columns: those of RegisterBrokerRecord; registration_offset (of
    that record, or of the snapshot that it was read from), and those of SPAN.
    """
    return broker_intervals(broker_points(tables))


def brokers(tables: Tables, as_of_offset: int | None = None, as_of_time: datetime | None = None) -> DataFrame:
    """Return the registered brokers, at the end of the logs or at an offset or time.

    Key: cluster, broker_id. Columns: those of ``broker_history``; start_... are when the registration got
    this state.
    """
    return current(broker_history(Until(tables, as_of_offset, as_of_time)))


def broker_sessions(tables: Tables) -> DataFrame:
    """Return the state of each broker over time.

    Key: cluster, broker_id, start_offset. Columns: broker_epoch and incarnation_id (of its registration:
    another registration begins another interval), rack, state (active, fenced, or controlled_shutdown), and
    those of SPAN. A broker that isn't registered has no row.
    """
    return session_intervals(broker_points(tables))


def broker_points(tables: Tables, before: OpenRows = nothing_before) -> DataFrame:
    """Return the points of registrations."""
    rows = effective(_events(tables, before), facts(tables))
    whole = F.col("exists")
    window = so_far(KEY)
    said = {name: last_known(F.when(whole, F.struct(name)), window)[name] for name in REGISTERED}
    changed = {
        name: last_known(F.when(whole | F.col(name).isNotNull(), F.struct(name)), window)[name]
        for name in CHANGING
    }
    registered = last_known(F.when(whole, F.struct("registration_offset")), window)["registration_offset"]
    rows = rows.withColumns(
        {
            **said,
            **changed,
            "registration_offset": registered,
            "exists": F.coalesce(last_known("exists", window), F.lit(False)),
        }
    )
    return bounded(rows, KEY, "next_reset")


def _events(tables: Tables, before: OpenRows) -> DataFrame:
    """Return the changes of registrations. ``exists`` is true where a row sets all columns, false where the
    broker is unregistered, null where it changes."""
    registered = read(tables, "register_broker", "broker_id", *REGISTERED, *CHANGING)
    changed = read(tables, "broker_registration_change", "broker_id", *CHANGING)
    changed = changed.withColumns(
        {
            "fenced": F.when(F.col("fenced") != 0, F.col("fenced") == 1),
            "in_controlled_shutdown": F.when(F.col("in_controlled_shutdown") == 1, True),
            "log_dirs": F.when(F.size("log_dirs") > 0, F.col("log_dirs")),
        }
    )
    known = before("broker_history")
    return union(
        [
            registered.withColumns({"exists": F.lit(True), "registration_offset": F.col("offset")}),
            changed,
            _fencing(tables, "fence_broker", F.lit(True)),
            _fencing(tables, "unfence_broker", F.lit(False)),
            read(tables, "unregister_broker", "broker_id").withColumn("exists", F.lit(False)),
            None if known is None else as_events(known),
        ]
    )


def _fencing(tables: Tables, table: str, fenced: Column) -> DataFrame:
    return read(tables, table, "id").withColumnRenamed("id", "broker_id").withColumn("fenced", fenced)


def broker_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``broker_history``."""
    return intervals(points, KEY, FIELDS, before=before("broker_history"))


def session_intervals(points: DataFrame, before: OpenRows = nothing_before) -> DataFrame:
    """See ``broker_sessions``."""
    state = (
        F.when(F.col("fenced"), "fenced")
        .when(F.col("in_controlled_shutdown"), "controlled_shutdown")
        .otherwise("active")
    )
    values = ["broker_epoch", "incarnation_id", "state"]
    points = points.withColumn("state", state)
    found = intervals(points, KEY, values, ["rack"], before("broker_sessions"))
    return found.select("cluster", "broker_id", "broker_epoch", "incarnation_id", "rack", "state", *SPAN)
