"""Replay the next block of producer ids."""

from __future__ import annotations

from typing import Final

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """The producer ids that have been allocated, in blocks of BLOCK_SIZE."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._next: dict[str, int] = {}

    @property
    def next_producer_id(self) -> int:
        """The first id of the next block."""
        return self._next.get("", 0)

    @property
    def has_allocated(self) -> bool:
        """Whether a block was ever allocated."""
        return bool(self._next)

    def replay(self, record: ProducerIdsRecord, offset: int) -> None:
        """Note that a block was allocated; the record names the id after it. Ids never decrease."""
        if self.has_allocated and record.next_producer_id <= self.next_producer_id:
            raise Contradiction(f"next id {record.next_producer_id} is not above {self.next_producer_id}")
        self._journal.put(self._next, "", record.next_producer_id)
