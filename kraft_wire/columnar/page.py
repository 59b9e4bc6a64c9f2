"""Hold a page of a log: whole batches as they lie there, and where their records are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kraft_wire.columnar.gather import Chunk
from kraft_wire.columnar.metadata import Kind, kinds
from kraft_wire.columnar.records import Records, find_records
from kraft_wire.log.batch import BatchHeader, scan_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Positions


class Page:
    """The data records of some batches, in the order of the log. Control records are in
    ``control_batches``."""

    def __init__(self, data: bytes, batches: Sequence[tuple[int, BatchHeader]]) -> None:
        self.batches = [(position, header) for position, header in batches if not header.is_control]
        self.control_batches = [(position, header) for position, header in batches if header.is_control]
        self.chunk = Chunk(data)

    @classmethod
    def of(cls, data: bytes, check_crc: bool = True) -> tuple[Page, int]:
        """Return the whole batches at the beginning of ``data``, and the number of bytes they take. Raises
        CorruptBatch."""
        batches = list(scan_batches(data, check_crc))
        end = batches[-1][0] + batches[-1][1].size_bytes if batches else 0
        return cls(data, batches), end

    @cached_property
    def kinds(self) -> list[Kind]:
        """The data records by type and version. Raises Malformed."""
        if not self.batches:
            return []
        return kinds(self.chunk, self._records.value_starts, self._records.value_ends)

    @cached_property
    def offsets(self) -> Positions:
        """The offset of each data record. Raises Malformed."""
        return (
            self._of_batch([header.base_offset for _, header in self.batches]) + self._records.offset_deltas
        )

    @cached_property
    def epochs(self) -> Positions:
        """The leader epoch of each data record. Raises Malformed."""
        return self._of_batch([header.leader_epoch for _, header in self.batches])

    @cached_property
    def timestamps_ms(self) -> Positions:
        """The timestamp of each data record, in milliseconds since the Unix epoch. Raises Malformed."""
        return self._of_batch([header.base_timestamp for _, header in self.batches])

    @cached_property
    def _records(self) -> Records:
        return find_records(self.chunk, self.batches)

    def _of_batch(self, values: list[int]) -> NDArray[np.int64]:
        return np.repeat(np.array(values, np.int64), self._records.counts)
