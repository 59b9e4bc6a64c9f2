"""Which survivor goes on, what is lost, who votes then: KIP-853's voters, and KIP-1347's addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from kraft_wire.log.batch import split_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.recovery import EPOCHS_WITHOUT_TRACE
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.door.epoch_limits import LAST_EPOCH
from kraft_wire.raft.membership.voters import Endpoint, voters_of_record
from kraft_wire.raft.recovery.evidence import (
    EpochEvidence,
    FolderEvidence,
    KnownVoter,
    PastRecovery,
    SnapshotEvidence,
    VoterChange,
)
from kraft_wire.raft.recovery.moving import NewAddress
from kraft_wire.raft.recovery.plan import Loss, Plan, RecoveryError, Target
from kraft_wire.raft.recovery.planning import make_plan

NOW_MS = 1_800_000_000_000
CLUSTER = "a cluster"


def directory(id: int) -> str:
    return str(Uuid(bytes([id] * 16)))


def voter(id: int, host: str = "") -> KnownVoter:
    return KnownVoter(id, directory(id), (Endpoint("CONTROLLER", host or f"c{id}", 9093),))


def folder(
    id: int, epoch: int, end_offset: int, *, committed: int = 0, voters: Sequence[int] = (1, 2, 3)
) -> FolderEvidence:
    """The folder of a node whose log has only one epoch; its bytes depend on that and on the end."""
    change = VoterChange(2, epoch, NOW_MS, tuple(voter(number) for number in voters))
    return FolderEvidence(
        folder=f"/{id}",
        cluster_id=CLUSTER,
        node_id=id,
        directory_id=directory(id),
        quorum_epoch=epoch,
        log_end_offset=end_offset,
        epochs=(EpochEvidence(epoch, 0, end_offset, f"{epoch} to {end_offset}"),),
        committed_offset=committed,
        kraft_version=1,
        history=(change,),
    )


def damaged(found: FolderEvidence) -> FolderEvidence:
    """The folder with damage that a repair has to cut out first."""
    return msgspec.structs.replace(found, problems=("x.log is damaged",))


def broker(found: FolderEvidence, **changes: Any) -> FolderEvidence:
    """The folder of a node that registered as a broker; only with ``controller_ids`` as a controller, too."""
    return msgspec.structs.replace(found, broker_ids=(found.node_id,), has_broker_files=True, **changes)


def cut(found: FolderEvidence, lost_below: int) -> FolderEvidence:
    """The folder after a repair, which had records below this offset."""
    return msgspec.structs.replace(found, lost_below=lost_below)


def plan(
    *found: FolderEvidence,
    keep: Sequence[int] = (),
    addresses: Sequence[NewAddress] = (),
    without: Sequence[int] = (),
    static_voters: Mapping[int, Endpoint] = MappingProxyType({}),
) -> Plan:
    return make_plan(
        found,
        ["hash"],
        NOW_MS,
        keep=keep,
        addresses=addresses,
        without=without,
        static_voters=static_voters,
    )


FIVE = (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("ends", "best"),
    [
        ({1: (3, 50), 2: (2, 90)}, 1),
        ({1: (3, 50), 2: (3, 51)}, 2),
        ({1: (3, 50), 2: (3, 50)}, 1),
    ],
    ids=["a later epoch wins", "then the longer log", "then the lower id"],
)
def test_the_newest_log_goes_on(ends: dict[int, tuple[int, int]], best: int) -> None:
    made = plan(*(folder(id, epoch, end, voters=FIVE) for id, (epoch, end) in ends.items()))
    assert (made.kind, made.leader_id) == ("lost majority", best)
    epoch, end = ends[best]
    assert made.targets == (Target(best, directory(best), f"{epoch} to {end}"),)
    assert made.voters == (voter(best),)
    assert made.survivors[0].node_id == best


def test_the_epoch_is_above_all_that_any_folder_knows() -> None:
    elsewhere = msgspec.structs.replace(folder(2, 2, 10, voters=FIVE), quorum_epoch=7, no_vote_up_to=20)
    assert plan(folder(1, 3, 10, voters=FIVE), elsewhere).epoch >= 20 + EPOCHS_WITHOUT_TRACE


def test_plans_for_different_survivors_have_different_epochs() -> None:
    """Perhaps both are applied by mistake."""
    epochs = {plan(folder(id, 3, 10, voters=FIVE)).epoch for id in FIVE}
    assert len(epochs) == len(FIVE)


def test_the_batch_begins_an_epoch_as_a_new_leader_does() -> None:
    made = plan(folder(1, 3, 50))
    [batch], _ = split_batches(made.batch())
    assert (batch.header.base_offset, batch.header.leader_epoch) == (50, made.epoch)
    leader, level, voters = decode_control_batch(batch)
    assert isinstance(leader, LeaderChangeMessage)
    assert leader.leader_id == 1
    assert level == KRaftVersionRecord(kraft_version=1)
    assert isinstance(voters, VotersRecord)
    assert voters_of_record(voters) == made.voter_set
    assert made.end_offset == batch.header.next_offset == 53


@pytest.mark.parametrize(
    ("committed", "loss"),
    [
        (50, Loss(None, None, None, 50, 50)),
        (40, Loss(None, None, (40, 50), 50, 40)),
        (60, Loss((50, 60), None, None, 50, 50)),
    ],
    ids=["all is known to be committed", "the end isn't", "more was committed"],
)
def test_what_may_be_lost(committed: int, loss: Loss) -> None:
    assert plan(folder(1, 3, 50, committed=committed)).loss == loss


def test_a_broker_s_folder_tells_what_was_committed_and_never_goes_on() -> None:
    made = plan(folder(1, 3, 50), broker(folder(9, 4, 80, committed=75)))
    assert made.leader_id == 1
    assert (made.loss.lost, made.loss.seen) == ((50, 75), (75, 80))
    assert [survivor.problem for survivor in made.survivors] == ["", "it is a broker's"]
    assert made.epoch >= 4 + EPOCHS_WITHOUT_TRACE


@pytest.mark.parametrize("was_voter", [False, True], ids=["never a voter", "a voter by mistake, once"])
def test_a_broker_s_folder_is_neither_kept_nor_moved_away(was_voter: bool) -> None:
    """The leader adds any node as a voter that asks for it."""
    voters = (1, 2, 3, 9) if was_voter else (1, 2, 3)
    newest = broker(earlier(folder(9, 4, 80, voters=(1, 2, 3)), voters))
    made = plan(folder(1, 3, 50), newest)
    assert (made.leader_id, [each.role for each in made.survivors]) == (1, ["controller", "broker"])
    assert [step for step in made.steps if " 9 " in step] == [
        "restart broker 9 when the controllers run; its folder stays as it is"
    ]
    for addresses in ((), [NewAddress(9, "c9", 9093, "CONTROLLER")]):
        with pytest.raises(RecoveryError, match="no folder can be used: /9: it is a broker's"):
            plan(newest, addresses=addresses)
    with pytest.raises(RecoveryError, match="--keep 9: no usable folder"):
        plan(folder(1, 3, 50), newest, keep=[9])


def test_a_broker_may_run_and_a_combined_node_may_not() -> None:
    """A broker's log is only read. Its end may be half written, and looks damaged then."""
    running = broker(earlier(folder(9, 3, 60, voters=(1, 2, 3)), (1, 2, 3, 9)), controller_pid=77)
    assert plan(folder(1, 3, 50), damaged(running)).loss.seen == (50, 60)
    with pytest.raises(RecoveryError, match="process 77 worked on /9"):
        plan(folder(1, 3, 50), msgspec.structs.replace(running, controller_ids=(9,)))


