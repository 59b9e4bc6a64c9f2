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


class Tally(msgspec.Struct, frozen=True, gc=False):
    """An election as its candidate counts it."""

    voters: frozenset[int]
    granted: frozenset[int] = frozenset()

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= majority_of(len(self.voters))

    def with_grant(self, voter_id: int) -> Tally:
        """The tally after a voter granted its vote. Raises ValueError for a node without one."""
        if voter_id not in self.voters:
            raise ValueError(f"node {voter_id} does not vote")
        return Tally(self.voters, self.granted | {voter_id})
