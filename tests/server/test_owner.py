"""The owner: whatever breaks the node ends it, whoever brought the event."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio

from kraft_wire.controller.node import Node, NodeEffect, NodeEvent
from kraft_wire.controller.requests import ApiRequest, Peer
from kraft_wire.protocol.errors import EncodeError
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.raft.events import Now, Start
from kraft_wire.server.owner import NodeOwner
from kraft_wire.server.snapshot_process import SnapshotProcess
from kraft_wire.storage.store import Store

REQUEST = ApiRequest("token", 18, 0, ApiVersionsRequest(), Peer("CONTROLLER"))


class BrokenNode:
    """Starts, and breaks on the first request."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.seen: list[NodeEvent] = []

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        self.seen.append(event)
        if isinstance(event, ApiRequest):
            raise self._error
        return []

    def next_deadline_ms(self) -> int | None:
        return None


def _submit_twice(submit: Callable[[ApiRequest], None], error: type[Exception]) -> None:
    with pytest.raises(error):
        submit(REQUEST)
    submit(REQUEST)


@pytest.mark.parametrize(
    "error",
    [OSError(24, "too many open files"), EncodeError("X", "y", "is None")],
    ids=["OSError", "ProtocolError"],
)
async def test_an_error_ends_the_owner_although_its_submitter_swallows_it(
    error: Exception, tmp_path: Path
) -> None:
    node = BrokenNode(error)
    owner = NodeOwner(
        cast(Node, node),
        cast(Store, SimpleNamespace(snapshots=None, log=None)),
        SnapshotProcess(tmp_path),
        client_id="test",
    )
    with trio.fail_after(10), pytest.raises(ExceptionGroup) as ended:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner.run)
            await trio.testing.wait_all_tasks_blocked()
            _submit_twice(owner.submit, type(error))
    assert ended.group_contains(type(error))
    assert node.seen == [Start(), REQUEST]
