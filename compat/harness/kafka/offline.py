"""Find partitions that had no leader, in a controller's log."""

from __future__ import annotations

from compat.harness.kafka.quorum import Controller
from compat.harness.kafka.tools import segments
from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.metadata.partitions.partition import NO_LEADER
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record


def offline_partitions(controller: Controller) -> list[str]:
    """Return the partitions that had no leader after any record of the log, which must begin at offset 0."""
    state, offline = MetadataState(), []
    for segment in segments(controller.data_folder):
        for batch in split_batches(segment.read_bytes())[0]:
            for each in () if batch.header.is_control else iter_records(batch):
                record = decode_metadata_record(each.value)[0]
                state.replay(record, each.offset)
                if isinstance(record, PartitionRecord | PartitionChangeRecord):
                    partition = state.partitions.get(record.topic_id, record.partition_id)
                    if partition is None or partition.leader == NO_LEADER:
                        offline.append(f"{record.topic_id}-{record.partition_id} at offset {each.offset}")
    return offline
