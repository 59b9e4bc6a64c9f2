"""Compute majorities."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


def majority_of(voter_count: int) -> int:
    """Return the smallest number of voters that is more than half of them."""
    return voter_count // 2 + 1


def committed_end(end_offsets: Sequence[int | None]) -> int | None:
    """Return the offset below which a majority of the voters holds all records, from the known ends of their
    logs.

    None if too few ends are known.
    """
    known = sorted((end for end in end_offsets if end is not None), reverse=True)
    needed = majority_of(len(end_offsets))
    return known[needed - 1] if len(known) >= needed else None


def nth_latest_contact_ms(last_contacts_ms: Sequence[int], needed: int) -> int:
    """Return the latest time since which ``needed`` nodes were in contact. Raises ValueError if ``needed`` is
    0."""
    if not needed:
        raise ValueError("the number of needed nodes is 0")
    return sorted(last_contacts_ms, reverse=True)[needed - 1]


class Tally(msgspec.Struct, frozen=True, gc=False):
    """The votes of an election as its candidate counts them.

    A voter that is ``unreachable`` may still answer when it is asked again.
    """

    voters: frozenset[int]
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    unreachable: frozenset[int] = frozenset()

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= majority_of(len(self.voters))

    @property
    def is_lost(self) -> bool:
        """Whether a voter has rejected the candidate, and the voters that could still grant their vote are
        too few.

        If no voter has rejected it and many are only unreachable, the candidate keeps asking.
        """
        return bool(self.rejected) and self.is_out_of_reach

    @property
    def is_out_of_reach(self) -> bool:
        """Whether the voters that could still grant their vote, without those that weren't reached, are too
        few."""
        against = len(self.rejected | self.unreachable)
        return len(self.voters) - against < majority_of(len(self.voters))

    @property
    def is_rejected(self) -> bool:
        """Whether a majority has rejected the candidate: probably it has elected another one."""
        return len(self.rejected) >= majority_of(len(self.voters))

    @property
    def outstanding(self) -> frozenset[int]:
        """The voters that haven't answered."""
        return self.voters - self.granted - self.rejected

    def with_answer(self, voter_id: int, *, granted: bool) -> Tally:
        """Return the tally after a voter's answer, which replaces an earlier one. Raises ValueError for a
        node that isn't a voter."""
        if voter_id not in self.voters:
            raise ValueError(f"node {voter_id} is not a voter")
        voter = frozenset((voter_id,))
        yes, no = (voter, frozenset[int]()) if granted else (frozenset[int](), voter)
        return Tally(
            self.voters, (self.granted - voter) | yes, (self.rejected - voter) | no, self.unreachable - voter
        )

    def with_unreachable(self, voter_id: int) -> Tally:
        """Return the tally after a voter couldn't be reached."""
        return msgspec.structs.replace(self, unreachable=self.unreachable | {voter_id})