def test_a_broker_among_the_voters_has_no_vote() -> None:
    """It completes no majority, and its step is that of a broker though its folder wasn't collected."""
    survivor = folder(1, 3, 50, voters=(1, 2, 9))
    made = plan(survivor, broker(folder(9, 3, 50, voters=(1, 2, 9))))
    assert (made.kind, made.voters) == ("lost majority", (voter(1),))
    alone = plan(msgspec.structs.replace(survivor, broker_ids=(9,)))
    assert "restart broker 9 when the controllers run; its folder stays as it is" in alone.steps
    assert not any("node 9" in step for step in alone.steps)


def test_a_combined_node_goes_on_and_keeps_the_partitions_of_topics() -> None:
    """It registers as both. A folder with a broker's files alone doesn't make a voter a broker."""
    combined = broker(folder(2, 4, 80, voters=FIVE), controller_ids=(2,))
    by_files = msgspec.structs.replace(folder(2, 4, 80, voters=FIVE), has_broker_files=True)
    for found in (combined, by_files):
        made = plan(folder(1, 3, 50, voters=FIVE), found)
        assert (made.leader_id, made.survivors[0].role) == (2, "broker,controller")
    [step] = [
        step for step in plan(folder(1, 3, 50, voters=FIVE), combined, keep=[1]).steps if "node 2" in step
    ]
    assert "move __cluster_metadata-0 away and nothing else" in step


def test_a_node_that_no_log_names_never_goes_on() -> None:
    made = plan(folder(1, 3, 50), folder(9, 4, 80))
    assert [each.problem for each in made.survivors] == ["", "no log names its node as a controller"]


