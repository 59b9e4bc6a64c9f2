"""Make a digest of the state: nodes with the same state at the same offset have the same digest.

It is the SHA-256 of the records that a snapshot of the state has, each after its length in four bytes. Their
order is that of a snapshot, by name or by id, so that it doesn't matter how the state was built.

What a snapshot's metadata doesn't have isn't in the digest: the offsets of registrations and feature changes,
which a node that began with a snapshot doesn't know, and voters and kraft.version, which are raft's. Nothing
else differs between nodes. The records depend on the finalized metadata.version, not on the release of a
node. A release that writes them in another way has to raise the version of StateDigest.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec

from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.metadata_record import encode_metadata_record

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
            value = encode_metadata_record(record, version)
            self._hash.update(len(value).to_bytes(4) + value)
            self._record_count += 1
            if self._record_count % SLICE_RECORDS == 0:
                yield

    def result(self) -> StateDigest:
        """Return the digest of what was added."""
        return StateDigest(self._hash.digest(), self._record_count)


def digest_of(state: MetadataState) -> StateDigest:
    """Return the digest of a small state at once. Raises UnwritableMetadata."""
    digester = Digester()
    for _ in digester.slices(state):
        pass
    return digester.result()
