"""Hold elections in as many steps as they take."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.work import Piece, WorkKey
from kraft_wire.controller.partitions.partition_change import Election

if TYPE_CHECKING:
    from kraft_wire.controller.partitions.elections import Elections


class ElectionWork:
    """The work of ``Elections``."""

    def __init__(self, key: WorkKey, election: Election, *, arriving: Collection[int] = ()) -> None:
        self.key = key
        self._election = election
        self._arriving = arriving
        self._elections: Elections | None = None

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Hold the next elections."""
        if not len(state.metadata.partitions):
            return Piece((), is_last=True)
        if self._elections is None:
            from kraft_wire.controller.partitions.elections import Elections  # needs numpy

            self._elections = Elections(self._election, arriving=self._arriving)
        held = self._elections.next_slice(state)
        return Piece(held.records, held.is_complete)
