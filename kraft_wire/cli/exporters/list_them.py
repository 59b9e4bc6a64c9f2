"""``kraft-wire exporters list``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.cli.exporters.known import exporters_of, observer_at
from kraft_wire.cli.output import print_text
from kraft_wire.cli.quorum.changes.leader_client import leader_of
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, settings_of
from kraft_wire.protocol.own_messages.exporter_positions_response import Position

PAUSED = "paused"
FAILING = "failing"
EXPORTING = "exporting"
HEAD = ("EXPORTER", "POSITION", "LAG", "STATE")


class Row(msgspec.Struct):
    """An exporter. ``position`` is the offset after the last record that its sink has, and ``lag`` the number
    of committed offsets from there on; None before the first record. ``reset`` is the last reset's text."""

    name: str
    position: int | None
    lag: int | None
    state: str
    failures_in_a_row: int
    reset: str


class Report(msgspec.Struct):
    """The output of --json."""

    node: str
    high_watermark: int
    exporters: list[Row]


def exporters_list(
    *,
    bootstrap_controller: str,
    observer: str | None = None,
    json: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Show how far each exporter of the active controller, or of an observer, has come, and whether it is
    paused or fails.

    Exit statuses: 0 shown; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5 the file of
    --command-config can't be read; 6 the node has no exporters, or the controllers are of several clusters;
    130 interrupted; 1 anything else.

    For example:

        kraft-wire exporters list --bootstrap-controller c1:9093,c2:9093,c3:9093

    Parameters
    ----------
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    observer
        HOST:PORT of a `kraft-wire observe` whose exporters are meant, not the active controller's.
    json
        Print one JSON object instead of text.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for it.
    """
    with leader_of(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        at = observer_at(observer)
        exporters = exporters_of(leader, at)
        report = report_of(str(at or leader.answered_by), leader.describe().high_watermark, exporters)
    print_text([msgspec.json.encode(report).decode()] if json else text_of(report))
    return EXIT_OK


def report_of(node: str, high_watermark: int, exporters: Sequence[Position]) -> Report:
    """Return what is shown."""
    return Report(node, high_watermark, [_row(each, high_watermark) for each in exporters])


def _row(exporter: Position, high_watermark: int) -> Row:
    state = PAUSED if exporter.paused else FAILING if exporter.failures_in_a_row else EXPORTING
    position = exporter.next_offset if exporter.next_offset >= 0 else None
    lag = None if position is None else max(0, high_watermark - position)
    return Row(exporter.exporter, position, lag, state, exporter.failures_in_a_row, exporter.reset)


def text_of(report: Report) -> Iterator[str]:
    """Yield the lines of the output."""
    yield f"Exporters of {report.node}; records up to {report.high_watermark} are committed:"
    rows = [HEAD, *(_cells(row) for row in report.exporters)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    state = f"{row.state} ({row.failures_in_a_row} attempts)" if row.state == FAILING else row.state
    numbers = ("-" if number is None else str(number) for number in (row.position, row.lag))
    return (row.name, *numbers, state)
