"""Scenarios of Kafka's PartitionChangeBuilderTest and PartitionReassignmentReplicasTest, and invariants."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraft_wire.controller.partitions.partition_change import (
    Election,
    Goal,
    Rules,
    is_no_op,
    partition_change,
)
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_LOST,
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    Ids,
    Partition,
    PartitionRef,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid

TOPIC = Uuid.parse("FbrrdcfiR-KC2CPSTHaJrg")
REF = PartitionRef(TOPIC, 0)

BEFORE_DIRECTORIES = 16
BEFORE_ELR = 17
WITH_ELR = 23
LEVELS = (BEFORE_DIRECTORIES, BEFORE_ELR, WITH_ELR)
RECORD_VERSION = {BEFORE_DIRECTORIES: 0, BEFORE_ELR: 1, WITH_ELR: 2}

every_level = pytest.mark.parametrize("level", LEVELS)


def directory(broker_id: int) -> Uuid:
    """Return the log directory of a broker's replicas in these tests."""
    return Uuid(bytes(14) + b"\x07" + bytes([broker_id]))


def partition(
    replicas: Ids,
    isr: Ids,
    leader: int,
    *,
    elr: Ids = (),
    last_known_elr: Ids = (),
    removing: Ids = (),
    adding: Ids = (),
    recovery: int = RECOVERED,
) -> Partition:
    return Partition(
        replicas,
        isr,
        leader,
        leader_epoch=100,
        partition_epoch=200,
        directories=tuple(map(directory, replicas)),
        leader_recovery_state=recovery,
        removing_replicas=removing,
        adding_replicas=adding,
        elr=elr,
        last_known_elr=last_known_elr,
    )


def rules(
    level: int = WITH_ELR,
    can_lead: Callable[[int], bool] = lambda broker_id: True,
    min_isr: int = 2,
    elr: bool | None = None,
) -> Rules:
    return Rules(
        can_lead=can_lead,
        default_directory=lambda broker_id: DIRECTORY_UNASSIGNED,
        metadata_version=level,
        elr_enabled=level >= WITH_ELR if elr is None else elr,
        min_isr=min_isr,
    )


def change(before: Partition, under: Rules, **goal: object) -> PartitionChangeRecord | None:
    """Return the record for a goal, after checking its version and ids."""
    result = partition_change(REF, before, msgspec.convert(goal, Goal) if not goal else Goal(**goal), under)  # type: ignore[arg-type]
    if result is None:
        return None
    record, version = result
    assert isinstance(record, PartitionChangeRecord)
    assert (record.topic_id, record.partition_id) == (TOPIC, 0)
    assert version == RECORD_VERSION.get(under.metadata_version, version)
    assert PartitionChangeRecord.decode(record.encode(version), version) == record
    return record


def expected(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)  # type: ignore[arg-type]


def after(before: Partition, record: PartitionChangeRecord | None) -> Partition:
    """Return the partition after the record."""
    assert record is not None
    fields = {
        "replicas": record.replicas,
        "isr": record.isr,
        "removing_replicas": record.removing_replicas,
        "adding_replicas": record.adding_replicas,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
        "directories": record.directories,
        "leader": None if record.leader == NO_LEADER_CHANGE else record.leader,
        "leader_recovery_state": None if record.leader_recovery_state == -1 else record.leader_recovery_state,
    }
    return msgspec.structs.replace(before, **{name: v for name, v in fields.items() if v is not None})


FOO = partition((2, 1, 3), (2, 1, 3), 1)
BAR = partition((1, 2, 3, 4), (1, 2, 3), 1, removing=(1,), adding=(4,))
BAZ = partition((2, 1, 3), (1, 3), 3)


def not_3(broker_id: int) -> bool:
    return broker_id != 3


# Elections


@every_level
@pytest.mark.parametrize(
    ("goal", "leader"),
    [
        (Goal(election=Election.PREFERRED), 2),
        (Goal(), 1),
        (Goal(election=Election.UNCLEAN), 1),
        (Goal(isr=(1, 3)), 1),
        (Goal(election=Election.UNCLEAN, isr=(1, 3)), 1),
        (Goal(isr=(3,)), NO_LEADER),
        (Goal(election=Election.UNCLEAN, isr=(3,)), 2),
        (Goal(election=Election.UNCLEAN, isr=(4,), replicas=(2, 1, 3, 4)), 4),
    ],
)
def test_who_is_elected_where_3_cannot_lead(level: int, goal: Goal, leader: int) -> None:
    result = partition_change(REF, FOO, goal, rules(level, not_3))
    record = expected() if result is None else result[0]
    assert isinstance(record, PartitionChangeRecord)
    assert (FOO.leader if record.leader == NO_LEADER_CHANGE else record.leader) == leader


