"""Snapshots in files: one that is fetched while this node makes its own (ZEP-007, "Unresolved questions": how
to handle concurrent snapshots on followers)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from kraft_wire.controller.node.events import SnapshotFailed, StateLoaded
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text
from kraft_wire.metadata.canonical import canonical
from kraft_wire.raft.events import SnapshotVerified, SnapshotWritten
from kraft_wire.server.ports.background import Background
from kraft_wire.server.ports.snapshot_files import SnapshotFiles
from kraft_wire.server.snapshot_process import SnapshotProcess
from kraft_wire.storage.snapshots.state_loading import load_state
from kraft_wire.storage.store import Store
from tests.storage.test_snapshotter import JAVA_FOLDER, JAVA_SNAPSHOTS

NODE_ID = 1
PIECE_BYTES = 10_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A follower with Java's log, and no snapshot."""
    (tmp_path / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", NODE_ID)))
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()
    shutil.copy(JAVA_FOLDER / "00000000000000000000.log", partition)
    store = Store.open(tmp_path, node_id=NODE_ID, static_voter_ids=[1, 2, 3])
    store.write_election_state(ElectionState(2, store.log.epochs.latest_epoch or 0), kraft_version=0)
    return store


class Fed:
    """The events that the files gave to the node."""

    def __init__(self) -> None:
        self.events: list[NodeEvent] = []
        self._news = trio.Event()

    def take(self, event: NodeEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def wait_for(self, *kinds: type[object]) -> NodeEvent:
        with trio.fail_after(60):
            while True:
                for event in self.events:
                    if isinstance(event, kinds):
                        return event
                self._news = trio.Event()
                await self._news.wait()


@pytest.mark.parametrize("own_is_first", [True, False], ids=["own snapshot begun first", "installed first"])
async def test_a_snapshot_is_installed_while_the_node_makes_one(store: Store, *, own_is_first: bool) -> None:
    """The installed one is newer, and counts; whether the own one is completed doesn't matter."""
    own, *_, newest = JAVA_SNAPSHOTS
    fed, background = Fed(), Background()
    process = SnapshotProcess(store.folder.partition_path)
    files = SnapshotFiles(store, process, fed.take, background, lambda: None)
    data = JAVA_SNAPSHOTS[newest].read_bytes()
    async with trio.open_nursery() as nursery:
        background.open(nursery)
        for position in range(0, len(data), PIECE_BYTES):
            files.append_bytes(newest, position, data[position : position + PIECE_BYTES])
        files.verify(newest)
        await fed.wait_for(SnapshotVerified)
        if own_is_first:
            files.write(own, is_urgent=False)
            await trio.lowlevel.checkpoint()
            files.install(newest)
        else:
            files.install(newest)
            files.write(own, is_urgent=False)
        loaded = await fed.wait_for(StateLoaded)
        await fed.wait_for(SnapshotWritten, SnapshotFailed)
    assert isinstance(loaded, StateLoaded)
    assert loaded.snapshot_id == newest
    assert store.snapshots.latest == newest
    assert (store.log.start_offset, store.log.end_offset) == (newest.end_offset, newest.end_offset)
    store.close()
    again = Store.open(store.folder.path, node_id=NODE_ID, static_voter_ids=[1, 2, 3])
    assert again.snapshots.latest == newest
    state = load_state(again.snapshots, newest)
    assert canonical(state, offsets=False) == canonical(loaded.metadata, offsets=False)
    again.close()
