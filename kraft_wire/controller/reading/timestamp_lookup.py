"""Look timestamps up in batches of the log, for ListOffsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraft_wire.controller.reading.consumer_list_offsets import MAX_TIMESTAMP, FoundOffset
from kraft_wire.log.batch import Batch, BatchHeader


def find_timestamps(batches: Iterable[Batch], timestamps: Sequence[int]) -> dict[int, FoundOffset | None]:
    """Return, for each timestamp, the first record that is not older, and for MAX_TIMESTAMP the first record
    with the largest timestamp. None where there is no such record.

    All records of a metadata batch have the batch's timestamp.
    """
    found: dict[int, FoundOffset | None] = dict.fromkeys(timestamps)
    wanted = sorted((each for each in found if each >= 0), reverse=True)
    newest: BatchHeader | None = None
    for batch in batches:
        header = batch.header
        if newest is None or header.max_timestamp > newest.max_timestamp:
            newest = header
            while wanted and wanted[-1] <= header.max_timestamp:
                found[wanted.pop()] = _first_of(header)
    if MAX_TIMESTAMP in found and newest is not None:
        found[MAX_TIMESTAMP] = _first_of(newest)
    return found


def _first_of(header: BatchHeader) -> FoundOffset:
    return FoundOffset(header.base_offset, header.max_timestamp, header.leader_epoch)