@every_level
@pytest.mark.parametrize("election", Election)
def test_a_leader_that_can_lead_stays_where_the_preferred_one_is_not_in_sync(
    level: int, election: Election
) -> None:
    assert change(BAZ, rules(level), election=election) is None


@every_level
@pytest.mark.parametrize("election", [Election.ONLINE, Election.UNCLEAN])
def test_nothing_to_change_makes_no_record(level: int, election: Election) -> None:
    assert change(FOO, rules(level, not_3), election=election) is None
    assert change(BAR, rules(level, not_3), election=election) is None


def test_the_preferred_election_takes_any_in_sync_replica_before_none() -> None:
    before = partition((2, 1, 3), (1, 3), NO_LEADER)
    record = change(before, rules(elr=False, can_lead=not_3), election=Election.PREFERRED)
    assert record == expected(leader=1)


@every_level
def test_an_unclean_election_leaves_only_the_leader_in_the_isr_and_marks_it_recovering(level: int) -> None:
    record = change(FOO, rules(level, not_3), election=Election.UNCLEAN, isr=(3,))
    assert record == expected(isr=(2,), leader=2, leader_recovery_state=RECOVERING)


@pytest.mark.parametrize("isr", [None, (2,)])
def test_an_unclean_election_clears_the_elr(isr: Ids | None) -> None:
    offline = partition((2, 1, 3), (), NO_LEADER, elr=(3,), last_known_elr=(2,))
    record = change(offline, rules(can_lead=lambda b: b == 1), election=Election.UNCLEAN, isr=isr)
    assert record == expected(
        isr=(1,),
        leader=1,
        leader_recovery_state=RECOVERING,
        eligible_leader_replicas=(),
        last_known_elr=(),
    )


def test_a_recovering_leader_that_goes_and_comes_back_is_still_recovering() -> None:
    before = partition((1, 2, 3), (1,), 1, recovery=RECOVERING)
    gone = change(before, rules(BEFORE_DIRECTORIES, lambda b: False), isr=())
    assert gone == expected(leader=NO_LEADER)
    back = change(after(before, gone), rules(BEFORE_DIRECTORIES))
    assert back == expected(leader=1)


def test_an_unclean_leader_elected_uncleanly_again_stays_recovering() -> None:
    before = partition((1, 2, 3), (2, 3), NO_LEADER, recovery=RECOVERING)
    record = change(before, rules(elr=False, can_lead=lambda b: b == 1), election=Election.UNCLEAN)
    assert record == expected(isr=(1,), leader=1)


# Leader epochs


@every_level
def test_an_isr_that_shrinks_does_not_raise_the_leader_epoch(level: int) -> None:
    assert change(FOO, rules(level, not_3), isr=(2, 1)) == expected(isr=(2, 1))


@pytest.mark.parametrize("level", [7, 9, 11])
def test_an_isr_that_shrinks_raises_the_leader_epoch_before_3_6(level: int) -> None:
    assert change(FOO, rules(level, not_3), isr=(2, 1)) == expected(isr=(2, 1), leader=1)


@pytest.mark.parametrize("level", [9, 12, 17, 22])
def test_an_isr_that_grows_does_not_raise_the_leader_epoch(level: int) -> None:
    before = partition((2, 1, 3, 4), (2, 1, 3), 1)
    assert change(before, rules(level), isr=(2, 1, 3, 4)) == expected(isr=(2, 1, 3, 4))


@pytest.mark.parametrize("level", [9, 12, 17, 23])
def test_a_replica_that_is_removed_raises_the_leader_epoch(level: int) -> None:
    record = change(FOO, rules(level), replicas=(2, 1, 4))
    assert record is not None
    assert record.leader == FOO.leader


@pytest.mark.parametrize("level", [9, 11, 12, 17])
def test_an_isr_that_must_not_become_empty_does_not_raise_the_leader_epoch(level: int) -> None:
    """KAFKA-16624."""
    assert change(partition((2,), (2,), 2), rules(level), isr=()) == expected(leader=NO_LEADER)
    before = partition((2,), (2,), NO_LEADER)
    assert change(before, rules(level, lambda b: False), isr=()) is None


@every_level
def test_isr_and_leader_change_in_one_record(level: int) -> None:
    assert change(FOO, rules(level, not_3), isr=(2, 3)) == expected(isr=(2, 3), leader=2)


# Reassignments


