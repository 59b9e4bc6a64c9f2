"""The values of the core: voter sets, histories, majorities, roles."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.errors import IllegalTransition, InvariantViolated
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.majority import Tally, committed_end, majority_of, nth_latest_contact_ms
from kraft_wire.raft.membership.voter_history import OffsetHistory, VoterSetHistory
from kraft_wire.raft.membership.voters import (
    ReplicaKey,
    VersionRange,
    Voter,
    VoterSet,
    endpoint_at,
    endpoints_of,
    static_voters,
    voter_set,
    voters_of_record,
)
from kraft_wire.raft.roles import (
    DURABLE,
    TRANSITIONS,
    Candidate,
    Follower,
    Following,
    Leader,
    Prospective,
    Resigned,
    Role,
    RoleState,
    Unattached,
    check_transition,
)
from tests.raft.lone_node import DIRECTORY, ENDPOINTS, OTHER_DIRECTORY, OWN_VOTER

# Voters.


def test_an_unknown_directory_in_the_set_stands_for_any() -> None:
    assert ReplicaKey(1).matches(ReplicaKey(1, DIRECTORY))
    assert not ReplicaKey(1, DIRECTORY).matches(ReplicaKey(1))
    assert not ReplicaKey(1, DIRECTORY).matches(ReplicaKey(1, OTHER_DIRECTORY))
    assert not ReplicaKey(1).matches(ReplicaKey(2))


def test_endpoints_are_equal_whatever_their_order_and_case() -> None:
    first = endpoints_of([("controller", "a", 1), ("EXTERNAL", "b", 2)])
    assert first == endpoints_of([("external", "b", 2), ("CONTROLLER", "a", 1)])
    assert endpoint_at(first, "Controller") == ("CONTROLLER", "a", 1)
    assert endpoint_at(first, "OTHER") is None


def test_voters_are_sorted_and_unique() -> None:
    voters = voter_set([Voter(ReplicaKey(3)), Voter(ReplicaKey(1)), Voter(ReplicaKey(3, DIRECTORY))])
    assert voters.ids == (1, 3)
    assert len(voters) == 2
    assert voters.get(3) == Voter(ReplicaKey(3, DIRECTORY))
    assert voters.get(2) is None
    assert str(voters) == f"1, 3 (directory {DIRECTORY})"
    assert str(VoterSet()) == "none"


def test_a_voter_set_survives_its_record() -> None:
    voters = voter_set([OWN_VOTER, Voter(ReplicaKey(2, OTHER_DIRECTORY), (), VersionRange(0, 5))])
    record = VotersRecord.decode(voters.to_record().encode(0), 0)
    assert voters_of_record(record) == voters


def test_static_voters_promise_kraft_version_0_only() -> None:
    (voter,) = static_voters("controller", {1: ("controller.example", 9093)}).voters
    assert voter == Voter(ReplicaKey(1), ENDPOINTS, VersionRange(0, 0))


def test_the_only_voter() -> None:
    key = OWN_VOTER.key
    assert VoterSet((OWN_VOTER,)).is_only_voter(key)
    assert not VoterSet((OWN_VOTER,)).is_only_voter(ReplicaKey(1, OTHER_DIRECTORY))
    assert not voter_set([OWN_VOTER, Voter(ReplicaKey(2))]).is_only_voter(key)
    assert not VoterSet().is_only_voter(key)


def test_updating_a_voter() -> None:
    voters = voter_set([OWN_VOTER, Voter(ReplicaKey(2))])
    moved = Voter(OWN_VOTER.key, endpoints_of([("CONTROLLER", "moved", 1)]))
    assert voters.needs_update(moved)
    assert not voters.needs_update(OWN_VOTER)
    assert not voters.needs_update(Voter(ReplicaKey(1, OTHER_DIRECTORY)))
    assert voters.with_updated(moved).get(1) == moved
    assert voters.with_updated(moved).ids == (1, 2)
    with pytest.raises(KeyError):
        voters.with_updated(Voter(ReplicaKey(1, OTHER_DIRECTORY)))


def test_a_static_voter_s_directory_id_is_learned() -> None:
    voters = voter_set([Voter(ReplicaKey(1)), Voter(ReplicaKey(2))])
    learned = voters.with_learned_key(Voter(ReplicaKey(2, DIRECTORY)))
    assert learned == voter_set([Voter(ReplicaKey(1)), Voter(ReplicaKey(2, DIRECTORY))])
    with pytest.raises(KeyError):
        voters.with_learned_key(Voter(ReplicaKey(3, DIRECTORY)))


def test_add_voter() -> None:
    added = Voter(ReplicaKey(2, OTHER_DIRECTORY), ENDPOINTS)
    assert VoterSet((OWN_VOTER,)).with_added(added) == VoterSet((OWN_VOTER, added))
    with pytest.raises(ValueError, match="node 1 is a voter"):
        VoterSet((OWN_VOTER,)).with_added(Voter(ReplicaKey(1, OTHER_DIRECTORY)))


def test_remove_voter() -> None:
    other = Voter(ReplicaKey(2, OTHER_DIRECTORY))
    voters = VoterSet((OWN_VOTER, other))
    assert voters.without(other.key) == VoterSet((OWN_VOTER,))
    for stranger in (ReplicaKey(2, DIRECTORY), ReplicaKey(2), ReplicaKey(3, DIRECTORY)):
        with pytest.raises(KeyError):
            voters.without(stranger)


def test_cannot_remove_to_empty_voter_set() -> None:
    with pytest.raises(ValueError, match="the last voter"):
        VoterSet((OWN_VOTER,)).without(OWN_VOTER.key)


# Histories.


def history(*offsets: int) -> OffsetHistory[str]:
    values: OffsetHistory[str] = OffsetHistory()
    for offset in offsets:
        values.add(offset, f"of {offset}")
    return values


def test_the_newest_value() -> None:
    assert history(-1, 5, 9).last == (9, "of 9")
    assert history().last is None


@pytest.mark.parametrize(
    ("end", "values", "begins_before"),
    [
        (-1, ["of -1", "of 5", "of 9"], False),
        (0, ["of -1", "of 5", "of 9"], True),
        (5, ["of -1", "of 5", "of 9"], True),
        (6, ["of 5", "of 9"], True),
        (50, ["of 9"], True),
    ],
)
def test_the_values_since_an_offset(end: int, values: list[str], begins_before: bool) -> None:
    assert history(-1, 5, 9).since(end) == values
    assert history(-1, 5, 9).begins_before(end) is begins_before
    assert history().since(end) == []


@pytest.mark.parametrize("offset", [5, 4])
def test_values_come_in_order(offset: int) -> None:
    with pytest.raises(InvariantViolated, match="follows one at 5"):
        history(5).add(offset, "late")


@pytest.mark.parametrize(("end", "last"), [(9, 5), (10, 9), (5, -1), (-1, None)])
def test_truncation_brings_the_older_value_back(end: int, last: int | None) -> None:
    values = history(-1, 5, 9)
    values.truncate_from_end(end)
    assert (values.last[0] if values.last else None) == last


@pytest.mark.parametrize(
    ("start", "kept"), [(-1, 3), (4, 3), (5, 3), (6, 2), (8, 2), (9, 2), (10, 1), (50, 1)]
)
def test_values_that_are_no_longer_in_effect_are_forgotten(start: int, kept: int) -> None:
    values, all_values = history(-1, 5, 9), history(-1, 5, 9)
    values.truncate_from_start(start)
    assert len(values) == kept
    assert values.last == (9, "of 9")
    for each in (values, all_values):
        each.truncate_from_end(start)
    assert values.last == all_values.last


def test_the_voters_are_those_of_the_newest_record_and_static_ones_before() -> None:
    static = static_voters("CONTROLLER", {8: ("h", 1)})
    log = VoterSetHistory(static)
    assert (log.voters, log.voters_offset, log.kraft_version) == (static, None, 0)
    log.apply(-1, KRaftVersionRecord(kraft_version=1))
    log.apply(-1, VoterSet((OWN_VOTER,)).to_record())
    log.apply(0, LeaderChangeMessage(leader_id=1))
    assert (log.voters.ids, log.voters_offset, log.kraft_version) == ((1,), -1, 1)
    two = voter_set([OWN_VOTER, Voter(ReplicaKey(2, OTHER_DIRECTORY))])
    log.apply(7, two.to_record())
    assert log.voters == two
    assert log.possible_voters(7) == [VoterSet((OWN_VOTER,)), two]
    assert log.possible_voters(8) == [two]
    assert log.kraft_version == 1
    log.truncate_from_end(7)
    assert log.voters == VoterSet((OWN_VOTER,))
    log.truncate_from_end(-1)
    assert (log.voters, log.kraft_version) == (static, 0)
    assert log.possible_voters(0) == [static]


def test_a_snapshot_makes_older_voters_forgotten() -> None:
    log = VoterSetHistory()
    log.apply(3, VoterSet((OWN_VOTER,)).to_record())
    two = voter_set([OWN_VOTER, Voter(ReplicaKey(2, OTHER_DIRECTORY))])
    log.apply(7, two.to_record())
    assert log.possible_voters(3) == [VoterSet(), VoterSet((OWN_VOTER,)), two]
    assert log.possible_voters(4) == [VoterSet((OWN_VOTER,)), two]
    log.truncate_from_start(9)
    assert log.possible_voters(9) == [two]
    assert log.voters == two


# Majorities.


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(voters: int, needed: int) -> None:
    assert majority_of(voters) == needed


@pytest.mark.parametrize(
    ("ends", "committed"),
    [
        ([5], 5),
        ([None], None),
        ([5, None], None),
        ([5, 3], 3),
        ([5, None, 3], 3),
        ([None, None, 3], None),
        ([9, 5, 3], 5),
        ([9, 5, 3, 1], 3),
        ([9, 5, 3, 1, 0], 3),
        ([], None),
    ],
)
def test_what_a_majority_holds(ends: list[int | None], committed: int | None) -> None:
    assert committed_end(ends) == committed


@given(st.lists(st.none() | st.integers(0, 20), min_size=1, max_size=7))
def test_what_is_committed_is_on_a_majority_and_no_more_is(ends: list[int | None]) -> None:
    def holders(offset: int) -> int:
        return sum(end is not None and end >= offset for end in ends)

    committed = committed_end(ends)
    if committed is None:
        assert holders(0) < majority_of(len(ends))
    else:
        assert holders(committed) >= majority_of(len(ends)) > holders(committed + 1)


def test_an_election_is_won_by_a_majority_of_its_voters() -> None:
    tally = Tally(frozenset({1, 2, 3})).with_answer(1, granted=True)
    assert not tally.is_won
    assert not tally.with_answer(1, granted=True).is_won
    assert tally.with_answer(3, granted=True).is_won
    with pytest.raises(ValueError, match="node 4 is not a voter"):
        tally.with_answer(4, granted=True)


def test_a_candidate_is_rejected_by_a_majority_only() -> None:
    once = Tally(frozenset({1, 2, 3})).with_answer(1, granted=True).with_answer(2, granted=False)
    assert not once.is_rejected
    assert not once.with_unreachable(3).is_rejected, "lost, but nobody has won"
    assert once.with_answer(3, granted=False).is_rejected


def test_an_election_is_lost_when_those_who_have_not_answered_cannot_turn_it() -> None:
    tally = Tally(frozenset({1, 2, 3, 4})).with_answer(1, granted=True)
    assert tally.outstanding == {2, 3, 4}
    once = tally.with_answer(2, granted=False)
    assert not once.is_lost
    assert once.with_answer(3, granted=False).is_lost
    assert once.outstanding == {3, 4}
    assert not once.with_answer(2, granted=True).with_answer(3, granted=False).is_lost, (
        "the last answer counts"
    )


def test_the_latest_time_since_which_enough_nodes_were_in_contact() -> None:
    assert nth_latest_contact_ms([10, 30], 1) == 30
    assert nth_latest_contact_ms([10, 30, 20, 40], 2) == 30
    assert nth_latest_contact_ms([10], 1) == 10
    with pytest.raises(ValueError, match="number of needed nodes"):
        nth_latest_contact_ms([], 0)


# Roles.

TALLY = Tally(frozenset({1}))
CANDIDATE = ReplicaKey(2, OTHER_DIRECTORY)


def state(role: Role, epoch: int, *, leader: int | None = None, voted: ReplicaKey | None = None) -> RoleState:
    match role:
        case Role.UNATTACHED:
            return Unattached(epoch, 0, leader, voted)
        case Role.PROSPECTIVE:
            return Prospective(epoch, 0, TALLY, leader, (), voted)
        case Role.CANDIDATE:
            return Candidate(epoch, 0, TALLY, OWN_VOTER.key)
        case Role.LEADER:
            return Leader(epoch, 1, ENDPOINTS, Leadership(OWN_VOTER.key, 0, VoterSet((OWN_VOTER,)), 0))
        case Role.FOLLOWER:
            return Follower(epoch, 9, ENDPOINTS, 0, voted)
        case Role.RESIGNED:
            return Resigned(epoch, 1, ENDPOINTS, 0)


LEGAL = {
    ("Unattached", "Unattached", 0), ("Unattached", "Unattached", 1), ("Unattached", "Prospective", 0),
    ("Unattached", "Follower", 0), ("Unattached", "Follower", 1),
    ("Prospective", "Unattached", 0), ("Prospective", "Unattached", 1), ("Prospective", "Candidate", 1),
    ("Prospective", "Follower", 0), ("Prospective", "Follower", 1),
    ("Candidate", "Unattached", 1), ("Candidate", "Prospective", 0), ("Candidate", "Leader", 0),
    ("Candidate", "Follower", 0), ("Candidate", "Follower", 1),
    ("Leader", "Unattached", 1), ("Leader", "Follower", 1), ("Leader", "Resigned", 0),
    ("Follower", "Unattached", 1), ("Follower", "Prospective", 0), ("Follower", "Follower", 0),
    ("Follower", "Follower", 1),
    ("Resigned", "Unattached", 1), ("Resigned", "Prospective", 0), ("Resigned", "Follower", 1),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rise"), list(product(Role, Role, (-1, 0, 1))))
def test_the_table_of_transitions(old: Role, new: Role, rise: int) -> None:
    before, after = state(old, 5), state(new, 5 + rise)
    if (old.value, new.value, rise) in LEGAL:
        check_transition(before, after)
    else:
        with pytest.raises(IllegalTransition, match=f"{old.value} in epoch 5 to {new.value}"):
            check_transition(before, after)


def test_a_candidate_may_skip_epochs_but_not_stay_in_its_own() -> None:
    check_transition(state(Role.PROSPECTIVE, 5), state(Role.CANDIDATE, 1007))
    with pytest.raises(IllegalTransition, match="needs a higher epoch"):
        check_transition(state(Role.PROSPECTIVE, 5), state(Role.CANDIDATE, 5))


def test_every_role_is_in_the_table_and_votes_are_durable() -> None:
    assert set(TRANSITIONS) == set(Role)
    assert Role.PROSPECTIVE not in DURABLE
    assert {Role.UNATTACHED, Role.CANDIDATE, Role.LEADER, Role.FOLLOWER} == DURABLE


@pytest.mark.parametrize("role", Role)
def test_pre_votes(role: Role) -> None:
    """A leader grants none. The others grant one to a candidate whose log is up to date, but a follower only
    until its leader has answered it."""
    voter = state(role, 5)
    assert voter.grants_vote(CANDIDATE, is_up_to_date=True, is_pre_vote=True) is (role is not Role.LEADER)
    assert not voter.grants_vote(CANDIDATE, is_up_to_date=False, is_pre_vote=True)


@pytest.mark.parametrize(
    ("following", "granted"),
    [
        (Following(), True),
        (Following(has_fetched=True), False),
        (Following(has_fetched=True, leader_is_gone=True), True),
    ],
)
def test_a_follower_wants_a_successor_while_it_hears_no_leader(following: Following, granted: bool) -> None:
    voter = Follower(5, 9, ENDPOINTS, 0, None, following)
    assert voter.grants_vote(CANDIDATE, is_up_to_date=True, is_pre_vote=True) is granted


@pytest.mark.parametrize("role", Role)
def test_votes(role: Role) -> None:
    """Only a node without a vote and without a leader in the epoch grants a vote."""
    free = role in {Role.UNATTACHED, Role.PROSPECTIVE}
    voter = state(role, 5)
    assert voter.grants_vote(CANDIDATE, is_up_to_date=True, is_pre_vote=False) is free
    assert not voter.grants_vote(CANDIDATE, is_up_to_date=False, is_pre_vote=False)


@pytest.mark.parametrize("role", [Role.UNATTACHED, Role.PROSPECTIVE])
def test_a_vote_given_is_given_again_to_the_same_only(role: Role) -> None:
    voter = state(role, 5, voted=CANDIDATE)
    assert voter.grants_vote(CANDIDATE, is_up_to_date=True, is_pre_vote=False)
    assert not voter.grants_vote(CANDIDATE, is_up_to_date=False, is_pre_vote=False)
    assert not voter.grants_vote(ReplicaKey(3), is_up_to_date=True, is_pre_vote=False)
    assert not voter.grants_vote(ReplicaKey(2, DIRECTORY), is_up_to_date=True, is_pre_vote=False)
    led = state(role, 5, leader=9)
    assert not led.grants_vote(CANDIDATE, is_up_to_date=True, is_pre_vote=False)
