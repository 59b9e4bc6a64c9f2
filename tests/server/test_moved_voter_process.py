"""Running controllers, one of which comes back at another address."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.log.files import PARTITION_FOLDER, ElectionState
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.quorum_state import read_election_state, write_election_state
from tests.support.live_quorum import Controllers, three_controllers
from tests.support.waiting import wait_until


def _raise_epoch(controllers: Controllers, id: int, epochs: int) -> None:
    """Let a stopped voter have taken part in elections that the others don't know of."""
    partition = controllers.folder(id) / PARTITION_FOLDER
    election = read_election_state(partition)
    assert election is not None
    later = ElectionState(leader_epoch=election.leader_epoch + epochs)
    write_election_state(partition, later, Disk(), kraft_version=1)


def _follows(controllers: Controllers, id: int) -> bool:
    described = controllers.described()
    (voter,) = (voter for voter in described.voters if voter.id == id)
    is_known = [f"{each.host}:{each.port}" for each in described.endpoints[id]] == [controllers.addresses[id]]
    return is_known and voter.log_end_offset >= described.high_watermark > 0


@pytest.mark.parametrize("epochs", [0, 1000])
def test_a_voter_that_has_moved_is_needed_and_there(tmp_path: Path, epochs: int) -> None:
    with three_controllers(tmp_path) as controllers:
        controllers.write(range(3))
        moved = next(id for id in (1, 2, 3) if id != controllers.leader())
        wait_until(lambda: _follows(controllers, moved), "the voter to follow before it moves")
        controllers.kill(moved)
        _raise_epoch(controllers, moved, epochs)
        controllers.move(moved)
        controllers.start_one(moved)
        wait_until(lambda: _follows(controllers, moved), "the moved voter to follow at its new address")
        controllers.kill(next(id for id in controllers.processes if id not in (moved, controllers.leader())))
        controllers.write(range(3, 6))


def test_a_voter_with_another_name_for_its_address_is_known_by_it(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as controllers:
        controllers.write(range(3))
        leader = controllers.leader()
        renamed = next(id for id in (1, 2, 3) if id != leader)
        controllers.kill(renamed)
        controllers.rename(renamed, "localhost")
        controllers.start_one(renamed)
        wait_until(lambda: _follows(controllers, renamed), "the voter to follow under its new name")
        assert "change of a voter's entry refused" not in controllers.processes[leader].text