def directories_at(level: int, *broker_ids: int) -> dict[str, tuple[Uuid, ...]]:
    return {"directories": tuple(map(directory, broker_ids))} if level >= BEFORE_ELR else {}


@every_level
def test_replicas_that_only_change_places(level: int) -> None:
    record = change(FOO, rules(level, not_3), replicas=(3, 2, 1))
    assert record == expected(replicas=(3, 2, 1), **directories_at(level, 3, 2, 1))


@every_level
def test_the_last_added_replica_in_sync_completes_a_reassignment(level: int) -> None:
    record = change(BAR, rules(level, not_3), isr=(1, 2, 3, 4))
    assert record == expected(
        replicas=(2, 3, 4),
        isr=(2, 3, 4),
        leader=2,
        removing_replicas=(),
        adding_replicas=(),
        **directories_at(level, 2, 3, 4),
    )


@every_level
def test_a_reassignment_that_is_taken_back(level: int) -> None:
    record = change(BAR, rules(level, not_3), replicas=(1, 2, 3), isr=(1, 2, 3), removing=(), adding=())
    assert record == expected(
        replicas=(1, 2, 3),
        leader=1,
        removing_replicas=(),
        adding_replicas=(),
        **directories_at(level, 1, 2, 3),
    )


@every_level
def test_removals_alone_complete_at_once(level: int) -> None:
    record = change(FOO, rules(level, not_3), replicas=(1, 2, 3), removing=(3,))
    assert record == expected(replicas=(1, 2), isr=(2, 1), leader=1, **directories_at(level, 1, 2))


@every_level
def test_additions_wait_for_the_isr(level: int) -> None:
    record = change(FOO, rules(level, not_3), replicas=(1, 2, 3, 4), adding=(4,))
    added = directories_at(level, 1, 2, 3)
    if added:
        added["directories"] += (DIRECTORY_UNASSIGNED,)
    assert record == expected(replicas=(1, 2, 3, 4), adding_replicas=(4,), **added)


def test_a_leader_that_is_removed_stops_leading_even_where_nobody_else_can() -> None:
    before = partition((2, 3, 0, 1), (0, 1), 0, removing=(0, 1), adding=(2, 3))
    record = change(before, rules(7, lambda b: False), isr=(0, 1, 2, 3))
    assert record == expected(
        replicas=(2, 3), isr=(2, 3), leader=NO_LEADER, removing_replicas=(), adding_replicas=()
    )


@pytest.mark.parametrize(
    ("replicas", "removing", "adding", "isr", "completed"),
    [
        ((3, 4, 5, 0, 1, 2), (0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4), None),
        ((3, 4, 5, 0, 1, 2), (0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4, 5), ((3, 4, 5), (3, 4, 5))),
        ((0, 1, 3, 2), (2,), (3,), (0, 1, 2, 3), ((0, 1, 3), (0, 1, 3))),
        ((0, 1, 3, 2), (2,), (3,), (0, 2, 3), ((0, 1, 3), (0, 3))),
        ((0, 1, 3, 2), (2,), (3,), (2, 3), ((0, 1, 3), (3,))),
        ((0, 1, 3, 2), (2,), (3,), (0, 1, 2), None),
        ((1, 2, 3, 4, 5, 0), (0,), (4, 5), (0, 1, 2, 4, 5), ((1, 2, 3, 4, 5), (1, 2, 4, 5))),
        ((1, 2, 3, 4, 5, 0), (0,), (4, 5), (0, 1, 2, 3, 5), None),
        ((2, 3, 4, 5, 0, 1), (0, 1), (5,), (0, 1, 2, 3, 5), None),
        ((2, 3, 4, 5, 0, 1), (0, 1), (5,), (0, 1, 2, 3, 4), None),
        ((2, 3, 4, 5, 0, 1), (0, 1), (5,), (0, 1, 2, 3, 4, 5), ((2, 3, 4, 5), (2, 3, 4, 5))),
        ((0, 1, 2), (2,), (), (2,), None),
        ((0, 1, 2), (), (), (0, 1, 2), None),
    ],
)
def test_when_a_reassignment_is_complete(
    replicas: Ids, removing: Ids, adding: Ids, isr: Ids, completed: tuple[Ids, Ids] | None
) -> None:
    before = partition(replicas, isr, isr[0], removing=removing, adding=adding)
    record = change(before, rules(BEFORE_ELR))
    if completed is None:
        assert record is None
    else:
        assert record is not None
        assert (record.replicas, record.isr) == completed
        assert (record.removing_replicas, record.adding_replicas) == (() if removing else None, ())


