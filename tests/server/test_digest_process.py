"""The forked child that makes a digest: of the state as it was, and without a trace when it has ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from kraft_wire.metadata.digest import Digester, digest_of
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.server import digest_process
from kraft_wire.server.digest_process import DigestProcessFailed, digest_from, fork_digest

BROKER = 4


def state_of(values: int) -> MetadataState:
    """Return a state with as many configurations."""
    state = MetadataState()
    state.replay(FeatureLevelRecord("metadata.version", 33), 0)
    add(state, range(1, values + 1))
    return state


def add(state: MetadataState, offsets: range) -> None:
    for offset in offsets:
        state.replay(ConfigRecord(BROKER, "1", f"key{offset}", "value"), offset)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_the_child_makes_the_same_digest() -> None:
    state = state_of(3_000)
    assert await digest_from(fork_digest(state, 3_001)) == digest_of(state)


async def test_what_changes_after_the_fork_is_not_in_it() -> None:
    state = state_of(10)
    expected = digest_of(state)
    child = fork_digest(state, 11)
    add(state, range(11, 20))
    assert await digest_from(child) == expected != digest_of(state)


async def test_the_child_undoes_what_comes_after_the_offset_and_the_parent_keeps_it() -> None:
    state = state_of(10)
    state.journal.recording = True
    add(state, range(11, 20))
    before = digest_of(state)
    assert await digest_from(fork_digest(state, 11)) == digest_of(state_of(10))
    assert digest_of(state) == before


async def test_the_child_has_ended_when_its_digest_is_there() -> None:
    child = fork_digest(state_of(10), 11)
    await digest_from(child)
    assert not is_running(child.pid)


async def test_an_error_of_the_child_comes_with_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(digester: Digester, state: MetadataState) -> Iterator[None]:
        raise ValueError("no such luck")

    monkeypatch.setattr(Digester, "slices", broken)
    with pytest.raises(DigestProcessFailed, match=r"ValueError: no such luck"):
        await digest_from(fork_digest(state_of(10), 11))


async def test_a_child_that_can_not_leave_the_parent_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(increment: int) -> int:
        raise PermissionError("not nice")

    monkeypatch.setattr(os, "nice", refuse)
    with pytest.raises(DigestProcessFailed, match="not nice"):
        await digest_from(fork_digest(state_of(10), 11))


async def test_a_child_that_is_killed_made_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Digester, "slices", hang)
    child = fork_digest(state_of(10), 11)
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(DigestProcessFailed, match="was killed"):
        await digest_from(child)


async def test_a_child_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Digester, "slices", hang)
    monkeypatch.setattr(digest_process, "LIMIT_S", 0.05)
    child = fork_digest(state_of(10), 11)
    with pytest.raises(DigestProcessFailed, match="took more than"):
        await digest_from(child)
    assert not is_running(child.pid)


async def test_a_child_nobody_waits_for_any_more_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Digester, "slices", hang)
    child = fork_digest(state_of(10), 11)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(digest_from, child)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert not is_running(child.pid)


async def test_the_child_holds_no_file_of_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that it held would stay open when the parent closes it."""
    monkeypatch.setattr(Digester, "slices", hang)
    readable, writable = os.pipe()
    child = fork_digest(state_of(10), 11)
    os.close(writable)
    with trio.fail_after(10):
        async with trio.lowlevel.FdStream(readable) as stream:
            assert await stream.receive_some() == b"", "nobody else has it open"
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(DigestProcessFailed):
        await digest_from(child)


async def test_a_process_that_ignores_the_end_of_its_children_gets_its_digest() -> None:
    """The system then takes them away by itself."""
    state = state_of(10)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert await digest_from(fork_digest(state, 11)) == digest_of(state)
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_the_child_ignores_the_signals_that_its_parent_ignores(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang_up(digester: Digester, state: MetadataState) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGHUP)
        yield

    monkeypatch.setattr(Digester, "slices", hang_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert (await digest_from(fork_digest(state_of(10), 11))).record_count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_signal_of_the_child_never_runs_a_handler_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def terminate(digester: Digester, state: MetadataState) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGTERM)
        yield

    monkeypatch.setattr(Digester, "slices", terminate)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with pytest.raises(DigestProcessFailed, match="was killed"):
            await digest_from(fork_digest(state_of(10), 11))
    finally:
        signal.signal(signal.SIGTERM, before)


def hang(digester: Digester, state: MetadataState) -> Iterator[None]:
    signal.pause()
    yield
