"""The small text files of a log folder, as pure functions between text and value."""

from __future__ import annotations

import msgspec

from kraft_wire.protocol.uuid import Uuid


class ElectionState(msgspec.Struct, frozen=True, gc=False):
    """What a node must remember of elections: ``quorum-state``.

    ``leader_id`` and ``voted_id`` are -1 when there is none. ``voted_directory_id`` is zero when the vote named no
    directory, which then matches any (and always in version 0 of the file, which has no room for it).
    """

    leader_id: int = -1
    leader_epoch: int = 0
    voted_id: int = -1
    voted_directory_id: Uuid = Uuid.ZERO

    @property
    def has_leader(self) -> bool:
        return self.leader_id >= 0

    @property
    def has_voted(self) -> bool:
        return self.voted_id >= 0