LATER = (EpochEvidence(3, 0, 45, "common"), EpochEvidence(4, 45, 80, "replaced"))


@pytest.mark.parametrize(
    "broker",
    [{"epochs": LATER}, {"epochs": LATER[1:], "snapshots": (SnapshotEvidence(45, 3, True),)}],
    ids=["a log", "a snapshot, and the log after it"],
)
def test_what_a_later_leader_may_have_replaced_is_not_known_to_be_kept(broker: dict[str, object]) -> None:
    """The kept log ends with five records of epoch 3 that the leader of epoch 4 never had. Only the broker's
    folder shows that; without it they might be any that aren't known to be committed."""
    survivor = folder(1, 3, 50, committed=30)
    assert (plan(survivor).loss.kept, plan(survivor).loss.replaced_from) == ((30, 50), 30)
    later = msgspec.structs.replace(folder(9, 4, 80, committed=75), **broker)
    assert plan(survivor, later).loss == Loss((50, 75), (75, 80), (45, 50), 50, 45)


def test_a_longer_log_of_an_older_epoch_is_no_loss() -> None:
    made = plan(folder(1, 3, 50, voters=FIVE), folder(2, 2, 90, voters=FIVE))
    assert (made.leader_id, made.loss.lost, made.loss.seen) == (1, None, None)


def test_a_damaged_folder_never_goes_on() -> None:
    found = damaged(folder(2, 9, 90, voters=FIVE))
    made = plan(folder(1, 3, 50, voters=FIVE), found, without=[2])
    assert (made.leader_id, made.without, made.loss.seen) == (1, (2,), (50, 90))
    with pytest.raises(RecoveryError, match=r"no folder can be used: /2: x\.log is damaged; run"):
        plan(found)


@pytest.mark.parametrize("end_offset", [90, 10], ids=["a longer log", "a shorter one, before the damage"])
def test_a_damaged_folder_has_to_be_repaired_first(end_offset: int) -> None:
    """It may complete the majority, and hold the newest log."""
    found = [folder(1, 3, 50), damaged(folder(2, 3, end_offset))]
    refusal = r"node 2 .* as it is: x\.log is damaged; run `kraft-wire fsck /2 --repair` and .* --without 2$"
    with pytest.raises(RecoveryError, match=refusal):
        plan(*found)
    with pytest.raises(RecoveryError, match=refusal):
        plan(*found, keep=[1])
    assert plan(*found, without=[2]).targets == plan(found[0]).targets


def test_a_log_that_only_a_newer_release_can_read_is_never_repaired() -> None:
    """A repair would cut out what nobody damaged. The plan neither keeps the folder nor goes on without a
    word."""
    newer = msgspec.structs.replace(
        folder(2, 3, 40, voters=FIVE), problems=("the log can't be read at offset 9: x",), is_unreadable=True
    )
    found = [folder(1, 3, 50, voters=FIVE), newer]
    with pytest.raises(RecoveryError, match="at offset 9: x; use a newer kraft-wire") as refusal:
        plan(*found)
    assert "fsck" not in str(refusal.value)
    assert plan(*found, without=[2]).leader_id == 1


def test_a_log_with_registrations_of_a_newer_version_can_go_on() -> None:
    """Only the endpoints in them aren't known."""
    newer = msgspec.structs.replace(
        static(folder(1, 3, 50)), newer="offset 9 holds x", registrations={1: ()}, controller_ids=(1,)
    )
    with pytest.raises(RecoveryError, match="no address of voter 1 is known"):
        plan(newer)
    made = plan(msgspec.structs.replace(folder(1, 3, 50), newer="offset 9 holds x", registrations={1: ()}))
    assert (made.voters, made.survivors[0].newer) == ((voter(1),), "offset 9 holds x")


def test_only_a_damaged_folder_can_be_left_out_of_account() -> None:
    for found in (folder(2, 3, 40, voters=FIVE), damaged(folder(9, 3, 40, voters=FIVE))):
        node = found.node_id
        text = (
            f"--without {node}: this is for a controller's folder that can't be used, and none of this node"
        )
        with pytest.raises(RecoveryError, match=text):
            plan(folder(1, 3, 50, voters=FIVE), found, without=[node])


def test_a_majority_without_the_damaged_folder_needs_no_recovery() -> None:
    found = [folder(1, 3, 50), folder(2, 3, 40), damaged(folder(3, 3, 90))]
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left: nodes 1, 2"):
        plan(*found)
    moved = NewAddress(1, "new1", 19093)
    assert plan(*found, addresses=[moved]).kind == "endpoints"
    with pytest.raises(RecoveryError, match="--keep and --without are for a lost majority"):
        plan(*found, addresses=[moved], without=[3])


