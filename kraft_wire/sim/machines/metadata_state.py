"""Read the controller's state from a snapshot, and compare states by their hashes."""

from __future__ import annotations

from hashlib import blake2b

from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.sim.machines.snapshot_file import SnapshotFile, read_snapshot


def state_in(snapshot: SnapshotFile, kind: type[MetadataState] = MetadataState) -> MetadataState:
    """Return the state that a snapshot holds. The 0-0 checkpoint of format holds none."""
    if not snapshot.data:
        return kind()
    values = read_snapshot(snapshot.id, snapshot.data).values
    records = (decode_metadata_record(value)[0] for value in values)
    return kind.from_snapshot(records, snapshot.id.end_offset - 1)


def state_hash(metadata: MetadataState) -> bytes:
    """Return a hash that is equal for equal states."""
    digest = blake2b(digest_size=16)
    for record, version in snapshot_records(metadata):
        digest.update(encode_metadata_record(record, version))
    return digest.digest()
