"""A voter that gets another name for the address at which it is known, and answers at both."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.own_messages.voter_entry_response import Endpoint, VoterEntryResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import VoterEntryRefused
from kraft_wire.raft.membership.voters import KRAFT_VERSION_RANGE
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.lone_node import CLUSTER_ID, LISTENER, OTHER_DIRECTORY
from tests.raft.membership.reconfiguration import Asked
from tests.raft.membership.test_forged_updates import (
    ANSWERED_MS,
    forge,
    forge_until_believed,
    host,
    is_at,
    restart_at,
    settled,
)

NEW_NAME = "new-name"


def renamed(*, is_ours: bool = True) -> tuple[CoreQuorum, QuorumNode]:
    """Return a quorum and a voter that has got another name, and answers at its former one, too."""
    quorum = settled()
    voter = quorum.followers()[0]
    if not is_ours:
        quorum.unserved[voter.id] = {VoterEntryRequest}
    quorum.aliases[f"node-{voter.id}"] = voter.id
    restart_at(voter, NEW_NAME)
    return quorum, voter


def test_a_voter_with_another_name_gets_it_at_once() -> None:
    quorum, voter = renamed()
    quorum.run_until(
        lambda: is_at(quorum, voter, NEW_NAME), within_ms=2 * quorum.leader.config.fetch_timeout_ms
    )
    quorum.run_until(quorum.agree)
    assert not [each for each in quorum.leader.effects if isinstance(each, VoterEntryRefused)]


def test_a_name_that_leads_to_a_voter_is_not_its_own_unless_it_says_so() -> None:
    """Whoever has the name may let it lead to somebody else later."""
    quorum = settled()
    voter = quorum.followers()[0]
    quorum.aliases["evil"] = voter.id
    for _ in range(5):
        assert forge(quorum, voter, "evil") is ErrorCode.REQUEST_TIMED_OUT
        quorum.run_for(quorum.leader.config.fetch_timeout_ms)
    assert host(quorum, voter) == f"node-{voter.id}"


def test_a_voter_that_can_not_be_asked_for_its_name_keeps_the_former_one() -> None:
    """One of Java's, or of an older release."""
    quorum, voter = renamed(is_ours=False)
    assert forge(quorum, voter, NEW_NAME) is ErrorCode.REQUEST_TIMED_OUT
    assert host(quorum, voter) == f"node-{voter.id}"


def test_a_voter_that_can_not_be_asked_for_its_name_moves_when_it_is_silent() -> None:
    """Another node is at its former address now."""
    quorum, voter = renamed(is_ours=False)
    other = next(id for id in quorum.nodes if id not in (voter.id, quorum.leader.id))
    quorum.aliases[f"node-{voter.id}"] = other
    quorum.unserved[other] = {VoterEntryRequest}
    forge_until_believed(quorum, voter, NEW_NAME)


@pytest.mark.parametrize(
    ("cluster_id", "directory_id", "error"),
    [
        ("another", None, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (CLUSTER_ID, OTHER_DIRECTORY, ErrorCode.INVALID_VOTER_KEY),
        (CLUSTER_ID, Uuid.ZERO, ErrorCode.INVALID_VOTER_KEY),
        (CLUSTER_ID, None, ErrorCode.NONE),
    ],
)
def test_a_voter_names_its_entry_to_whoever_asks_for_it(
    cluster_id: str, directory_id: Uuid | None, error: ErrorCode
) -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    key = voter.config.replica_key
    request = VoterEntryRequest(
        cluster_id, key.id, key.directory_id if directory_id is None else directory_id
    )
    asked = Asked(voter, request)
    quorum.run_for(ANSWERED_MS)
    entry = VoterEntryResponse(0, None, [Endpoint(LISTENER, f"node-{voter.id}", PORT)], *KRAFT_VERSION_RANGE)
    assert asked.answers == [VoterEntryResponse(error) if error else entry]