def test_a_damaged_folder_of_a_broker_is_none_to_repair() -> None:
    assert plan(folder(1, 3, 50), damaged(folder(9, 3, 40))).leader_id == 1


def test_an_empty_voter_votes() -> None:
    """A static quorum knows its voters by their ids alone, on any disk."""
    full = static(folder(1, 3, 50))
    empty = static(msgspec.structs.replace(folder(2, 0, 0), epochs=()))
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left: nodes 1, 2"):
        plan(full, empty)


def test_a_majority_needs_no_recovery() -> None:
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left: nodes 1, 2"):
        plan(folder(1, 3, 50), folder(2, 3, 40))


def test_voters_that_only_the_newest_log_knows_can_t_elect_it() -> None:
    """Node 5 was leader, removed node 4 and then itself, and was cut off. Nodes 3 and 4 are lost. By its
    log, nodes 1 and 2 are a majority; by theirs they aren't, and it has a newer log."""
    changed = folder(5, 3, 50, voters=(1, 2, 3))
    made = plan(folder(1, 3, 40, voters=FIVE), folder(2, 3, 40, voters=FIVE), earlier(changed, FIVE))
    assert (made.kind, made.leader_id, made.voters) == ("lost majority", 5, (voter(5),))


def test_a_majority_by_an_older_log_needs_no_recovery() -> None:
    """Node 4 has the newest log, with two voters of which only it is left. The others elect a leader without
    it, as that log isn't committed."""
    apart = earlier(folder(4, 3, 50, voters=(4, 5)), (1, 2, 3, 4))
    others = [folder(id, 3, 40, voters=(1, 2, 3, 4)) for id in (1, 2, 3)]
    with pytest.raises(RecoveryError, match="a majority of the 4 voters is left: nodes 1, 2, 3"):
        plan(apart, *others)


def test_a_voter_that_misses_records_elects_nobody() -> None:
    found = [folder(1, 3, 50), cut(folder(2, 3, 40), 60)]
    assert (plan(*found).kind, plan(*found).leader_id) == ("lost majority", 1)
    moved = plan(*found, addresses=[NewAddress(1, "new1", 19093)])
    assert moved.kind == "lost majority", "the records from 40 on may have been committed"


def test_a_voter_that_has_its_records_again_votes() -> None:
    """The next start removes the guard."""
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left: nodes 1, 2"):
        plan(folder(1, 3, 50), cut(folder(2, 3, 40), 40))


def test_a_voter_that_lost_its_votes_votes_in_later_epochs() -> None:
    found = msgspec.structs.replace(folder(2, 3, 40), no_vote_up_to=1003)
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left: nodes 1, 2"):
        plan(folder(1, 3, 50), found)


def test_a_majority_that_votes_moves_without_the_newest_log() -> None:
    """Damage took the end of that log, so its node doesn't vote; the others elect one of them."""
    found = [cut(folder(1, 3, 60), 70), folder(2, 3, 50), folder(3, 3, 50)]
    made = plan(*found, addresses=[NewAddress(1, "new1", 19093)])
    assert (made.kind, made.leader_id, made.base_offset) == ("endpoints", 2, 50)
    assert [target.node_id for target in made.targets] == [2, 3]
    assert "start node 1 as it is: it fetches the change" in made.steps


def test_what_damage_took_may_be_lost() -> None:
    made = plan(cut(folder(1, 3, 90, committed=60), 120))
    assert made.loss == Loss(None, None, (60, 90), 90, 60, (90, 120))
    assert made.survivors[0].is_cut
    other = folder(9, 3, 110, committed=100)
    assert plan(cut(folder(1, 3, 90), 120), other).loss == Loss(
        (90, 100), (100, 110), None, 90, 90, (110, 120)
    )
    whole = folder(2, 3, 120, voters=FIVE)
    assert plan(cut(folder(1, 3, 90, voters=FIVE), 120), whole).loss.cut is None


def test_of_equal_logs_one_without_a_loss_goes_on() -> None:
    made = plan(cut(folder(1, 3, 50, voters=FIVE), 60), folder(2, 3, 50, voters=FIVE))
    assert (made.leader_id, made.loss.cut) == (2, (50, 60))
    longer = plan(cut(folder(1, 3, 55, voters=FIVE), 60), folder(2, 3, 50, voters=FIVE))
    assert longer.leader_id == 1, "what is left of it is as good as any log"


def earlier(found: FolderEvidence, voters: Sequence[int]) -> FolderEvidence:
    """The folder with a voter set before its last one."""
    change = VoterChange(1, 1, NOW_MS, tuple(voter(id) for id in voters))
    return msgspec.structs.replace(found, history=(change, *found.history))


