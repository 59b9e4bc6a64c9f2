"""The owner: whatever breaks the node ends it, whoever brought the event."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio

from kraft_wire.controller.node.effects import FreeState, NodeEffect, ReadCommitted
from kraft_wire.controller.node.events import ApiRequest, Caller, StateLoaded
from kraft_wire.controller.node.node import Node, NodeEvent
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata import freeing
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import EncodeError
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import AppendBatch, HighWatermarkAdvanced, InstallSnapshot, TruncateLog
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Flushed, LogTruncated, Now, SnapshotVerified, Start
from kraft_wire.server.owner import NodeOwner, Tap
from kraft_wire.server.snapshot_process import SnapshotProcess
from kraft_wire.storage.store import Store

SNAPSHOT_FILES = "kraft_wire.server.ports.snapshot_files"
REQUEST = ApiRequest("token", 18, 0, ApiVersionsRequest(), Caller("CONTROLLER"))


def owner_of(
    node: object, tmp_path: Path, *taps: Tap, log: object = None, snapshots: object = None
) -> NodeOwner:
    """The owner of a scripted node and scripted files."""
    return NodeOwner(
        cast(Node, node),
        cast(Store, SimpleNamespace(snapshots=snapshots, log=log)),
        SnapshotProcess(tmp_path),
        taps,
        client_id="test",
        unreachable=lambda address, reason: None,
    )


class UntimedNode:
    """A node that doesn't care how long its steps take, and waits for no time."""

    def note_time(self, used_ms: float) -> None:
        """Do nothing."""

    def next_deadline_ms(self) -> int | None:
        return None


class BrokenNode(UntimedNode):
    """Starts, and breaks on the first request."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.seen: list[NodeEvent] = []

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        self.seen.append(event)
        if isinstance(event, ApiRequest):
            raise self._error
        return []


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
    owner = owner_of(node, tmp_path)
    with trio.fail_after(10), pytest.raises(ExceptionGroup) as ended:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner.run)
            await trio.testing.wait_all_tasks_blocked()
            _submit_twice(owner.submit, type(error))
    assert ended.group_contains(type(error))
    assert node.seen == [Start(), REQUEST]


async def test_nothing_is_fed_after_a_flush_that_could_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = SimpleNamespace(seen=[], next_deadline_ms=lambda: None, note_time=lambda used_ms: None)
    node.step = lambda event, now: node.seen.append(event) or []
    owner = owner_of(node, tmp_path)

    def refuse() -> None:
        raise RuntimeError("no thread")

    monkeypatch.setattr(owner.log, "flush_appended", refuse)
    with pytest.raises(RuntimeError, match="no thread"):
        owner.submit(REQUEST)
    owner.submit(REQUEST)
    assert node.seen == [REQUEST]


class InstallingNode(BrokenNode):
    """Installs every snapshot that is verified."""

    def __init__(self) -> None:
        super().__init__(AssertionError("no request was sent"))

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        super().step(event, now)
        return [InstallSnapshot(event.snapshot_id)] if isinstance(event, SnapshotVerified) else []


class InstalledSnapshots:
    """A store of snapshots that are all there; ``delete`` isn't asked for."""

    def open_reader(self, snapshot_id: SnapshotId) -> SimpleNamespace:
        return SimpleNamespace(id=snapshot_id, close=lambda: None)


