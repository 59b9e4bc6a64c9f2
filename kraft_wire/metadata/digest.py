"""Make a digest of the state: nodes with the same state at the same offset have the same digest.

It is the SHA-256 of the records that a snapshot of the state has, each after its length in four bytes. Their
order is that of a snapshot, by name or by id, so that it doesn't matter how the state was built. What a
record lists without an order of meaning is sorted: Java's snapshots have it in another order than the log.

What a snapshot's metadata doesn't have isn't in the digest: the offsets of registrations and feature changes,
which a node that began with a snapshot doesn't know, and voters and kraft.version, which are raft's. Nothing
else differs between nodes. The records depend on the finalized metadata.version, not on the release of a
node. A release that writes or sorts them in another way has to raise ``FORMULA``: only digests of the same
formula can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec

from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record

FORMULA: Final = 1
SLICE_RECORDS: Final = 1_000


class StateDigest(msgspec.Struct, frozen=True):
    """The digest, of 32 bytes, and the number of records that it is made of."""

    digest: bytes
    record_count: int


class Digester:
    """The digest of one state, made in slices."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._record_count = 0

    def slices(self, state: MetadataState) -> Iterator[None]:
        """Add the records of the state, which must not change meanwhile. Yields after each slice of them.

        Raises UnwritableMetadata as ``snapshot_records`` does.
        """
        for record, version in snapshot_records(state):
            value = encode_metadata_record(_sorted(record), version)
            self._hash.update(len(value).to_bytes(4) + value)
            self._record_count += 1
            if self._record_count % SLICE_RECORDS == 0:
                yield

    def result(self) -> StateDigest:
        """Return the digest of what was added."""
        return StateDigest(self._hash.digest(), self._record_count)


def _sorted(record: Message) -> Message:
    match record:
        case RegisterBrokerRecord(cordoned_log_dirs=cordoned):
            return msgspec.structs.replace(
                record,
                end_points=sorted(record.end_points, key=lambda endpoint: endpoint.name),
                log_dirs=tuple(sorted(record.log_dirs)),
                cordoned_log_dirs=None if cordoned is None else tuple(sorted(cordoned)),
            )
        case RegisterControllerRecord():
            end_points = sorted(record.end_points, key=lambda endpoint: endpoint.name)
            return msgspec.structs.replace(record, end_points=end_points)
        case DelegationTokenRecord():
            return msgspec.structs.replace(record, renewers=tuple(sorted(record.renewers)))
    return record


def digest_of(state: MetadataState) -> StateDigest:
    """Return the digest of a small state at once. Raises UnwritableMetadata."""
    digester = Digester()
    for _ in digester.slices(state):
        pass
    return digester.result()
