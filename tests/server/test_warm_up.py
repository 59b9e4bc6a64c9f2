"""What is imported in the background, and when."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Never

import pytest
import trio

from kraft_wire.controller.decision.api_table import AnsweredBy, AnyHandler, Api, ApiTable
from kraft_wire.controller.node.effects import Activated
from kraft_wire.raft.effects import RoleChanged
from kraft_wire.raft.roles import Role
from kraft_wire.server import warm_up
from tests.server.test_owner import owner_of


def _unused(*arguments: object) -> Never:
    raise AssertionError("it is loaded, not called")


async def test_handlers_are_imported_when_the_node_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "AFTER_SECONDS", 0)
    loaded: list[float] = []

    def load() -> AnyHandler:
        loaded.append(sys.getswitchinterval())
        return _unused

    apis = ApiTable([Api("CreateTopics", 2, 7, AnsweredBy.ACTIVE_CONTROLLER, load)])
    settled, usual = trio.Event(), sys.getswitchinterval()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warm_up.warm_up, settled, apis)
        await trio.testing.wait_all_tasks_blocked()
        assert loaded == []
        settled.set()
    gc.unfreeze()
    assert loaded == [pytest.approx(warm_up.SWITCH_SECONDS)]
    assert sys.getswitchinterval() == usual


async def test_full_garbage_collections_leave_out_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "AFTER_SECONDS", 0)
    settled = trio.Event()
    settled.set()
    gc.unfreeze()
    try:
        await warm_up.warm_up(settled, ApiTable([]))
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    ("notice", "is_settled"),
    [
        (RoleChanged(Role.FOLLOWER, 3, 2), True),
        (Activated(3, 0), True),
        (RoleChanged(Role.CANDIDATE, 3, None), False),
    ],
    ids=["follows", "is active", "stands"],
)
async def test_a_node_has_settled_when_it_follows_or_is_active(
    notice: RoleChanged | Activated, is_settled: bool, tmp_path: Path
) -> None:
    owner = owner_of(SimpleNamespace(core=SimpleNamespace(other_voters=[])), tmp_path)
    owner.notice(notice)
    assert owner.settled.is_set() is is_settled
