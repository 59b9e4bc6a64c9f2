"""A leader's voters change while it leads: who counts, and from when on (KIP-853)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.events import Now
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.majority import majority_of
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, VoterSet, voter_set
from tests.raft.lone_node import DIRECTORY, OTHER_DIRECTORY

KEYS = [ReplicaKey(node_id, DIRECTORY) for node_id in range(1, 6)]
LEADER = KEYS[0]


def _set(*keys: ReplicaKey) -> VoterSet:
    return voter_set(Voter(key) for key in keys)


def _leadership(*keys: ReplicaKey) -> Leadership:
    return Leadership(LEADER, 10, _set(*keys), now_ms=0)


def _fetch(leadership: Leadership, key: ReplicaKey, offset: int, at_ms: int = 0) -> bool:
    return leadership.note_fetch(key, offset, 100, Now(at_ms, at_ms))


def test_an_observer_keeps_its_progress_when_it_becomes_a_voter() -> None:
    leadership = _leadership(*KEYS[:1])
    _fetch(leadership, KEYS[1], 40, at_ms=7)
    leadership.adopt(_set(*KEYS[:2]), now_ms=9)
    assert leadership.voters[2].end_offset == 40
    assert leadership.voters[2].last_contact_ms == 7
    assert not leadership.observers


def test_a_new_voter_inherits_nothing_from_an_observer_without_a_directory_id() -> None:
    """Anybody may be that observer. What it has isn't on the new voter's disk."""
    leadership = _leadership(*KEYS[:2])
    leadership.note_flush(50)
    _fetch(leadership, ReplicaKey(3), 50)
    _fetch(leadership, KEYS[2], 30)
    leadership.adopt(_set(*KEYS[:3]), now_ms=0)
    assert leadership.voters[3].end_offset == 30
    assert ReplicaKey(3) in leadership.observers


def test_a_voter_that_is_removed_is_an_observer_that_does_not_count() -> None:
    leadership = _leadership(*KEYS[:3])
    leadership.note_flush(50)
    _fetch(leadership, KEYS[2], 40)
    assert leadership.high_watermark == 40
    leadership.adopt(_set(*KEYS[:2]), now_ms=0)
    assert not leadership.is_voter(KEYS[2])
    assert leadership.observers[KEYS[2]].end_offset == 40
    assert not _fetch(leadership, KEYS[2], 50)
    assert _fetch(leadership, KEYS[1], 45)
    assert leadership.high_watermark == 45


def test_another_disk_of_the_same_node_starts_with_no_progress() -> None:
    leadership = _leadership(*KEYS[:3])
    _fetch(leadership, KEYS[2], 40)
    leadership.adopt(_set(*KEYS[:2], ReplicaKey(3, OTHER_DIRECTORY)), now_ms=5)
    assert leadership.voters[3].end_offset is None
    assert leadership.voters[3].last_contact_ms == 5
    assert leadership.observers[KEYS[2]].end_offset == 40


def test_a_static_voter_keeps_its_progress_when_its_directory_id_is_learned() -> None:
    leadership = _leadership(*(ReplicaKey(key.id) for key in KEYS[:3]))
    _fetch(leadership, KEYS[1], 40)
    leadership.adopt(_set(*KEYS[:3]), now_ms=0)
    assert leadership.voters[2].key == KEYS[1]
    assert leadership.voters[2].end_offset == 40
    assert leadership.own.key == LEADER


def test_a_new_voter_is_told_who_leads_at_once() -> None:
    leadership = _leadership(*KEYS[:2])
    leadership.begin_epoch_due_ms[2] = 1000
    leadership.adopt(_set(*KEYS[:3]), now_ms=30)
    assert leadership.begin_epoch_due_ms == {2: 1000, 3: 30}
    leadership.adopt(_set(LEADER, KEYS[2]), now_ms=40)
    assert leadership.begin_epoch_due_ms == {3: 30}


def test_a_leader_that_is_removed_leads_from_outside() -> None:
    leadership = _leadership(*KEYS[:3])
    leadership.note_flush(50)
    leadership.adopt(_set(*KEYS[1:3]), now_ms=0)
    assert leadership.leads_from_outside
    assert LEADER not in leadership.observers, "its progress is its own log's, not that of Fetches"
    assert not _fetch(leadership, KEYS[1], 50), "two of the two voters are needed"
    assert _fetch(leadership, KEYS[2], 50)
    assert leadership.majority_contact_ms() == 0
    assert {key.id for key in leadership.successors()} == {2, 3}


def test_a_voter_with_the_leaders_id_and_another_directory_is_not_the_leader() -> None:
    leadership = _leadership(ReplicaKey(LEADER.id, OTHER_DIRECTORY), KEYS[1])
    assert leadership.leads_from_outside
    assert not leadership.note_flush(50)
    assert not _fetch(leadership, KEYS[1], 50)


def test_the_majority_is_counted_anew_when_fewer_voters_are_left() -> None:
    """The next flush commits what the smaller set holds: that of the record of the change, at the latest."""
    leadership = _leadership(*KEYS[:2])
    leadership.note_flush(50)
    assert leadership.high_watermark is None
    leadership.adopt(_set(LEADER), now_ms=0)
    assert leadership.majority_contact_ms() is None
    assert leadership.note_flush(51)
    assert leadership.high_watermark == 51


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("adopt"), st.sets(st.sampled_from(KEYS), min_size=1), st.just(0)),
        st.tuples(st.just("fetch"), st.sets(st.sampled_from(KEYS[1:]), min_size=1), st.integers(0, 30)),
        st.tuples(st.just("flush"), st.just(set()), st.integers(0, 30)),
    )
)


@given(STEPS)
def test_whatever_changes_a_majority_of_the_voters_of_then_has_what_is_committed(
    steps: list[tuple[str, set[ReplicaKey], int]],
) -> None:
    """A model that knows each replica's last offset, and the highest end that a majority ever had."""
    leadership, voters = _leadership(*KEYS[:3]), set(KEYS[:3])
    tracked = set(voters)
    ends: dict[ReplicaKey, int] = {}
    committed = None
    for kind, keys, offset in steps:
        if kind == "adopt":
            voters = set(keys)
            tracked |= voters
            leadership.adopt(_set(*voters), now_ms=0)
        else:
            for key in keys or {LEADER}:
                tracked.add(key)
                ends[key] = offset
                leadership.note_flush(offset) if key == LEADER else _fetch(leadership, key, offset)
                if key in voters | {LEADER}:
                    committed = _highest(committed, [ends.get(voter, 0) for voter in voters])
        assert leadership.high_watermark == committed
        assert {key.id for key in voters} == set(leadership.voters)
        assert set(leadership.observers) == tracked - voters - {LEADER}
        assert leadership.leads_from_outside == (LEADER not in voters)


def _highest(committed: int | None, ends: list[int]) -> int | None:
    of_majority = sorted(ends, reverse=True)[majority_of(len(ends)) - 1]
    if of_majority <= 10:
        return committed
    return of_majority if committed is None else max(committed, of_majority)


def test_an_unknown_directory_of_a_fetch_is_another_replica() -> None:
    leadership = _leadership(*KEYS[:2])
    _fetch(leadership, ReplicaKey(2, Uuid.ZERO), 40)
    leadership.adopt(_set(*KEYS[:2]), now_ms=0)
    assert leadership.voters[2].end_offset is None
    assert set(leadership.observers) == {ReplicaKey(2)}
