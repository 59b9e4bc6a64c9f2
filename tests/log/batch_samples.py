"""Batches to test with, files that Java wrote, and a second decoder for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraft_wire.log.batch import encode_batch
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.layouts import SegmentLayout
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage, Voter

JAVA_FOLDER = Path(__file__).parent / "data" / "java-4.4.0"
JAVA_PARTITION = JAVA_FOLDER / "__cluster_metadata-0"
JAVA_SEGMENTS = sorted(JAVA_PARTITION.glob("*.log"))
JAVA_SNAPSHOTS = sorted(JAVA_PARTITION.glob("*.checkpoint"))

TIMESTAMP_MS = 1_795_262_005_000


def leader_change(base_offset: int, epoch: int) -> bytes:
    """Return the batch with which leader 1 starts an epoch."""
    voters = [Voter(voter_id=1)]
    message = LeaderChangeMessage(leader_id=1, voters=voters, granting_voters=voters)
    return encode_control_batch(base_offset, epoch, TIMESTAMP_MS + base_offset, [message])


def data_batch(base_offset: int, epoch: int, count: int = 1, value_size: int = 20) -> bytes:
    """Return a batch of ``count`` records whose values differ."""
    values = [f"value {base_offset + n} ".encode().ljust(value_size, b".") for n in range(count)]
    return encode_batch(base_offset, epoch, TIMESTAMP_MS + base_offset, values)


def read_with_construct(data: bytes) -> list[Any]:
    """Return the batches as the declared layouts read them."""
    batches = list(SegmentLayout.parse(data))
    assert sum(batch.end - batch.start for batch in batches) == len(data)
    return batches