def test_a_survivor_whose_removal_is_the_last_change_keeps_its_endpoints() -> None:
    removed = earlier(folder(1, 3, 50, voters=(2, 3)), (1, 2, 3))
    assert plan(removed).voters == (voter(1),)


def test_two_voters_at_one_address_are_refused() -> None:
    found = [folder(id, 3, 50) for id in (1, 2, 3)]
    with pytest.raises(RecoveryError, match="voters 2 and 3 would both be at new:19093: give each its own"):
        plan(*found, addresses=[NewAddress(2, "new", 19093), NewAddress(3, "new", 19093)])


def test_an_epoch_must_be_left() -> None:
    """The node stands for election in the epoch after the plan's."""
    rise = plan(folder(1, 3, 50)).epoch - 3
    last = LAST_EPOCH - rise - 1
    assert plan(msgspec.structs.replace(folder(1, 3, 50), quorum_epoch=last)).epoch == LAST_EPOCH - 1
    with pytest.raises(RecoveryError, match=f"epoch {last + 1} leaves no room for the next ones: lower it"):
        plan(msgspec.structs.replace(folder(1, 3, 50), quorum_epoch=last + 1))


def recovered(id: int, end_offset: int, voters: Sequence[int]) -> FolderEvidence:
    """The folder that a recovery at offset 40 went on with, up to this offset."""
    parts = [EpochEvidence(3, 0, 40, "before"), EpochEvidence(1003, 40, 43, "plan")]
    if end_offset > 43:
        parts.append(EpochEvidence(1004, 43, end_offset, "since"))
    return msgspec.structs.replace(
        folder(id, 1004, end_offset, voters=voters, committed=end_offset),
        epochs=tuple(parts),
        recovery=PastRecovery("0123456789abcdef", 1003, 40),
    )


BEHIND = (
    "its log has nothing since the recovery that the folder of node 1 remembers: plan 0123456789ab, written "
    "at offset 40 in epoch 1003. If its node ran since, together with others on old folders, what they "
    "acknowledged isn't counted here"
)


def test_folders_that_a_recovery_left_behind_are_no_survivors_of_the_present_quorum() -> None:
    """They could elect a leader of the old one. What they have was lost in that recovery."""
    old = [folder(id, 3, 90, committed=80) for id in (2, 3)]
    made = plan(recovered(1, 60, (1, 4, 5)), *old)
    assert (made.kind, made.leader_id, made.base_offset) == ("lost majority", 1, 60)
    assert made.loss == Loss(None, None, None, 60, 60)
    assert [each.problem for each in made.survivors] == ["", BEHIND, BEHIND]
    with pytest.raises(RecoveryError, match=f"--keep 2: no usable folder of this node .*: {BEHIND}"):
        plan(recovered(1, 60, (1, 4, 5)), *old, keep=[2])


def test_a_recovery_that_was_never_started_leaves_nobody_behind() -> None:
    """Nothing was committed by it. The others may have come back, and gone on."""
    parts = (EpochEvidence(3, 0, 40, "before"), EpochEvidence(5, 40, 90, "since"))
    others = [
        msgspec.structs.replace(folder(id, 5, 90, voters=FIVE, committed=80), epochs=parts)
        for id in (3, 4, 5)
    ]
    unstarted = msgspec.structs.replace(recovered(1, 43, (1, 2)), committed_offset=40)
    with pytest.raises(RecoveryError, match="a majority of the 5 voters is left: nodes 3, 4, 5"):
        plan(unstarted, *others)


def test_a_recovery_whose_records_were_never_written_leaves_nobody_behind() -> None:
    """It was interrupted before. Its epoch was in quorum-state, so the old quorum may be in a later one."""
    begun = msgspec.structs.replace(
        folder(1, 1005, 60), recovery=PastRecovery("0123456789abcdef", 1003, 40), committed_offset=60
    )
    made = plan(begun, folder(4, 3, 20, voters=FIVE))
    assert [each.problem for each in made.survivors] == ["", ""]


def test_a_static_voter_that_a_recovery_left_behind_has_no_vote() -> None:
    """Static voters are known by their ids alone, and a node of this id has come back since."""
    made = plan(static(recovered(1, 60, ()), 1, 2, 3), static(folder(2, 3, 90), 1, 2, 3))
    assert (made.kind, made.leader_id) == ("static", 1)
    assert made.survivors[1].problem == BEHIND


