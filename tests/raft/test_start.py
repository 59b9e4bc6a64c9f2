"""Starting: who may start, in which epoch, and the contents of the first batch."""

from __future__ import annotations

import pytest

from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.leader_change_message import Voter as LeaderChangeVoter
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.config import DurableState, SnapshotInfo
from kraft_wire.raft.effects import (
    AppendBatch,
    BecameLeader,
    DeleteSnapshot,
    PersistElectionState,
    RoleChanged,
    SendRequest,
)
from kraft_wire.raft.errors import CannotStart, InvariantViolated
from kraft_wire.raft.events import Now, Start, Tick
from kraft_wire.raft.membership.voters import (
    Peer,
    ReplicaKey,
    Voter,
    VoterSet,
    endpoints_of,
    static_voters,
    voters_of_record,
)
from kraft_wire.raft.roles import Role
from tests.raft.lone_node import (
    DIRECTORY,
    ENDPOINTS,
    LISTENER,
    OTHER_DIRECTORY,
    OWN_VOTER,
    LoneNode,
    config,
    election,
    formatted_standalone,
    of_type,
)

LEADER_CHANGE = LeaderChangeMessage(
    leader_id=1,
    voters=[LeaderChangeVoter(voter_id=1)],
    granting_voters=[LeaderChangeVoter(voter_id=1)],
)


def log_of(epochs: list[tuple[int, int]], end: int, election: ElectionState | None) -> DurableState:
    return DurableState(election=election, log_end_offset=end, epochs=EpochCache(epochs))


# The first start.


def test_the_election_is_persisted_before_anything_else() -> None:
    node = LoneNode(start=False)
    effects = node.step(Start())
    assert effects[0] == PersistElectionState(election(1, 1), kraft_version=0, voter_ids=(1,))
    assert effects[1] == BecameLeader(1, epoch_start_offset=0)
    assert [type(effect) for effect in effects[2:]] == [AppendBatch, RoleChanged]
    assert effects[-1] == RoleChanged(Role.LEADER, 1, 1)
    assert len(of_type(effects, PersistElectionState)) == 1


def test_a_sole_voter_leads_at_once() -> None:
    node = LoneNode()
    assert node.core.role is Role.LEADER
    assert node.core.is_leader
    assert (node.core.epoch, node.core.leader_id, node.core.epoch_start_offset) == (1, 1, 0)
    assert node.core.high_watermark is None


def test_static_voters_write_a_leader_change_alone() -> None:
    node = LoneNode()
    assert node.control_messages(0) == [LEADER_CHANGE]
    assert node.core.kraft_version == 0
    assert node.core.voters.ids == (1,)


def test_voters_of_the_bootstrap_checkpoint_are_copied_into_the_log() -> None:
    node = LoneNode(config(static=VoterSet()), formatted_standalone())
    assert node.control_messages(0) == [
        LEADER_CHANGE,
        KRaftVersionRecord(kraft_version=1),
        VoterSet((OWN_VOTER,)).to_record(),
    ]
    assert node.core.kraft_version == 1
    assert node.core.log_end_offset == 3


def test_the_log_decides_on_the_voters_not_the_static_setting() -> None:
    others = static_voters(LISTENER, {2: ("other", 9093), 3: ("third", 9093)})
    node = LoneNode(config(static=others), formatted_standalone())
    assert node.core.voters.ids == (1,)


def test_the_second_start_does_not_copy_the_voters_again() -> None:
    node = LoneNode(config(static=VoterSet()), formatted_standalone())
    node.flush()
    node.restart()
    assert node.control_messages(-1) == [LEADER_CHANGE]
    assert node.core.voters.ids == (1,)
    assert node.core.kraft_version == 1


def test_a_new_endpoint_of_the_leader_goes_into_the_log() -> None:
    node = LoneNode(config(static=VoterSet()), formatted_standalone())
    node.flush()
    node.restart(config(static=VoterSet(), endpoints=(("controller", "moved.example", 19093),)))
    leader_change, version, voters = node.control_messages(-1)
    assert leader_change == LEADER_CHANGE
    assert version == KRaftVersionRecord(kraft_version=1)
    assert isinstance(voters, VotersRecord)
    (voter,) = voters_of_record(voters).voters
    assert voter.endpoints == ((LISTENER, "moved.example", 19093),)
    assert node.core.voters.endpoints_of(1) == voter.endpoints


