"""If the leader changes while a snapshot is fetched, bytes of two leaders are not mixed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import pytest

from kraft_wire.client.errors import SnapshotGone
from kraft_wire.client.live_snapshot import snapshot_batches
from kraft_wire.client.questions import SnapshotAnswer
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.wire.address import Address
from tests.support.metadata_logs import topic

ID = SnapshotId(40, 3)
LONG, SHORT = (b"".join(encode_snapshot(ID, [], [topic(n) for n in range(count)], 7, 7)) for count in (40, 2))
PIECE_BYTES = len(SHORT) + 10
"""More than the short file has."""


class _Leaders:
    """A quorum whose leader changes: each request goes to the next of ``order``. None: no file."""

    def __init__(self, files: Sequence[bytes | None], order: Sequence[int]) -> None:
        self._files = files
        self._order = list(order)
        self.answered_by = Address("nobody", 0)

    def fetch_snapshot(
        self, snapshot_id: SnapshotId, position: int, max_bytes: int, *, final: Collection[ErrorCode] = ()
    ) -> SnapshotAnswer:
        leader = self._order.pop(0) if len(self._order) > 1 else self._order[0]
        self.answered_by = Address("leader", leader)
        file = self._files[leader]
        if file is None:
            return SnapshotAnswer(ErrorCode.SNAPSHOT_NOT_FOUND)
        if position >= len(file):
            return SnapshotAnswer(ErrorCode.POSITION_OUT_OF_RANGE)
        data = file[position : position + max_bytes]
        return SnapshotAnswer(ErrorCode.NONE, size_bytes=len(file), position=position, data=data)


def _fetched(files: Sequence[bytes | None], *order: int) -> bytes:
    leaders = cast(QuorumClient, _Leaders(files, order))
    return b"".join(snapshot_batches(leaders, ID, PIECE_BYTES))


@pytest.mark.parametrize(
    ("order", "last"),
    [((0,), 0), ((1,), 1), ((0, 1), 1), ((0, 0, 1), 1), ((0, 1, 0), 0), ((0, 0, 1, 1, 0), 1)],
)
def test_the_next_leaders_file_is_fetched_from_its_beginning(order: tuple[int, ...], last: int) -> None:
    assert _fetched([LONG, SHORT], *order) == [LONG, SHORT][last]


def test_a_leader_without_the_snapshot_is_an_error_that_names_it() -> None:
    with pytest.raises(SnapshotGone, match="leader:1 has no snapshot 40-3: start"):
        _fetched([LONG, None], 0, 1)
