"""Read the metadata of a live quorum as a controller of ours would: the newest snapshot, then the log."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from kraft_wire.client.errors import QuorumError
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.log.errors import LogError
from kraft_wire.logs.live_store import LiveStore
from kraft_wire.logs.metadata_at import Moment, metadata_at
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ProtocolError


class Metadata(NamedTuple):
    """The state that the log builds, None if it couldn't be built. ``unreadable`` says why the log can't be
    replayed, ``unread`` why it couldn't be fetched."""

    state: MetadataState | None
    unreadable: str = ""
    unread: str = ""


def read_metadata(settings: QuorumSettings) -> Metadata:
    """Replay all that is committed."""
    try:
        with closing(LiveStore(settings)) as store:
            (bounds,) = store.bounds().values()
            return Metadata(metadata_at(store, bounds, Moment()).state)
    except (QuorumError, DataLoss) as error:
        return Metadata(None, unread=str(error))
    except (ReplayError, LogError, ProtocolError) as error:
        return Metadata(None, unreadable=str(error))
