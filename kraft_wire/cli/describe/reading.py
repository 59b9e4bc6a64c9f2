"""Find the log that the options name, and build the metadata of a moment from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from glob import escape
from pathlib import Path
from typing import Any, Final

from kraft_wire.cli.quorum import Unfit, Unreadable
from kraft_wire.cli.quorum.confirming import NOTHING_CHANGED, interruption_says
from kraft_wire.cli.quorum.connecting import check_given, client_errors, without_leader
from kraft_wire.client.errors import QuorumUnreachable
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.client.survey import survey
from kraft_wire.log.errors import LogError
from kraft_wire.logs.folder_store import FolderStore
from kraft_wire.logs.live_store import LiveStore
from kraft_wire.logs.metadata_at import (
    UNKNOWN,
    MetadataThen,
    MissingMoment,
    Moment,
    QuorumThen,
    metadata_at,
    take_earlier_election,
)
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.logs.store import LogBounds, LogStore
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.storage.errors import SegmentChanged

_TRIES: Final = 3
_NOW: Final = Moment()


def read_quorum(settings: QuorumSettings, moment: Moment) -> MetadataThen:
    """Read the log of a running quorum. Raises CommandError: NoAnswer, NoLeader, Unfit, Unreadable."""
    with interruption_says(NOTHING_CHANGED), client_errors():
        try:
            check_given(settings)
            then = _read(lambda: LiveStore(settings), moment, finds_election=moment != _NOW)
        except QuorumUnreachable as error:
            raise without_leader(survey(settings), error) from None
        if moment == _NOW and then.quorum.leader_id == UNKNOWN:
            _ask_for_leader(settings, then.quorum)
        return then


def read_folder(folder: Path, moment: Moment) -> MetadataThen:
    """Read the log in or below a folder. Raises Unfit, Unreadable, OSError."""
    return _read(lambda: FolderStore([escape(str(folder))]), moment, finds_election=True)


def _ask_for_leader(settings: QuorumSettings, found: QuorumThen) -> None:
    """Add what a snapshot doesn't say: who leads, and who votes in a static quorum. Both stay unknown if the
    leader has just gone: everything else is known."""
    with suppress(QuorumUnreachable), QuorumClient(settings) as quorum:
        described = quorum.describe_quorum()
        found.leader_id = described.leader_id
        found.static_voter_ids = tuple(voter.id for voter in described.voters)


def _read(
    opened: Callable[[], LogStore[Any]], moment: Moment, *, finds_election: bool = False
) -> MetadataThen:
    """Read a log. A controller may delete the oldest part of it meanwhile: then it is read again."""
    try:
        for _ in range(_TRIES - 1):
            with suppress(DataLoss, SegmentChanged):
                return _read_once(opened, moment, finds_election)
        return _read_once(opened, moment, finds_election)
    except MissingMoment as error:
        raise Unfit(str(error)) from None
    except (LogError, ReplayError, ProtocolError) as error:
        raise Unreadable(str(error)) from error


def _read_once(opened: Callable[[], LogStore[Any]], moment: Moment, finds_election: bool) -> MetadataThen:
    with closing(opened()) as store:
        bounds = _only(store.bounds())
        then = metadata_at(store, bounds, moment)
        if finds_election and then.quorum.leader_id == UNKNOWN:
            take_earlier_election(then, store, bounds)
        return then


def _only(found: dict[str, LogBounds]) -> LogBounds:
    if len(found) > 1:
        raise Unfit(f"there are logs of several clusters: {', '.join(found)}; give the folder of one")
    (bounds,) = found.values()
    return bounds