def test_the_batch_carries_the_wall_clock() -> None:
    node = LoneNode()
    assert node.batches[0].header.base_timestamp == node.now.wall_ms
    assert node.batches[0].header.is_control


# Later starts.


def test_a_restarted_leader_raises_its_epoch() -> None:
    """KAFKA-10527."""
    node = LoneNode()
    node.flush()
    node.restart()
    assert node.core.epoch == 2
    assert node.election == election(1, 2)


def test_an_epoch_that_left_no_record_is_not_led_again() -> None:
    node = LoneNode()
    node.crash()
    node.restart()
    assert node.core.log_end_offset == 1
    assert node.core.epoch == 2


@pytest.mark.parametrize(
    ("stored", "epochs", "end", "led"),
    [
        (ElectionState(leader_id=1, leader_epoch=4), [(1, 0), (4, 9)], 12, 5),
        (ElectionState(leader_id=-1, leader_epoch=6), [(4, 9)], 12, 7),
        (ElectionState(leader_id=-1, leader_epoch=6, voted_id=1, voted_directory_id=DIRECTORY), [], 0, 7),
        (ElectionState(leader_id=-1, leader_epoch=6, voted_id=9), [(4, 9)], 12, 7),
        (ElectionState(leader_id=2, leader_epoch=6), [(4, 9)], 12, 7),
        (ElectionState(leader_id=1, leader_epoch=2), [(4, 9)], 12, 5),
        (ElectionState(), [], 0, 1),
    ],
    ids=["led", "unknown leader", "voted for itself", "voted", "followed", "log is ahead", "fresh"],
)
def test_the_epoch_is_above_all_that_is_stored(
    stored: ElectionState, epochs: list[tuple[int, int]], end: int, led: int
) -> None:
    node = LoneNode(durable=log_of(epochs, end, stored))
    assert node.core.epoch == led
    assert node.election == election(1, led)


def test_without_quorum_state_epochs_are_left_out_that_may_have_been_led() -> None:
    durable = log_of([(3, 0)], 10, election=None)
    durable.no_vote_up_to_epoch = 1003
    node = LoneNode(durable=durable)
    assert node.core.epoch == 1004
    assert node.election == election(1, 1004)


def test_without_quorum_state_an_empty_log_starts_with_epoch_1() -> None:
    assert LoneNode().core.epoch == 1


def test_a_log_that_is_only_a_snapshot_goes_on_from_its_epoch() -> None:
    durable = DurableState(
        election=election(-1, 7),
        log_start_offset=50,
        log_end_offset=50,
        snapshots=[SnapshotInfo(SnapshotId(50, 8), 1000, 0)],
    )
    node = LoneNode(durable=durable)
    assert node.core.epoch == 9
    assert node.batches[0].header.base_offset == 50


def test_snapshots_below_the_log_start_are_deleted() -> None:
    durable = DurableState(
        election=election(1, 8),
        log_start_offset=50,
        log_end_offset=60,
        epochs=EpochCache([(8, 50)]),
        snapshots=[
            SnapshotInfo(SnapshotId(0, 0), 494, 0),
            SnapshotInfo(SnapshotId(20, 3), 1000, 0),
            SnapshotInfo(SnapshotId(50, 8), 1000, 0),
        ],
    )
    node = LoneNode(durable=durable, start=False)
    effects = node.step(Start())
    assert of_type(effects, DeleteSnapshot) == [
        DeleteSnapshot(SnapshotId(0, 0)),
        DeleteSnapshot(SnapshotId(20, 3)),
    ]
    assert node.core.latest_snapshot == SnapshotId(50, 8)


# Nodes that must not start.


def test_the_only_voter_is_another_directory_of_this_node() -> None:
    other = Voter(ReplicaKey(1, OTHER_DIRECTORY), ENDPOINTS)
    with pytest.raises(CannotStart, match="is not one of the voters"):
        LoneNode(config(static=VoterSet()), formatted_standalone(other))


