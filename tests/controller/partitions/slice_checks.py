"""Compare slices of columns with decisions that are made one by one."""

from __future__ import annotations

from kraft_wire.controller.decision.records import Records
from kraft_wire.controller.node.speculative_writes import PreparedBatch, SpeculativeWrites, prepare_records
from kraft_wire.log.batch import encode_framed_batch, record_values, split_batches
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from tests.controller.partitions.random_cluster import RandomCluster


def in_order(records: list[tuple[Message, int]]) -> list[bytes]:
    """Return the records' bytes by topic and partition: a slice has them in another order."""
    encoded = [(record, encode_metadata_record(record, version)) for record, version in records]
    for record, _ in encoded:
        assert isinstance(record, PartitionChangeRecord)
    return [data for _, data in sorted(encoded, key=lambda each: (each[0].topic_id, each[0].partition_id))]  # type: ignore[attr-defined]


def written(batch: PreparedBatch) -> list[bytes]:
    """Return the values of the records, read from the bytes of the batch."""
    (whole,), _ = split_batches(encode_framed_batch(0, 1, 0, batch.framed))
    return record_values(whole)


def check_applying(cluster: RandomCluster, records: Records) -> None:
    """Apply records as the node does, compare the state with that of a replay, and undo both."""
    start = cluster.state.next_offset
    writes = SpeculativeWrites(cluster.state)
    writes.begin(start)
    fingerprints = []
    batches = prepare_records(records, atomic=False)
    for batch in batches:
        writes.apply(batch, start)
        fingerprints.append(fingerprint(cluster.metadata))
        cluster.metadata.undo_to(start)
        cluster.state.next_offset = start
        for offset, value in enumerate(written(batch), start):
            cluster.metadata.replay(decode_metadata_record(value)[0], offset)
        fingerprints.append(fingerprint(cluster.metadata))
        cluster.metadata.undo_to(start)
    assert len(set(fingerprints)) == len(batches)
    cluster.metadata.journal.recording = False