# Directories


def test_directories_follow_their_replicas_through_a_reassignment() -> None:
    record = change(FOO, rules(BEFORE_ELR), replicas=(3, 1, 5, 4), directories={5: directory(50)})
    assert record == expected(
        leader=1,
        replicas=(3, 1, 5, 4),
        directories=(directory(3), directory(1), directory(50), DIRECTORY_UNASSIGNED),
    )


def test_directories_change_alone() -> None:
    record = change(FOO, rules(33), directories={3: directory(30), 1: DIRECTORY_LOST})
    assert record == expected(directories=(directory(2), DIRECTORY_LOST, directory(30)))


def test_the_directory_that_is_known_makes_no_record() -> None:
    assert change(FOO, rules(33), directories={3: directory(3)}) is None


def test_directories_are_not_written_before_they_exist() -> None:
    assert change(FOO, rules(BEFORE_DIRECTORIES), directories={3: directory(30)}) is None


# Eligible leader replicas (KIP-966)


@every_level
def test_members_that_leave_an_isr_below_the_minimum_become_eligible(level: int) -> None:
    before = partition((1, 2, 3, 4), (1, 2, 3, 4), 1)
    record = change(before, rules(level, not_3, min_isr=3), election=Election.PREFERRED, isr=(1, 2))
    eligible = {"eligible_leader_replicas": (3, 4)} if level == WITH_ELR else {}
    assert record == expected(isr=(1, 2), **eligible)


def test_members_that_leave_an_isr_above_the_minimum_do_not() -> None:
    before = partition((1, 2, 3, 4), (1, 2, 3, 4), 1)
    assert change(before, rules(min_isr=2), isr=(1, 2)) == expected(isr=(1, 2))


def test_an_isr_at_the_minimum_clears_the_elr() -> None:
    before = partition((1, 2, 3, 4), (1, 2), 1, elr=(3, 4))
    record = change(before, rules(min_isr=3), isr=(1, 2, 3))
    assert record == expected(isr=(1, 2, 3), eligible_leader_replicas=())


def test_a_new_member_from_outside_leaves_the_elr_alone() -> None:
    before = partition((1, 2, 3, 4), (1,), 1, elr=(3,))
    assert change(before, rules(min_isr=3), isr=(1, 4)) == expected(isr=(1, 4))


def test_the_order_in_which_an_elr_was_written_does_not_matter() -> None:
    before = partition((1, 2, 3, 17), (1,), 1, elr=(17, 2))
    assert change(before, rules(min_isr=3)) is None


def test_a_broker_that_stopped_uncleanly_is_not_eligible() -> None:
    before = partition((1, 2, 3, 4), (1,), 1, elr=(2, 3))
    record = change(before, rules(min_isr=3, can_lead=not_3), unclean_shutdown=(3,))
    assert record == expected(eligible_leader_replicas=(2,))


def test_an_eligible_replica_is_elected_where_the_isr_is_empty() -> None:
    before = partition((1, 2, 3, 4), (1,), 1, elr=(3,))
    record = change(before, rules(can_lead=lambda b: b != 1, min_isr=3), isr=())
    assert record == expected(isr=(3,), leader=3, eligible_leader_replicas=(1,))


def test_an_isr_may_become_empty_where_elrs_are_kept() -> None:
    before = partition((1, 2, 3, 4), (1, 2, 3, 4), 1)
    record = change(before, rules(can_lead=lambda b: False, min_isr=3), isr=())
    assert record == expected(
        isr=(), leader=NO_LEADER, eligible_leader_replicas=(1, 2, 3, 4), last_known_elr=(1,)
    )
    later = change(after(before, record), rules(can_lead=lambda b: False, min_isr=3), unclean_shutdown=(2,))
    assert later == expected(eligible_leader_replicas=(1, 3, 4))


def test_the_last_leader_is_noted_when_there_is_none_any_more() -> None:
    before = partition((1, 2, 3), (1,), 1, elr=(2,))
    record = change(before, rules(can_lead=lambda b: False, min_isr=3), election=Election.PREFERRED)
    assert record == expected(leader=NO_LEADER, last_known_elr=(1,))


def test_a_partition_that_never_had_a_leader_has_no_last_one() -> None:
    before = partition((1, 2, 3), (1,), NO_LEADER)
    record = change(before, rules(can_lead=lambda b: False, min_isr=1), replicas=(1, 2))
    assert record is not None
    assert record.last_known_elr is None


