"""``kraft-wire pipeline restore``: a cluster's metadata of some day, as a folder for a controller."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kraft_wire.cli.errors import EXIT_OK, CommandError
from kraft_wire.cli.pipeline_extra import check_extra
from kraft_wire.server.entropy import SystemEntropy

if TYPE_CHECKING:
    from kraft_wire.spark.record_rows import RecordRow
    from kraft_wire.spark.restore import Restored

TELL_EVERY_S: Final = 5.0
_LOOK_EVERY: Final = 10_000
_TRIES: Final = 5


def pipeline_restore(
    *,
    target: str,
    cluster: str,
    into: Path,
    node_id: int,
    as_of_offset: int | None = None,
    as_of_time: str | None = None,
) -> int:
    """Write a cluster's records back as a metadata folder: what its log was at an offset or a time.

    The controller that gets the folder is alone in its quorum, whoever voted in those days. Keep it away from
    the cluster itself: it has the same cluster id, and would take the cluster's brokers for its own.

    Parameters
    ----------
    target
        Where `pipeline run` writes the tables: a folder, or an address that pyarrow knows.
    cluster
        The cluster's id.
    into
        The folder to write, log.dirs of the node's properties. It must be empty, or not there.
    node_id
        The controller's node.id.
    as_of_offset
        The last record to restore. Without this and --as-of-time, everything is restored.
    as_of_time
        The same by its time, such as 2026-11-22T01:30:00; in UTC, unless it says otherwise, as +01:00 does.
    """
    if as_of_offset is not None and as_of_time is not None:
        raise CommandError("--as-of-offset and --as-of-time exclude each other; give one")
    if node_id < 0:
        raise CommandError(f"--node-id {node_id}: a node's id is 0 or above")
    if as_of_offset is not None and as_of_offset < 0:
        raise CommandError(f"--as-of-offset {as_of_offset}: a log's first offset is 0")
    moment = None if as_of_time is None else _parse_time(as_of_time)
    check_extra()
    for _ in range(_TRIES - 1):
        try:
            restored = _restore(target, cluster, into, node_id, as_of_offset, moment)
            break
        except FileNotFoundError as error:
            print(f"{error}; beginning anew: a pipeline has folded files meanwhile", file=sys.stderr)
    else:
        restored = _restore(target, cluster, into, node_id, as_of_offset, moment)
    _report(restored, into, node_id)
    return EXIT_OK


def _restore(
    target: str, cluster: str, into: Path, node_id: int, offset: int | None, moment: datetime | None
) -> Restored:
    from kraft_wire.spark.lake_records import LakeRecords
    from kraft_wire.spark.record_rows import rows_of_batches, up_to
    from kraft_wire.spark.restore import Identity, restore_folder

    lake = LakeRecords(target, cluster)
    if moment is not None:
        offset = lake.last_offset_until(moment)
    rows = rows_of_batches(lake.batches(offset))
    if offset is not None:
        rows = up_to(rows, offset)
    return restore_folder(_watched(rows), into, Identity(cluster, node_id, SystemEntropy().uuid()))


def _watched(rows: Iterable[RecordRow]) -> Iterator[RecordRow]:
    """Says now and then how far it is."""
    told_s = time.monotonic()
    for count, row in enumerate(rows, start=1):
        if not count % _LOOK_EVERY and time.monotonic() - told_s > TELL_EVERY_S:
            print(f"offset {row.offset:,}, epoch {row.epoch}: {count:,} records", file=sys.stderr)
            told_s = time.monotonic()
        yield row


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--as-of-time {text!r} is no time, such as 2026-11-22T01:30:00") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _report(restored: Restored, into: Path, node_id: int) -> None:
    begins = f"offset {restored.start_offset}"
    if restored.snapshot_id is not None:
        begins = f"the snapshot that ends at {begins}"
    moment = datetime.fromtimestamp(restored.timestamp_ms / 1000, UTC)
    print(
        f"{into}: the log from {begins} to offset {restored.end_offset - 1}, of epoch {restored.epoch} "
        f"and {moment.isoformat(timespec='milliseconds')}."
    )
    if restored.superseded_count:
        print(f"{restored.superseded_count} records were left out that had been cut off from the log.")
    if restored.kraft_version:
        quorum = "controller.quorum.bootstrap.servers=HOST:PORT"
    else:
        quorum = f"controller.quorum.voters={node_id}@HOST:PORT"
    folder = into.absolute()
    print(f"Its node needs node.id={node_id} and log.dirs={folder}; it and its brokers need {quorum}.")