async def test_how_the_load_of_a_snapshot_ends_says_nothing_once_another_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = SnapshotId(100, 3), SnapshotId(200, 3)
    may_fail, has_failed = threading.Event(), threading.Event()

    def read(snapshot: SimpleNamespace) -> MetadataState:
        if snapshot.id == older:
            may_fail.wait()
            has_failed.set()
            raise OSError(errno.EBADF, "Bad file descriptor")
        return MetadataState()

    monkeypatch.setattr(f"{SNAPSHOT_FILES}.read_state", read)
    monkeypatch.setattr(f"{SNAPSHOT_FILES}.IncomingSnapshot.install", lambda self, snapshot_id: None)
    node = InstallingNode()
    owner = owner_of(node, tmp_path, snapshots=InstalledSnapshots())
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner.run)
            await trio.testing.wait_all_tasks_blocked()
            for snapshot_id in (older, newer):
                owner._step(SnapshotVerified(snapshot_id, 1000, 0, ()))
                await trio.testing.wait_all_tasks_blocked()
            may_fail.set()
            await trio.to_thread.run_sync(has_failed.wait)
            while not any(isinstance(event, StateLoaded) for event in node.seen):
                await trio.sleep(0.001)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
    loaded = [event.snapshot_id for event in node.seen if isinstance(event, StateLoaded)]
    assert loaded == [newer]


class ReplacingNode(UntimedNode):
    """Stops using a state at the start."""

    def __init__(self, state: MetadataState) -> None:
        self._state = state

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        return [FreeState(self._state)] if isinstance(event, Start) else []


async def test_a_state_that_was_replaced_is_freed_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freeing, "ENTRIES_PER_PIECE", 1)
    state = MetadataState()
    for number in range(50):
        state.replay(TopicRecord(name=f"{number}", topic_id=Uuid(number.to_bytes(16, "big"))), number)
    owner = owner_of(ReplacingNode(state), tmp_path)
    seen: list[int] = []
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner.run)
            while len(state.topics) or not seen:
                seen.append(len(state.topics))
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(seen) > 40


class CommittedNode(UntimedNode):
    """Wants more of the log than there is."""

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        return [ReadCommitted(5, 9)] if isinstance(event, Start) else []


async def test_a_log_that_lacks_what_is_committed_is_named(tmp_path: Path) -> None:
    log = SimpleNamespace(read=lambda offset, end_offset, max_bytes: b"", end_offset=5)
    owner = owner_of(CommittedNode(), tmp_path, log=log)
    with trio.fail_after(10), pytest.raises(ExceptionGroup) as ended:
        await owner.run()
    assert ended.group_contains(InvariantViolated, match="the log has nothing at 5: it ends at 5")


class CuttingNode(UntimedNode):
    """Appends two batches, then cuts its log, then says that all is committed."""

    core = SimpleNamespace(log_generation=0)

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        if isinstance(event, Start):
            return [AppendBatch(b"a", 0, 0, 1), AppendBatch(b"b", 1, 1, 1), TruncateLog(1)]
        return [HighWatermarkAdvanced(1)] if isinstance(event, LogTruncated) else []


class RecordedLog:
    """A log that keeps what was done to it."""

    end_offset = size_bytes = 2

    def __init__(self) -> None:
        self.done: list[object] = []

    def append(self, batches: list[bytes]) -> None:
        self.done.append(batches)

    def truncate_to(self, end_offset: int) -> int:
        self.done.append(end_offset)
        self.end_offset = self.size_bytes = end_offset
        return end_offset

    def note_committed(self, offset: int) -> None:
        self.done.append(f"committed {offset}")

    def flush(self) -> int:
        return self.end_offset


class RecordedSteps:
    """A tap that keeps the steps, and how much was executed before it was told of each."""

    def __init__(self, log: RecordedLog) -> None:
        self._log = log
        self.steps: list[tuple[NodeEvent, int]] = []

    def stepped(self, event: NodeEvent, effects: Sequence[NodeEffect], now: Now) -> None:
        self.steps.append((event, len(self._log.done)))


async def test_taps_see_each_step_in_order_after_its_effects_are_executed(tmp_path: Path) -> None:
    log = RecordedLog()
    tap = RecordedSteps(log)
    owner = owner_of(CuttingNode(), tmp_path, tap, log=log)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner.run)
            while not any(isinstance(event, Flushed) for event, _ in tap.steps):
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
    assert log.done == [[b"a", b"b"], 1, "committed 1"]
    assert tap.steps == [(Start(), 2), (LogTruncated(1, 1), 3), (Flushed(1), 3)]
