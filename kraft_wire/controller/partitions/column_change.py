"""Decide for many partitions at once, in columns, what ``partition_change`` decides for one.

The replicas of these partitions stay as they are. Without the feature of ELRs (KIP-966) no partition here has
an ELR, and the last known leaders stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.column_rules import (
    fit_columns,
    may_be_unclean,
    min_isrs,
    online_replicas,
)
from kraft_wire.controller.partitions.partition_change import NO_RECOVERY_CHANGE, Election
from kraft_wire.metadata.features.metadata_version import leader_epoch_bump_on_isr_shrink
from kraft_wire.metadata.partitions.cells import PAD, any_in_row, are_in, count_members
from kraft_wire.metadata.partitions.columns import Changes
from kraft_wire.metadata.partitions.elr_columns import LAST_KNOWN_UNCHANGED, ElrChanges
from kraft_wire.metadata.partitions.partition import NO_LEADER, NO_LEADER_CHANGE, RECOVERING

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Int32s, Mask, Rows

_NOBODY: Final = PAD


class _Case(msgspec.Struct, frozen=True):
    """Partitions before the change, the ISRs that they are to have, and the ELRs that go with these.

    ``online`` says which replicas are online.
    """

    replicas: Int32s
    leader: Int32s
    isr: Int32s
    elr: Int32s
    last_known: Int32s
    online: Mask
    wanted_isr: Int32s
    wanted_elr: Int32s

    def part(self, rows: Rows) -> _Case:
        """Return some of the partitions."""
        return _Case(*[column[rows] for column in msgspec.structs.astuple(self)])


class _Elected(msgspec.Struct, frozen=True):
    """The leaders after the change, and which of them lead now and didn't before.

    Of these, ``unclean`` ones may lack records, and those ``from_elr`` were eligible without being in sync.
    """

    leader: Int32s
    is_new: Mask
    unclean: Mask
    from_elr: Mask


def column_changes(
    view: ClusterView, rows: Rows, wanted_isr: Int32s, election: Election, *, forgetful: int = _NOBODY
) -> tuple[Mask, Changes]:
    """Return which rows columns can decide, and the changes of all rows, if they are to have these ISRs.

    The broker ``forgetful`` may have lost records, and can't be in an ELR. A change of neither leader, ISR
    nor ELR is none.
    """
    columns = view.state.metadata.partitions.columns
    isr, elr = columns.isr[rows], columns.elrs.of(rows)
    online, is_known = online_replicas(view, rows)
    usual = fit_columns(view, rows, elr.members) & is_known
    min_isr = min_isrs(view, rows) if view.elr_enabled else np.zeros(len(rows), np.int32)
    case = _Case(
        columns.replicas[rows],
        columns.leader[rows],
        isr,
        elr.members,
        elr.last_known,
        online,
        wanted_isr,
        _wanted_elr(elr.members, isr, wanted_isr, min_isr, forgetful),
    )
    elected = _elect(view, rows, case, election)
    leader, new_isr, isr_given = _leaders_and_isrs(view, case, elected)
    recovers = elected.unclean & (columns.recovery_state[rows] != RECOVERING)
    return usual, Changes(
        leader,
        np.where(recovers, RECOVERING, NO_RECOVERY_CHANGE).astype(np.int8),
        new_isr,
        isr_given,
        _elr_changes(case, elected, min_isr, leader) if view.elr_enabled else None,
    )


def without(lists: Int32s, broker_ids: Int32s) -> Int32s:
    """Return lists without a broker that each has at most once. ``broker_ids`` has one for each list, in a
    column."""
    after = np.cumsum(lists == broker_ids, axis=1) > 0
    shifted = np.concatenate([lists[:, 1:], np.full((len(lists), 1), PAD, np.int32)], axis=1)
    return np.where(after, shifted, lists)


def _wanted_elr(elr: Int32s, isr: Int32s, wanted_isr: Int32s, min_isr: Int32s, forgetful: int) -> Int32s:
    """Return the ELRs, sorted. They are empty unless the ISR gets below min.insync.replicas; then those who
    leave it join."""
    small = np.flatnonzero(count_members(wanted_isr) < min_isr)
    candidates = np.concatenate([elr[small], isr[small]], axis=1)
    gone = are_in(candidates, wanted_isr[small]) | (candidates == forgetful)
    sets = _sets(np.where(gone, np.int32(PAD), candidates))
    wanted = np.full((len(isr), sets.shape[1]), PAD, np.int32)
    wanted[small] = sets
    return wanted


def _elect(view: ClusterView, rows: Rows, case: _Case, election: Election) -> _Elected:
    """Return the leaders: the present one if it can lead, else the first replica that can, else none. If the
    election is PREFERRED, the first replica comes before the present leader.

    A replica can lead if it is in the ISR, or in the ELR if the ISR is empty, and is online.
    """
    replicas, leader = case.replicas, case.leader
    nobody_in_sync = case.wanted_isr[:, :1] == PAD
    eligible = are_in(replicas, case.wanted_isr) | (nobody_in_sync & are_in(replicas, case.wanted_elr))
    can_lead = eligible & case.online
    stays = any_in_row(can_lead & (replicas == leader[:, None]))
    if election is Election.PREFERRED:
        stays &= ~can_lead[:, 0]
    elected = np.where(stays, leader, _first(replicas, can_lead))
    unclean = np.zeros(len(rows), np.bool_)
    unled = np.flatnonzero(elected == NO_LEADER)
    if len(unled):
        elected[unled] = _elect_uncleanly(view, rows[unled], case.part(unled), election)
        unclean[unled] = elected[unled] != NO_LEADER
    is_new = elected != leader
    from_elr = (elected != NO_LEADER) & any_in_row(case.wanted_elr == elected[:, None])
    return _Elected(elected, is_new, unclean & is_new, from_elr & is_new)


def _elect_uncleanly(view: ClusterView, rows: Rows, case: _Case, election: Election) -> Int32s:
    """Return the leaders of partitions that nobody can lead: the last known leader if no replica is in sync
    or eligible, else the first one that is online if the election may be unclean."""
    elected = np.full(len(rows), NO_LEADER, np.int32)
    if view.elr_enabled:
        last_known = any_in_row(case.online & (case.replicas == case.last_known[:, None]))
        last_known &= (case.wanted_isr[:, 0] == PAD) & (case.wanted_elr == PAD).all(axis=1)
        elected[last_known] = case.last_known[last_known]
    possible = np.flatnonzero((elected == NO_LEADER) & any_in_row(case.online))
    if len(possible):
        first = _first(case.replicas[possible], case.online[possible])
        allowed = may_be_unclean(view, rows[possible], election)
        elected[possible] = np.where(allowed, first, np.int32(NO_LEADER))
    return elected


def _leaders_and_isrs(view: ClusterView, case: _Case, elected: _Elected) -> tuple[Int32s, Int32s, Mask]:
    """Return the leaders and the ISRs to record, and which ISRs are recorded."""
    alone = elected.from_elr | elected.unclean
    isr = np.where(alone[:, None], _only(elected.leader, case.isr.shape[1]), case.wanted_isr)
    isr_given: Mask = any_in_row(isr != case.isr) | elected.unclean
    if not view.elr_enabled:
        isr_given &= isr[:, 0] != PAD  # the ISR keeps its last member
    leader = np.where(elected.is_new, elected.leader, np.int32(NO_LEADER_CHANGE))
    if leader_epoch_bump_on_isr_shrink(view.metadata_version):
        leader = np.where(~elected.is_new & isr_given, case.leader, leader)
    return leader, isr, isr_given


def _elr_changes(case: _Case, elected: _Elected, min_isr: Int32s, leader: Int32s) -> ElrChanges:
    """Return the changes of ELRs and last known leaders. ``leader`` is the one that is recorded.

    A leader from the ELR with a min.insync.replicas of 1 commits records without the others, so they lose
    eligibility.
    """
    elr = case.wanted_elr
    if elected.from_elr.any():
        left = without(elr, np.where(elected.from_elr, elected.leader, np.int32(PAD))[:, None])
        elr = np.where(elected.from_elr[:, None], left, elr)
    elr = np.where((elected.unclean | (elected.from_elr & (min_isr <= 1)))[:, None], np.int32(PAD), elr)
    before = _sets(case.elr)
    width = max(elr.shape[1], before.shape[1])
    given: Mask = any_in_row(_widened(elr, width) != _widened(before, width))
    lost = (leader == NO_LEADER) & (case.leader != NO_LEADER) & (case.last_known == NO_LEADER)
    found = (leader >= 0) & (case.last_known != NO_LEADER)
    last_known = np.full(len(leader), LAST_KNOWN_UNCHANGED, np.int32)
    last_known[lost] = case.leader[lost]
    last_known[found] = NO_LEADER
    return ElrChanges(elr, given, last_known)


def _first(replicas: Int32s, wanted: Mask) -> Int32s:
    """Return the first wanted replica of each row; NO_LEADER without one."""
    first = replicas[np.arange(len(replicas)), wanted.argmax(axis=1)]
    found: Int32s = np.where(any_in_row(wanted), first, np.int32(NO_LEADER))
    return found


def _only(broker_ids: Int32s, width: int) -> Int32s:
    """Return lists of one member each; empty for NO_LEADER."""
    return _widened(broker_ids[:, None], width)


def _widened(lists: Int32s, width: int) -> Int32s:
    wide = np.full((len(lists), width), PAD, np.int32)
    wide[:, : lists.shape[1]] = lists
    return wide


def _sets(lists: Int32s) -> Int32s:
    """Return the lists in ascending order, without duplicates, and no wider than the longest."""
    numbers = np.ascontiguousarray(lists).view(np.uint32)  # PAD comes last
    numbers = np.sort(numbers, axis=1)
    same = numbers[:, 1:] == numbers[:, :-1]
    numbers[:, 1:][same] = np.uint32(0xFFFFFFFF)
    numbers.sort(axis=1)
    sets = numbers.view(np.int32)
    return sets[:, : max(1, int(count_members(sets).max(initial=0)))]
