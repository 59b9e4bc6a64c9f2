"""Hold PartitionChangeRecords of many partitions as columns: no object for each record."""

from __future__ import annotations

import msgspec

from kraft_wire.columnar.change_records import ChangeColumns, ElrFields, encode_changes
from kraft_wire.log.record import record_spans
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.partitions.places import Places
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.metadata_record import decode_metadata_record


class PartitionChanges(msgspec.Struct, frozen=True):
    """Changes of existing partitions that have no rare lists, each at most once.

    ``version`` is that of the records. No ISR and no ELR has more members than a record's template allows
    (``columnar.change_records.MOST_MEMBERS``).
    """

    places: Places
    changes: Changes
    version: int

    def __len__(self) -> int:
        return len(self.places.indexes)

    def encode(self, first_delta: int) -> bytes:
        """Return the records as they stand in a batch, from this offset delta on."""
        changes = self.changes
        elr = changes.elr
        columns = ChangeColumns(
            self.places.topic_ids(),
            self.places.indexes,
            changes.leader,
            changes.recovery_state,
            changes.isr,
            changes.isr_given,
            None if elr is None else ElrFields(elr.members, elr.given, elr.last_known),
        )
        return encode_changes(columns, self.version, first_delta)

    def apply(self, partitions: Partitions) -> None:
        """Change the partitions."""
        partitions.change_all(self.places, self.changes)

    def records(self) -> list[tuple[Message, int]]:
        """Return the records one by one, with their versions."""
        data = self.encode(0)
        spans = record_spans(data, 0, 0, len(self))
        return [decode_metadata_record(data[start:end]) for _, _, start, end in spans]
