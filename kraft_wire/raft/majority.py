"""The arithmetic of majorities, by itself."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


def majority_of(voter_count: int) -> int:
    """How many voters are more than half of them."""
    return voter_count // 2 + 1


def committed_end(end_offsets: Sequence[int | None]) -> int | None:
    """The offset below which a majority of the voters holds everything, by what is known of each voter's log.

    None where too few are known.
    """
    known = sorted((end for end in end_offsets if end is not None), reverse=True)
    needed = majority_of(len(end_offsets))
    return known[needed - 1] if len(known) >= needed else None


def contact_of_enough_ms(last_contacts_ms: Sequence[int], needed: int) -> int:
    """The latest time by which so many were in contact. Raises ValueError where nobody is needed."""
    if not needed:
        raise ValueError("nobody is always in contact")
    return sorted(last_contacts_ms, reverse=True)[needed - 1]


class Tally(msgspec.Struct, frozen=True, gc=False):
    """An election as its candidate counts it. Who is ``unreachable`` may still answer, when asked again."""

    voters: frozenset[int]
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    unreachable: frozenset[int] = frozenset()

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= majority_of(len(self.voters))

    @property
    def is_lost(self) -> bool:
        """Whether somebody is against it, and those who could still be for it are too few. That nobody is
        there is no reason to stop asking."""
        against = len(self.rejected | self.unreachable)
        return bool(self.rejected) and len(self.voters) - against < majority_of(len(self.voters))

    @property
    def outstanding(self) -> frozenset[int]:
        """Those who haven't answered."""
        return self.voters - self.granted - self.rejected

    def with_answer(self, voter_id: int, *, granted: bool) -> Tally:
        """The tally after a voter answered; its last answer counts. Raises ValueError for a node without a
        vote."""
        if voter_id not in self.voters:
            raise ValueError(f"node {voter_id} does not vote")
        voter = frozenset((voter_id,))
        yes, no = (voter, frozenset[int]()) if granted else (frozenset[int](), voter)
        return Tally(
            self.voters, (self.granted - voter) | yes, (self.rejected - voter) | no, self.unreachable - voter
        )

    def without(self, voter_id: int) -> Tally:
        """The tally after a voter couldn't be reached."""
        return msgspec.structs.replace(self, unreachable=self.unreachable | {voter_id})