def test_voters_that_a_quorum_went_on_without_elect_nobody_though_no_folder_remembers_a_recovery() -> None:
    forgotten = msgspec.structs.replace(recovered(1, 60, (1, 4)), recovery=None)
    made = plan(forgotten, *(folder(id, 3, 45, committed=40) for id in (2, 3)))
    assert (made.kind, made.leader_id) == ("lost majority", 1)
    evidence = broker(msgspec.structs.replace(forgotten, node_id=7, folder="/7"))
    made = plan(evidence, *(folder(id, 3, 45, committed=40) for id in (2, 3)))
    assert made.loss.lost == (45, 60)


def test_without_the_folders_that_remember_a_recovery_an_older_one_goes_on() -> None:
    found = damaged(recovered(1, 60, (1, 4))), folder(3, 3, 45)
    with pytest.raises(RecoveryError, match="no folder can be used"):
        plan(*found)
    made = plan(*found, without=[1])
    assert (made.leader_id, made.without) == (3, (1,))
    assert made.epoch > 1004
    assert made.loss.lost == (45, 60)


def test_a_log_that_was_cut_before_a_recovery_may_have_been_of_the_present_quorum() -> None:
    made = plan(recovered(1, 60, (1, 4, 5)), cut(folder(4, 3, 20), 75))
    assert made.loss.cut == (60, 75)
    assert made.survivors[1].problem == BEHIND


def test_a_voter_on_another_disk_is_none() -> None:
    replaced = msgspec.structs.replace(folder(2, 3, 40), directory_id=directory(8))
    assert plan(folder(1, 3, 50), replaced).leader_id == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"cluster_id": "another"},
            "the folders are of several clusters: a cluster (/1), another (/2). Leave out those of",
        ),
        ({"controller_pid": 77}, "process 77 worked on /2 when it was collected"),
        (
            {"node_id": 1},
            f"node 1 has two folders: /1 (directory {directory(1)}, last epoch 3, log end 50), and /2 (",
        ),
        (
            {"epochs": (EpochEvidence(3, 0, 50, "other bytes"),)},
            "/1 and /2 hold different records of epoch 3 at offsets 0 to 49",
        ),
    ],
)
def test_folders_that_don_t_fit_together_are_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(RecoveryError, match=re.escape(problem)):
        plan(folder(1, 3, 50, voters=FIVE), msgspec.structs.replace(folder(2, 3, 50, voters=FIVE), **changes))


def test_another_survivor_can_be_kept() -> None:
    made = make_plan([folder(1, 3, 50, voters=FIVE), folder(2, 3, 40, voters=FIVE)], [], NOW_MS, keep=[2])
    assert (made.leader_id, made.base_offset) == (2, 40)


def test_several_survivors_are_kept_only_if_their_logs_are_equal() -> None:
    made = plan(folder(1, 3, 50, voters=FIVE), folder(2, 3, 50, voters=FIVE), keep=[1, 2])
    assert [target.node_id for target in made.targets] == [1, 2]
    assert made.voters == (voter(1), voter(2))
    with pytest.raises(RecoveryError, match=r"the logs of nodes 1 and 2 aren't equal"):
        plan(folder(1, 3, 50, voters=FIVE), folder(2, 3, 40, voters=FIVE), keep=[1, 2])
    with pytest.raises(RecoveryError, match="--keep 3: no usable folder of this node was collected"):
        plan(folder(1, 3, 50), keep=[3])


def test_equal_logs_may_begin_at_different_offsets() -> None:
    """Each node trims its own log. The plan is for both folders as they were collected."""
    trimmed = (EpochEvidence(3, 20, 50, "trimmed"),)
    found = [
        folder(1, 3, 50, voters=FIVE),
        msgspec.structs.replace(folder(2, 3, 50, voters=FIVE), log_start_offset=20, epochs=trimmed),
        msgspec.structs.replace(
            folder(3, 3, 50), log_start_offset=50, epochs=(), snapshots=(SnapshotEvidence(50, 3, True),)
        ),
    ]
    made = plan(*found, addresses=[NewAddress(1, "new1", 19093)])
    assert [made.stage_of(each) for each in found] == ["untouched"] * 3
    cut = (EpochEvidence(3, 20, 50, "changed"),)
    assert made.stage_of(msgspec.structs.replace(found[1], epochs=cut)) == "other"


def test_moved_voters_stay_voters_and_only_equal_logs_get_the_record() -> None:
    """KIP-1347. The log that is shorter fetches the record: written at another offset, it would diverge."""
    found = [folder(1, 3, 50), folder(2, 3, 50), folder(3, 3, 40)]
    made = plan(*found, addresses=[NewAddress(1, "new1", 19093), NewAddress(3, "new3", 19093)])
    assert made.kind == "endpoints"
    assert [target.node_id for target in made.targets] == [1, 2]
    assert [voter.endpoints for voter in made.voters] == [
        (Endpoint("CONTROLLER", "new1", 19093),),
        (Endpoint("CONTROLLER", "c2", 9093),),
        (Endpoint("CONTROLLER", "new3", 19093),),
    ]
    assert "start node 3 as it is: it fetches the change" in made.steps


