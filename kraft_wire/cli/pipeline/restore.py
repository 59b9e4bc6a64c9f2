"""``kraft-wire pipeline restore``: write a cluster's metadata of some time as a controller's folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.moments import check_moment
from kraft_wire.cli.pipeline import check_extra
from kraft_wire.server.entropy import SystemEntropy

if TYPE_CHECKING:
    from kraft_wire.lake.restore import Restored
    from kraft_wire.tabular.record_rows import RecordRow

REPORT_EVERY_S: Final = 5.0
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
    """Write a cluster's records back as a metadata folder: its log as it was at an offset or a time.

    The controller of this folder is alone in its quorum, whatever the voters were. Keep it away from the
    cluster itself: it has the same cluster id, and the cluster's brokers could register with it.

    For example:

        kraft-wire pipeline restore --target lake --cluster 4L6g3nShT-eMCtK--X86sw \\
            --into restored --node-id 1 --as-of-time 2026-11-22T01:30:00

    Parameters
    ----------
    target
        The target of `pipeline run`: a folder, or an address that pyarrow knows.
    cluster
        The cluster's id.
    into
        The folder to write, log.dirs of the node's properties. It must be empty or not exist.
    node_id
        The controller's node.id.
    as_of_offset
        The last record to restore. Without this and --as-of-time, everything is restored.
    as_of_time
        The time of the last record to restore, such as 2026-11-22T01:30:00; in UTC unless it names a zone, as
        in +01:00.
    """
    if node_id < 0:
        raise UsageError(f"--node-id {node_id}: a node id must be at least 0")
    moment = check_moment(as_of_offset, as_of_time)
    check_extra("spark", "pyarrow")
    for _ in range(_TRIES - 1):
        try:
            restored = _restore(target, cluster, into, node_id, as_of_offset, moment)
            break
        except FileNotFoundError as error:
            print(f"{error}; starting again: a pipeline replaced files in the meantime", file=sys.stderr)
    else:
        restored = _restore(target, cluster, into, node_id, as_of_offset, moment)
    _report(restored, into, node_id)
    return EXIT_OK


def _restore(
    target: str, cluster: str, into: Path, node_id: int, offset: int | None, moment: datetime | None
) -> Restored:
    from kraft_wire.lake.records import LakeRecords
    from kraft_wire.lake.restore import Identity, restore_folder
    from kraft_wire.tabular.record_rows import rows_of_batches, up_to

    lake = LakeRecords(target, cluster)
    if moment is not None:
        offset = lake.last_offset_until(moment)
    rows = rows_of_batches(lake.batches(offset))
    if offset is not None:
        rows = up_to(rows, offset)
    return restore_folder(_watched(rows), into, Identity(cluster, node_id, SystemEntropy().uuid()))


def _watched(rows: Iterable[RecordRow]) -> Iterator[RecordRow]:
    """Report the progress every few seconds."""
    reported_s = time.monotonic()
    for count, row in enumerate(rows, start=1):
        if not count % _LOOK_EVERY and time.monotonic() - reported_s > REPORT_EVERY_S:
            print(f"offset {row.offset:,}, epoch {row.epoch}: {count:,} records", file=sys.stderr)
            reported_s = time.monotonic()
        yield row


def _report(restored: Restored, into: Path, node_id: int) -> None:
    start = f"offset {restored.start_offset}"
    if restored.snapshot_id is not None:
        start = f"the snapshot that ends at {start}"
    moment = datetime.fromtimestamp(restored.timestamp_ms / 1000, UTC)
    print(
        f"{into}: the log from {start} to offset {restored.end_offset - 1}, epoch {restored.epoch}, "
        f"{moment.isoformat(timespec='milliseconds')}."
    )
    if restored.superseded_count:
        print(f"{restored.superseded_count} records were left out, which the log had truncated.")
    if restored.kraft_version:
        quorum = "controller.quorum.bootstrap.servers=HOST:PORT"
    else:
        quorum = f"controller.quorum.voters={node_id}@HOST:PORT"
    folder = into.absolute()
    print(f"Its node needs node.id={node_id} and log.dirs={folder}; it and its brokers need {quorum}.")
