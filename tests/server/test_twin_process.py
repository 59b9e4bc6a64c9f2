"""Two running controllers with one node.id."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.protocol.uuid import Uuid
from tests.support.live_quorum import three_controllers


def test_a_controller_with_the_id_of_a_voter_that_runs_does_not_take_its_place(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as controllers:
        controllers.write(range(1))
        voters = controllers.described().voters
        twin_of = next(id for id in (1, 2, 3) if id != controllers.leader())
        controllers.add_observer(4, node_id=str(twin_of), controller_quorum_auto_join_enable="true")
        refused = controllers.processes[4].wait_for("join refused")
        assert refused["error"] == "DUPLICATE_VOTER"
        assert f"node.id {twin_of}" in refused["reason"]
        assert str(Uuid(bytes([twin_of] * 16))) in refused["reason"]
        directories = {voter.id: voter.directory_id for voter in controllers.described().voters}
        assert directories == {voter.id: voter.directory_id for voter in voters}
