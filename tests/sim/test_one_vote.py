"""The checker of votes tells directories of one id apart."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.sim.checkers.elections import OneVote
from kraft_wire.sim.checkers.violations import Violation
from tests.sim.scenario import Scenario

ONE, OTHER = (Uuid(bytes([id] * 16)) for id in (50, 51))
EPOCH = 5


def vote_for(directory_id: Uuid) -> ElectionState:
    return ElectionState(leader_epoch=EPOCH, voted_id=2, voted_directory_id=directory_id)


def test_another_directory_is_another_candidate() -> None:
    scenario = Scenario(1)
    checker = OneVote(scenario.cluster.nodes)
    checker.persisted(scenario.nodes[0], vote_for(ONE))
    checker.persisted(scenario.nodes[0], vote_for(Uuid.ZERO))
    checker.persisted(scenario.nodes[0], vote_for(ONE))
    with pytest.raises(Violation, match="OneVote"):
        checker.persisted(scenario.nodes[0], vote_for(OTHER))


def test_another_directory_is_another_voter() -> None:
    scenario = Scenario(1)
    checker = OneVote(scenario.cluster.nodes)
    voter = scenario.nodes[0]
    checker.persisted(voter, vote_for(ONE))
    voter.config = msgspec.structs.replace(voter.config, directory_id=OTHER)
    checker.persisted(voter, vote_for(OTHER))