def test_brokers_need_the_new_addresses_and_a_restart() -> None:
    made = plan(folder(1, 3, 50), folder(2, 3, 50), addresses=[NewAddress(1, "new1", 19093)])
    assert made.steps[-1] == (
        "set controller.quorum.bootstrap.servers of all brokers to the new addresses, too, and restart them"
    )


def test_nodes_start_after_the_plan_is_applied_to_all_folders() -> None:
    """`apply` refuses a plan that moves voters while any of them runs."""
    found = [folder(1, 3, 50), folder(2, 3, 50), folder(3, 3, 40)]
    moved = plan(*found, addresses=[NewAddress(1, "new1", 19093)])
    kept = plan(folder(1, 3, 50, voters=FIVE), folder(2, 3, 50, voters=FIVE), keep=[1, 2])
    for steps in (moved.steps, kept.steps):
        applying = [number for number, step in enumerate(steps) if step.startswith("apply the plan")]
        starting = [number for number, step in enumerate(steps) if step.startswith("start node")]
        assert len(applying) == 2
        assert max(applying) < min(starting)
        assert "start nodes 1, 2, when the plan is applied to all their folders" in steps
        assert not any("and start it" in step for step in steps if step.startswith("apply"))


def test_a_moved_voter_with_two_listeners_needs_the_listener_s_name() -> None:
    points = (Endpoint("CONTROLLER", "c1", 9093), Endpoint("SECURE", "c1", 9094))
    change = VoterChange(2, 3, NOW_MS, (msgspec.structs.replace(voter(1), endpoints=points),))
    found = msgspec.structs.replace(folder(1, 3, 50), history=(change,))
    with pytest.raises(RecoveryError, match="voter 1 has the listeners CONTROLLER, SECURE"):
        plan(found, addresses=[NewAddress(1, "new", 1)])
    made = plan(found, addresses=[NewAddress(1, "new", 1, "SECURE")])
    assert made.voters[0].endpoints == (points[0], Endpoint("SECURE", "new", 1))
    with pytest.raises(RecoveryError, match="--endpoints names node 5, and the voters are 1"):
        plan(found, addresses=[NewAddress(5, "new", 1)])


def static(found: FolderEvidence, *registered: int) -> FolderEvidence:
    """The folder in a static quorum of three; these controllers are registered in its log."""
    return msgspec.structs.replace(
        found,
        kraft_version=0,
        history=(),
        static_voter_ids=(1, 2, 3),
        registrations={id: (Endpoint("CONTROLLER", f"c{id}", 9093),) for id in registered},
    )


def test_a_static_quorum_goes_on_in_a_later_epoch_than_any_lost_voter_s() -> None:
    """Otherwise the survivor could be elected in an epoch that a lost leader had, and other records would be
    at the same offsets of one epoch."""
    found = static(msgspec.structs.replace(folder(1, 3, 50), quorum_epoch=7), 1, 2, 3)
    made = plan(found)
    assert made.kind == "static"
    assert made.epoch >= 7 + EPOCHS_WITHOUT_TRACE
    assert made.targets == (Target(1, directory(1), "3 to 50"),)
    assert [voter.id for voter in made.voters] == [1]
    [batch], _ = split_batches(made.batch())
    [leader] = decode_control_batch(batch)
    assert isinstance(leader, LeaderChangeMessage)
    assert (batch.header.leader_epoch, batch.header.base_offset, leader.leader_id) == (made.epoch, 50, 1)
    assert made.end_offset == 51
    steps = [
        made.steps.index(next(step for step in made.steps if step.startswith(start)))
        for start in ("apply the plan", "set controller.quorum.voters=1@c1:9093 in", "start node 1, then")
    ]
    assert steps == sorted(steps)


def test_the_controllers_of_a_static_quorum_come_back_one_at_a_time() -> None:
    """With controller.quorum.voters of the survivor alone they don't start."""
    returning = plan(static(folder(1, 3, 50), 1, 2, 3)).steps[-1]
    for part in (
        "one controller back at a time. Add it to controller.quorum.voters in its own file, format it with ",
        "kraft-wire storage format -t ",
        " -c FILE` unless it is a broker, too, and start it. When its lag is 0",
        "of one that is a broker, too, move __cluster_metadata-0 away and nothing else",
        "set that value on all others",
    ):
        assert part in returning


