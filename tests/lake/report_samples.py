"""Make up derived tables of a cluster, as the pipeline writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from kraft_wire.lake.report.figures import (
    CHURN,
    FAILOVERS,
    LEADERSHIP,
    SESSIONS,
    UNDER_REPLICATED,
    Reader,
    Table,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
TIMESTAMP = pa.timestamp("us", "UTC")
TYPES: dict[str, pa.DataType] = {
    "state": pa.string(),
    "topic": pa.string(),
    "broker_id": pa.int32(),
    "epoch": pa.int32(),
    "leader": pa.int32(),
    "leader_id": pa.int32(),
    "leader_epoch": pa.int32(),
    "previous_leader_id": pa.int32(),
    "unclean": pa.bool_(),
    "known_start": pa.bool_(),
    "start_timestamp": TIMESTAMP,
    "end_timestamp": TIMESTAMP,
    "last_timestamp": TIMESTAMP,
    "hour": TIMESTAMP,
}
Row = Mapping[str, Any]


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(START.timestamp() + seconds, UTC)


def session(broker: int, state: str, start_s: float, end_s: float | None) -> Row:
    end = None if end_s is None else at(end_s)
    return {"broker_id": broker, "state": state, "start_timestamp": at(start_s), "end_timestamp": end}


def failover(epoch: int, leader: int | None, start_s: float, last_s: float, waited_ms: int | None) -> Row:
    return {
        "epoch": epoch,
        "leader_id": leader,
        "previous_leader_id": None if waited_ms is None else 1,
        "start_timestamp": at(start_s),
        "last_timestamp": at(last_s),
        "leaderless_ms": waited_ms,
    }


def leader(topic: str, epoch: int, start_s: float, *, unclean: bool = False, known: bool = True) -> Row:
    return {
        "topic": topic,
        "leader_epoch": epoch,
        "unclean": unclean,
        "known_start": known,
        "start_timestamp": at(start_s),
    }


def shortage(topic: str, start_s: float, end_s: float | None, leader: int = 1) -> Row:
    end = None if end_s is None else at(end_s)
    return {"topic": topic, "leader": leader, "start_timestamp": at(start_s), "end_timestamp": end}


def hour(number: int, records: int, **counts: int) -> Row:
    return {**dict.fromkeys(CHURN.columns, 0), "hour": at(3600 * number), "records": records, **counts}


def batches(table: Table, rows: Iterable[Row], size: int = 100) -> list[pa.RecordBatch]:
    schema = pa.schema([pa.field(name, TYPES.get(name, pa.int64())) for name in table.columns])
    found: list[pa.RecordBatch] = pa.Table.from_pylist(list(rows), schema).to_batches(size)
    return found


def reader(
    sessions: Sequence[Row] = (),
    failovers: Sequence[Row] = (),
    leadership: Sequence[Row] = (),
    under_replicated: Sequence[Row] = (),
    churn: Sequence[Row] = (),
) -> Reader:
    rows = {
        SESSIONS: sessions,
        FAILOVERS: failovers,
        LEADERSHIP: leadership,
        UNDER_REPLICATED: under_replicated,
        CHURN: churn,
    }
    return lambda table: batches(table, rows[table])
