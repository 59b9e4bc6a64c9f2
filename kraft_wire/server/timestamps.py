"""Look timestamps up in the log on disk, for consumers that ask for a timestamp's offset (ListOffsets)."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.reading import timestamp_lookup
from kraft_wire.controller.reading.consumer_list_offsets import FoundOffset
from kraft_wire.storage.errors import OffsetBelowStart
from kraft_wire.storage.log.metadata_log import MetadataLog


def find_timestamps(
    log: MetadataLog, timestamps: Sequence[int], end_offset: int
) -> dict[int, FoundOffset | None]:
    """Return, for each timestamp, the first record below ``end_offset`` that is not older, as
    ``timestamp_lookup`` does.

    May run in another thread than the log's owner. If the owner trims the log meanwhile, the rest of the log
    is read again.
    """
    while True:
        try:
            return timestamp_lookup.find_timestamps(log.batches(log.start_offset, end_offset), timestamps)
        except OffsetBelowStart:
            continue
