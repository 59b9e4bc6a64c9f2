"""Find the records of voters and of kraft.version in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_wire.log.batch import is_intact, split_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.effects import AppendBatch

_ATTRIBUTES_LOW_BYTE = 22
_CONTROL = 0x20


def control_records(batches: Iterable[AppendBatch]) -> Iterator[tuple[int, Message]]:
    """Return the records with their offsets. A batch that was written in part, or is damaged, has none."""
    for batch in batches:
        flags = batch.data[_ATTRIBUTES_LOW_BYTE : _ATTRIBUTES_LOW_BYTE + 1]
        if flags and flags[0] & _CONTROL and is_intact(batch.data):
            whole = split_batches(batch.data)[0][0]
            for offset, message in enumerate(decode_control_batch(whole), batch.base_offset):
                if isinstance(message, KRaftVersionRecord | VotersRecord):
                    yield offset, message


def voters_among(records: Iterable[tuple[int, Message]]) -> list[tuple[int, VotersRecord]]:
    """Return the records of voters."""
    return [(offset, message) for offset, message in records if isinstance(message, VotersRecord)]
