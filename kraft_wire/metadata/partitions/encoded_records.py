"""Find the records of a large batch without taking each out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.columnar.records import find_records
from kraft_wire.log.batch import Batch, record_values

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Positions


class EncodedRecords(Sequence[bytes]):
    """The values of records, as positions in a chunk of bytes."""

    def __init__(self, chunk: Chunk, starts: Positions, ends: Positions) -> None:
        self.chunk = chunk
        self.starts = starts
        self.ends = ends

    @classmethod
    def of(cls, values: Sequence[bytes]) -> EncodedRecords:
        """Return the values as they are, or one after the other in a new chunk."""
        if isinstance(values, EncodedRecords):
            return values
        ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
        return cls(Chunk(b"".join(values)), np.concatenate([[0], ends[:-1]]), ends)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return EncodedRecords(self.chunk, self.starts[index], self.ends[index])
        return self.chunk.data[self.starts[index] : self.ends[index]]


def values_of(batch: Batch) -> Sequence[bytes]:
    """Return the values of a batch's records. Raises CorruptBatch."""
    if not batch.header.attributes:
        try:
            chunk = Chunk(batch.data)
            found = find_records(chunk, [(0, batch.header)])
            return EncodedRecords(chunk, found.value_starts, found.value_ends)
        except Malformed:
            pass  # the careful reader finds the same records, or names the error
    return record_values(batch)
