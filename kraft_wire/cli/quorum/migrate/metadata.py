"""Read the metadata of a live quorum as a controller of ours would: the newest snapshot, then the log."""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.client.errors import QuorumError
from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import Batch, record_values, split_batches
from kraft_wire.log.errors import LogError
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ProtocolError


class Metadata(NamedTuple):
    """The state that the log builds, None if it couldn't be built. ``unreadable`` says why the log can't be
    replayed, ``unread`` why it couldn't be fetched."""

    state: MetadataState | None
    unreadable: str = ""
    unread: str = ""


def read_metadata(quorum: QuorumClient) -> Metadata:
    """Replay all that is committed."""
    try:
        return Metadata(_replayed(quorum))
    except QuorumError as error:
        return Metadata(None, unread=str(error))
    except (ReplayError, LogError, ProtocolError) as error:
        return Metadata(None, unreadable=str(error))


def _replayed(quorum: QuorumClient) -> MetadataState:
    log = LiveLog(quorum)
    ends = log.ends()
    state, start_offset = MetadataState(), ends.log_start_offset
    newest = ends.newest_snapshot
    if newest is not None and newest.end_offset > 0:
        batches = (batch for page in snapshot_batches(quorum, newest) for batch in split_batches(page)[0])
        values = (record_values(batch) for batch in batches if not batch.header.is_control)
        state = MetadataState.from_snapshot_values(values, newest.end_offset - 1)
        start_offset = newest.end_offset
    for served in log.batches(start_offset, ends.high_watermark):
        for position, header in served.batches:
            if not header.is_control:
                data = served.data[position : position + header.size_bytes]
                state.replay_batch(Batch(header, data))
    return state
