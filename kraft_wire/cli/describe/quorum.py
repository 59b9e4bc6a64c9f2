"""The screen ``quorum``: voters and registered controllers, as the log has them.

Who is reachable and who lags isn't in the log: ``kraft-wire quorum status`` asks for that.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.cli.describe.endpoints import urls_of
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.raft.membership.voters import Voter
from kraft_wire.raft.recovery.evidence import url_of

LEADER: Final = "leader"
VOTER: Final = "voter"
OBSERVER: Final = "observer"
UNKNOWN_ROLE: Final = "unknown"
"""The log names no voters, as in a static quorum, and its last election was deleted."""


class ControllerRow(msgspec.Struct):
    """A controller. The endpoints are those of its entry among the voters; an observer's are those that it
    has registered."""

    controller: int
    role: str
    directory: str | None
    registered: bool
    endpoints: list[str]


def controller_rows(then: MetadataThen) -> list[ControllerRow]:
    """Return the voters and the other registered controllers by id."""
    voters = {voter.key.id: voter for voter in then.quorum.voters}
    ids = {*voter_ids(then), *then.state.controllers}
    return [_row(then, id, voters.get(id)) for id in sorted(ids)]


def voter_ids(then: MetadataThen) -> list[int]:
    """Return the voters: those of the log, or of the last election in a static quorum."""
    if then.quorum.voters:
        return sorted(voter.key.id for voter in then.quorum.voters)
    return sorted(then.quorum.static_voter_ids)


def _row(then: MetadataThen, id: int, voter: Voter | None) -> ControllerRow:
    registration = then.state.controllers.get(id)
    if voter is not None:
        endpoints = [url_of(point) for point in voter.endpoints]
    else:
        endpoints = [] if registration is None else urls_of(registration.listeners)
    directory = str(voter.key.directory_id) if voter is not None and voter.key.directory_id else None
    return ControllerRow(id, _role(then, id), directory, registration is not None, endpoints)


def _role(then: MetadataThen, id: int) -> str:
    voters = voter_ids(then)
    if id == then.quorum.leader_id:
        return LEADER
    if not voters:
        return UNKNOWN_ROLE
    return VOTER if id in voters else OBSERVER
