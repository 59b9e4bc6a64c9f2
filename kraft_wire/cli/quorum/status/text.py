"""The text of ``quorum status``. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_wire.cli.quorum.status.report import (
    BROKER,
    UNKNOWN,
    ReplicaRow,
    StateRow,
    StatusReport,
    time_text,
)
from kraft_wire.raft.recovery.evidence import BEFORE_THE_LOG


def text_of(report: StatusReport) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"Cluster         {_or_unknown(report.cluster_id)}"
    yield f"Leader          {_leader_text(report)}"
    yield f"Epoch           {_or_unknown(report.leader_epoch)}"
    yield f"Committed up to {_or_unknown(report.high_watermark)}"
    yield f"kraft.version   {_or_unknown(report.kraft_version)}"
    if report.may_fail is not None:
        yield f"May fail        {_may_fail_text(report.may_fail)}"
    if report.replicas:
        yield ""
        yield from _table(report.replicas)
    if report.notes:
        yield ""
        yield from report.notes
    if report.history:
        yield ""
        yield "Voters by the offset of their record:"
        for row in report.history:
            where = f"{'snapshot up to ' if row.is_in_snapshot else ''}offset {row.offset}"
            where = "format" if row.offset == BEFORE_THE_LOG else where
            ids = ", ".join(map(str, row.voters))
            change = f"  ({row.change})" if row.change else ""
            yield f"  {where}, epoch {row.epoch}, {row.time}: {ids}{change}"
    if report.states:
        yield ""
        yield from _states(report.states)


def _states(rows: Sequence[StateRow]) -> Iterator[str]:
    yield "State of the metadata:"
    for row in rows:
        name = f"at {row.address}" if row.id is None else f"node {row.id}"
        digest = f"{row.digest} at offset {row.end_offset} ({row.record_count} records)"
        yield f"  {name}: {row.problem or digest}"


def _leader_text(report: StatusReport) -> str:
    if len(report.leaders) > 1:
        each = "; ".join(f"{row.id} at {row.address}, epoch {row.epoch}" for row in report.leaders)
        return f"{len(report.leaders)} controllers lead: {each}"
    if report.leader_id is not None:
        return str(report.leader_id)
    last = report.last_known_leader_id
    if any(row.source is not None for row in report.replicas):
        return "not asked" if last is None else f"not asked (last known: {last})"
    return "none known" if last is None else f"none (last known: {last})"


def _may_fail_text(number: int) -> str:
    if number < 0:
        return "no majority is live now"
    return f"{number} more voter{'' if number == 1 else 's'}" if number else "no more voter"


def _table(rows: Sequence[ReplicaRow]) -> Iterator[str]:
    names = (
        "Id",
        "Directory",
        "Role",
        "Epoch",
        "LogEnd",
        "Lag",
        "LagMs",
        "LastCaughtUp",
        "Registered",
        "AutoJoin",
        "Endpoints",
    )
    lines = [names, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    for line in lines:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: ReplicaRow) -> tuple[str, ...]:
    caught_up = UNKNOWN if row.last_caught_up_ms is None else time_text(row.last_caught_up_ms)
    return (
        str(row.id),
        _or_unknown(row.directory_id),
        _role_text(row),
        _or_unknown(row.epoch),
        _or_unknown(row.log_end_offset),
        _or_unknown(row.lag),
        _or_unknown(row.lag_ms),
        caught_up,
        _yes_no(row.registered),
        "-" if row.role == BROKER else _yes_no(row.auto_join),
        ",".join(row.endpoints) or UNKNOWN,
    )


def _role_text(row: ReplicaRow) -> str:
    if row.is_silent:
        return f"{row.role}, silent"
    if row.pid is not None:
        return f"{row.role}, running as process {row.pid}"
    return row.role if row.last_seen is None else f"{row.role}, {row.last_seen}"


def _or_unknown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _yes_no(value: bool | None) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"