def test_the_leader_of_a_static_quorum_is_looked_for_at_all_its_voters_addresses() -> None:
    """They are in the configuration only, and in the registrations of controllers since metadata.version
    3.7."""
    made = plan(static(folder(1, 3, 50), 1, 2, 3), static_voters={3: Endpoint("", "d3", 9095)})
    assert [[point.host for point in voter.endpoints] for voter in made.old_voters] == [
        ["c1"],
        ["c2"],
        ["d3", "c3"],
    ]
    unknown = static(folder(1, 3, 50), 1, 2)
    with pytest.raises(RecoveryError, match=r"no address of voter 3 is known, so nobody could .* --voters"):
        plan(unknown)
    assert plan(unknown, static_voters={3: Endpoint("", "c3", 9093)}).old_voters[2].id == 3
    nameless = msgspec.structs.replace(unknown, static_voter_ids=())
    with pytest.raises(RecoveryError, match=r"no folder names the voters .* --voters"):
        plan(nameless)
    with pytest.raises(RecoveryError, match="--voters is for a static quorum"):
        plan(folder(1, 3, 50), static_voters={1: Endpoint("", "c1", 9093)})


def test_voters_of_the_configuration_count_though_no_folder_names_them() -> None:
    """A follower writes quorum-state when the leader or the epoch changes, not when the key does."""
    found = [static(folder(id, 3, 50), 1, 2, 3) for id in (1, 2)]
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left: nodes 1, 2"):
        plan(*found)
    made = plan(*found, static_voters={id: Endpoint("", f"c{id}", 9093) for id in FIVE})
    assert [each.id for each in made.voters] == [1]
    assert [each.id for each in made.old_voters] == list(FIVE)


def test_a_static_survivor_goes_on_at_a_new_address() -> None:
    moved = plan(static(folder(1, 3, 50), 1, 2, 3), addresses=[NewAddress(1, "new", 1)])
    assert moved.voters[0].endpoints == (Endpoint("", "new", 1),)
    assert any(step.startswith("set controller.quorum.voters=1@new:1 in") for step in moved.steps)
    with pytest.raises(RecoveryError, match="--endpoints names node 2, and the voters are 1"):
        plan(static(folder(1, 3, 50), 1, 2, 3), addresses=[NewAddress(2, "new", 1)])


def test_equal_static_survivors_can_be_kept() -> None:
    found = [
        msgspec.structs.replace(static(folder(id, 3, 50), 1, 2, 3, 4, 5), static_voter_ids=FIVE)
        for id in (1, 2)
    ]
    made = plan(*found, keep=[1, 2])
    assert [target.node_id for target in made.targets] == [1, 2]
    assert any("controller.quorum.voters=1@c1:9093,2@c2:9093 in" in step for step in made.steps)


def test_a_static_majority_moves_by_its_configuration_alone() -> None:
    found = [static(folder(id, 3, 50), 1) for id in (1, 2, 3)]
    with pytest.raises(RecoveryError, match="a majority of the 3 voters is left"):
        plan(*found)
    moved = plan(*found, addresses=[NewAddress(2, "new", 1)])
    assert (moved.kind, moved.targets) == ("static", ())
    assert moved.steps[0].startswith("set controller.quorum.voters=1@c1:9093,2@new:1,3@HOST:PORT in")
    with pytest.raises(RecoveryError, match="voters 1 and 2 would both be at c1:9093: give each its own"):
        plan(*found, addresses=[NewAddress(2, "c1", 9093)])


def test_a_changed_plan_is_refused() -> None:
    made = plan(folder(1, 3, 50))
    made.check()
    read = msgspec.json.decode(msgspec.json.encode(made), type=Plan)
    read.check()
    with pytest.raises(RecoveryError, match="the plan doesn't match its hash"):
        msgspec.structs.replace(read, base_offset=0).check()


def test_stages_of_a_folder() -> None:
    made = plan(folder(1, 3, 50))
    before = folder(1, 3, 50)
    assert made.stage_of(before) == "untouched"
    assert made.stage_of(folder(1, 3, 51)) == "other"
    with pytest.raises(RecoveryError, match=r"is of node 2 .* and the plan is for node 1"):
        made.stage_of(folder(2, 3, 50))
    with pytest.raises(RecoveryError, match="belongs to cluster another"):
        made.stage_of(msgspec.structs.replace(before, cluster_id="another"))
    snapshot = SnapshotEvidence(90, made.epoch + 1, True)
    later = msgspec.structs.replace(folder(1, made.epoch + 1, 99), log_start_offset=90, snapshots=(snapshot,))
    assert made.stage_of(later) == "moved on"
