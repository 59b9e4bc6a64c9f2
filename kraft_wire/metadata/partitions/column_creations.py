"""Hold the PartitionRecords of one topic's new partitions as columns: no object for each record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.partition_records import encode_new_partitions, new_partition_values
from kraft_wire.log.record import encode_records, record_spans
from kraft_wire.metadata.partitions.columns import Block
from kraft_wire.metadata.partitions.partition import RECOVERED, Partition
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.partitions.rare import fits
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_ENCODED_AS_MATRIX: Final = 24
"""From so many new partitions on, they are encoded faster in columns than one by one."""


class NewPartitions(msgspec.Struct, frozen=True):
    """New partitions of one topic, with successive indexes after its last one.

    ``replicas`` has the brokers of one partition in each row. All are in the ISR, and the first leads.
    ``directories`` are the directories of the replicas on ``broker_ids``, which are in ascending order.
    ``version`` is that of the records.
    """

    topic_id: Uuid
    first_index: int
    replicas: NDArray[np.int32]
    broker_ids: NDArray[np.int32]
    directories: tuple[Uuid, ...]
    version: int

    def __len__(self) -> int:
        return len(self.replicas)

    def encode(self, first_delta: int) -> bytes:
        """Return the records as they stand in a batch, from this offset delta on."""
        if len(self) < FEWEST_ENCODED_AS_MATRIX:
            return b"".join(encode_records(self._values(), first_delta=first_delta))
        ids = np.frombuffer(b"".join(self.directories), np.uint8).reshape(-1, 16)
        directories = ids[self._places()].reshape(len(self), -1)
        return encode_new_partitions(
            self.topic_id, self.first_index, self.replicas, directories, self.version, first_delta
        )

    def _values(self) -> list[bytes]:
        directories = dict(zip(self.broker_ids.tolist(), self.directories, strict=True))
        assignments = self.replicas.tolist()
        return new_partition_values(self.topic_id, self.first_index, assignments, directories, self.version)

    def records(self) -> list[tuple[Message, int]]:
        """Return the records one by one, with their versions."""
        data = self.encode(0)
        spans = record_spans(data, 0, 0, len(self))
        return [decode_metadata_record(data[start:end]) for _, _, start, end in spans]

    def apply(self, partitions: Partitions) -> None:
        """Create the partitions. Raises Contradiction if the topic doesn't exist or has other partitions."""
        if fits(self.replicas.shape[1]):
            partitions.append_to(self.topic_id, self.first_index, self._block(partitions))
        else:
            partitions.append_each(self.topic_id, self.first_index, self._partitions())

    def _block(self, partitions: Partitions) -> Block:
        count = len(self)
        numbers = np.array(partitions.columns.directory_numbers.of(self.directories), np.int32)
        return Block(
            self.replicas[:, 0],
            np.zeros(count, np.int32),
            np.zeros(count, np.int32),
            np.full(count, RECOVERED, np.int8),
            self.replicas,
            self.replicas,
            numbers[self._places()],
        )

    def _partitions(self) -> Iterator[Partition]:
        directories = dict(zip(self.broker_ids.tolist(), self.directories, strict=True))
        for replicas in map(tuple, self.replicas.tolist()):
            own = tuple([directories[broker_id] for broker_id in replicas])
            yield Partition(replicas, replicas, replicas[0], 0, 0, own)

    def _places(self) -> NDArray[np.intp]:
        return np.searchsorted(self.broker_ids, self.replicas)