@pytest.mark.parametrize("election", Election)
def test_the_last_leader_is_elected_where_nothing_is_in_sync_or_eligible(election: Election) -> None:
    before = partition((4, 2, 3, 1), (), NO_LEADER, last_known_elr=(1,))
    record = change(before, rules(min_isr=3), election=election)
    assert record == expected(isr=(1,), leader=1, leader_recovery_state=RECOVERING, last_known_elr=())


@pytest.mark.parametrize("election", [Election.PREFERRED, Election.ONLINE])
def test_the_last_leader_is_not_elected_while_a_replica_is_eligible(election: Election) -> None:
    before = partition((1, 2, 3, 4), (), NO_LEADER, elr=(3,), last_known_elr=(1,))
    assert change(before, rules(can_lead=not_3, min_isr=3), election=election) is None


@pytest.mark.parametrize("election", [Election.PREFERRED, Election.ONLINE])
def test_of_several_last_known_members_none_is_elected(election: Election) -> None:
    before = partition((1, 2, 3, 4), (), NO_LEADER, last_known_elr=(1, 2))
    assert change(before, rules(min_isr=3), election=election) is None


@pytest.mark.parametrize("election", Election)
def test_a_last_leader_that_is_down_is_not_elected(election: Election) -> None:
    before = partition((1, 2, 3, 4), (), NO_LEADER, last_known_elr=(1,))
    assert change(before, rules(can_lead=lambda b: False, min_isr=3), election=election) is None


def test_an_elr_from_before_the_feature_was_turned_off_is_cleared() -> None:
    before = partition((1, 2, 3), (1,), 1, elr=(2,))
    assert change(before, rules(elr=False)) == expected(eligible_leader_replicas=())


# Invariants

brokers = st.integers(0, 5)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Partition, Goal, Rules, frozenset[int]]:
    replicas = draw(st.lists(brokers, min_size=1, unique=True).map(tuple))
    isr = draw(st.lists(st.sampled_from(replicas), unique=True).map(tuple))
    elr_enabled = draw(st.booleans()) or not isr
    outside = [replica for replica in replicas if replica not in isr]
    elr = draw(st.lists(st.sampled_from(outside), unique=True).map(tuple)) if outside and elr_enabled else ()
    before = partition(
        replicas,
        isr,
        draw(st.sampled_from((*isr, NO_LEADER))),
        elr=elr,
        last_known_elr=draw(st.sampled_from([(), replicas[:1]])) if elr_enabled else (),
        removing=draw(st.sampled_from([(), replicas[1:2]])),
        recovery=draw(st.sampled_from([RECOVERED, RECOVERING])),
    )
    leaving = draw(st.frozensets(st.sampled_from(replicas)))
    up = draw(st.frozensets(brokers)) - leaving
    stays = tuple(member for member in isr if member not in leaving)
    joins = [replica for replica in replicas if replica in up and replica not in isr]
    goal = Goal(
        election=draw(st.sampled_from(Election)),
        isr=draw(st.sampled_from([None, stays, (*stays, *joins[:1])])),
        unclean_shutdown=draw(st.sampled_from([(), leaving])),
    )
    under = rules(WITH_ELR, up.__contains__, draw(st.integers(1, len(replicas))), elr_enabled)
    return before, goal, under, up


@given(situations())
def test_every_change_leads_to_a_sound_partition(
    situation: tuple[Partition, Goal, Rules, frozenset[int]],
) -> None:
    before, goal, under, up = situation
    result = partition_change(REF, before, goal, under)
    if result is None:
        return
    record = result[0]
    assert isinstance(record, PartitionChangeRecord)
    assert not is_no_op(record)
    now = after(before, record)
    assert set(now.isr) <= set(now.replicas)
    assert set(now.elr).isdisjoint(now.isr)
    assert now.isr or under.elr_enabled
    if now.leader != NO_LEADER:
        assert now.leader in now.isr
        assert now.leader in up
        was_safe = {*(before.isr if goal.isr is None else goal.isr), *before.elr, *before.isr}
        if now.leader not in was_safe:
            assert now.leader_recovery_state == RECOVERING


@given(situations())
def test_a_change_that_was_made_is_not_made_again(
    situation: tuple[Partition, Goal, Rules, frozenset[int]],
) -> None:
    before, goal, under, _ = situation
    assume(not before.is_reassigning)  # the new ISR may complete a reassignment next time
    result = partition_change(REF, before, goal, under)
    if result is not None:
        record = result[0]
        assert isinstance(record, PartitionChangeRecord)
        again = msgspec.structs.replace(goal, isr=None)
        assert partition_change(REF, after(before, record), again, under) is None