def test_a_new_disk_with_the_beginning_of_a_log_fetches_the_rest() -> None:
    """An earlier directory of this node was the only voter until others joined, which it doesn't know yet."""
    earlier = Voter(ReplicaKey(1, OTHER_DIRECTORY), ENDPOINTS)
    servers = (("controller.example", 9093), ("other.example", 9093))
    settings = config(static=VoterSet(), bootstrap_servers=servers)
    node = LoneNode(settings, formatted_standalone(earlier), start=False)
    (sent,) = of_type(node.step(Start()), SendRequest)
    assert (sent.peer.host, sent.peer.port) == servers[1]


def test_a_node_that_may_join_later_observes() -> None:
    other = Voter(ReplicaKey(2, OTHER_DIRECTORY), endpoints_of([(LISTENER, "other.example", 9093)]))
    node = LoneNode(config(static=VoterSet()), formatted_standalone(other), start=False)
    (sent,) = of_type(node.step(Start()), SendRequest)
    assert sent.peer == Peer(2, "other.example", 9093)
    assert isinstance(sent.request, FetchRequest)
    assert not node.core.is_voter
    assert node.core.role is Role.UNATTACHED


def test_no_voters_at_all() -> None:
    with pytest.raises(CannotStart, match="--standalone"):
        LoneNode(config(static=VoterSet()))


def test_kraft_version_1_without_voters_in_the_log() -> None:
    durable = DurableState(control_records=[(-1, KRaftVersionRecord(kraft_version=1))])
    with pytest.raises(CannotStart, match=r"controller\.quorum\.voters has no effect"):
        LoneNode(durable=durable)


def test_observer_discovers_leader_with_unknown_voters() -> None:
    """KafkaRaftClientReconfigTest. Its folder was formatted with ``--no-initial-controllers``."""
    durable = DurableState(control_records=[(-1, KRaftVersionRecord(kraft_version=1))])
    servers = (("other.example", 9093),)
    node = LoneNode(config(static=VoterSet(), bootstrap_servers=servers), durable, start=False)
    (sent,) = of_type(node.step(Start()), SendRequest)
    assert (sent.peer.host, sent.peer.port) == servers[0]
    assert isinstance(sent.request, FetchRequest)
    assert node.core.role is Role.UNATTACHED


def test_a_kraft_version_of_the_future() -> None:
    durable = DurableState(control_records=[(3, KRaftVersionRecord(kraft_version=2))])
    with pytest.raises(CannotStart, match=r"offset 3: kraft\.version 2"):
        LoneNode(durable=durable)


@pytest.mark.parametrize("snapshots", [[], [SnapshotInfo(SnapshotId(9, 1), 10, 0)]])
def test_a_log_start_without_a_covering_snapshot(snapshots: list[SnapshotInfo]) -> None:
    """KAFKA-14240."""
    durable = DurableState(
        log_start_offset=10, log_end_offset=20, epochs=EpochCache([(1, 10)]), snapshots=snapshots
    )
    with pytest.raises(CannotStart, match="starts at offset 10 and no snapshot covers"):
        LoneNode(durable=durable)


def test_a_snapshot_ahead_of_the_log() -> None:
    durable = DurableState(
        log_end_offset=20, epochs=EpochCache([(1, 0)]), snapshots=[SnapshotInfo(SnapshotId(30, 1), 10, 0)]
    )
    with pytest.raises(CannotStart, match="snapshot 30-1 is ahead of the log, which ends at offset 20"):
        LoneNode(durable=durable)


# Start is the first event and comes once.


def test_nothing_before_start() -> None:
    node = LoneNode(start=False)
    assert node.core.next_deadline_ms() is None
    with pytest.raises(InvariantViolated, match="got Tick"):
        node.core.step(Tick(), Now(0, 0))


def test_start_only_once() -> None:
    node = LoneNode()
    with pytest.raises(InvariantViolated, match="once"):
        node.step(Start())


def test_an_epoch_that_only_the_log_knows_is_persisted_first() -> None:
    two = static_voters(LISTENER, {1: ("a", 1), 2: ("b", 2)})
    durable = DurableState(
        election=ElectionState(leader_id=-1, leader_epoch=3), log_end_offset=5, epochs=EpochCache([(7, 0)])
    )
    node = LoneNode(config(static=two), durable, start=False)
    effects = node.step(Start())
    assert effects[0] == PersistElectionState(ElectionState(leader_id=-1, leader_epoch=7), 0, (1, 2))
    assert isinstance(effects[1], SendRequest)
