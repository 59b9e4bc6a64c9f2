"""Open a lake whose tables are plain Parquet, or Delta tables besides."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Literal

from kraft_wire.lake.protocol import Announce, Lake, LakeError, visible_tables

TableFormat = Literal["parquet", "delta"]
DELTA_LOG: Final = "_delta_log"


def open_lake(target: Path, table_format: TableFormat) -> Lake:
    """Open a lake. Raises LakeError, also if the tables have another format, or don't match their stream."""
    with ExitStack() as stack:
        lake = stack.enter_context(Lake(target, _announcer(target, table_format)))
        lake.check_stream()
        stack.pop_all()
    return lake


def announce_what_is_there(target: Path, table_format: TableFormat) -> None:
    """Update the format's log for tables that were written before they had the format."""
    announce = _announcer(target, table_format)
    if announce is not None:
        announce(visible_tables(target), ())


def _announcer(target: Path, table_format: TableFormat) -> Announce | None:
    if table_format == "delta":
        from kraft_wire.lake.delta import announce

        return partial(announce, target)
    if next(target.glob(f"*/{DELTA_LOG}"), None) is not None:
        raise LakeError(
            f"{target}: its tables are Delta tables, whose logs would lack new files; give --format delta"
        )
    return None
