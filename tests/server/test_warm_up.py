"""What is imported in the background, and when."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Never

import pytest
import trio

import kraft_wire
from kraft_wire.controller.node.effects import Activated
from kraft_wire.raft.effects import RoleChanged
from kraft_wire.raft.roles import Role
from kraft_wire.server import warm_up
from tests.server.test_owner import owner_of


async def test_handlers_are_imported_when_the_node_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "AFTER_SECONDS", 0)
    loaded: list[float] = []

    def walk(*arguments: object) -> list[Never]:
        loaded.append(sys.getswitchinterval())
        return []

    monkeypatch.setattr(warm_up, "walk_packages", walk)
    settled, usual = trio.Event(), sys.getswitchinterval()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warm_up.warm_up, settled)
        await trio.testing.wait_all_tasks_blocked()
        assert loaded == []
        settled.set()
    gc.unfreeze()
    assert loaded == [pytest.approx(warm_up.SWITCH_SECONDS)] * 2  # the controller and the metadata
    assert sys.getswitchinterval() == usual


def test_no_decision_has_to_import_a_module_later() -> None:
    program = """
import sys
from kraft_wire.server import warm_up
warm_up._import_handlers()
print(*sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(run.stdout.split())
    folder = Path(kraft_wire.__file__).parent
    for package in ("controller", "metadata"):
        for file in (folder / package).rglob("*.py"):
            module = ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
            assert module in imported


async def test_full_garbage_collections_leave_out_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "AFTER_SECONDS", 0)
    settled = trio.Event()
    settled.set()
    gc.unfreeze()
    try:
        await warm_up.warm_up(settled)
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
    core = SimpleNamespace(other_voters=[], known_peers=[], leader_peer=None)
    owner = owner_of(SimpleNamespace(core=core), tmp_path)
    owner.notice(notice)
    assert owner.settled.is_set() is is_settled
