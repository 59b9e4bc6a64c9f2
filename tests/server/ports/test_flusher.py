"""Flushes in a thread: what is told when, and how errors end it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import trio

from kraft_wire.server.ports.flusher import Flusher


def fail(end_offset: int, generation: int) -> None:
    raise OSError(28, "no space left on device")


def broken_flush() -> int:
    raise OSError(5, "input/output error")


async def run_one(flush: Callable[[], int], flushed: Callable[[int, int], None]) -> None:
    flusher = Flusher(flush, flushed)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flusher.run)
            flusher.start(7)
            await trio.sleep_forever()


async def test_a_flush_runs_in_a_thread_and_is_told_to_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def flush() -> int:
        threads.append(threading.current_thread())
        return 42

    told = trio.Event()
    seen: list[object] = []

    def flushed(end_offset: int, generation: int) -> None:
        seen.extend([end_offset, generation, threading.current_thread(), flusher.is_busy])
        told.set()

    flusher = Flusher(flush, flushed)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flusher.run)
            flusher.start(7)
            assert flusher.is_busy
            await told.wait()
            nursery.cancel_scope.cancel()
    assert seen == [42, 7, threading.current_thread(), False]
    assert threading.current_thread() not in threads


async def test_a_flush_may_start_another() -> None:
    left = iter([True, True, False])
    done = trio.Event()

    def flushed(end_offset: int, generation: int) -> None:
        if next(left):
            flusher.start(generation + 1)
        else:
            assert generation == 2
            done.set()

    flusher = Flusher(lambda: 1, flushed)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flusher.run)
            flusher.start(0)
            await done.wait()
            nursery.cancel_scope.cancel()


async def test_a_flush_in_flight_ends_before_the_flusher_does() -> None:
    """The log is closed afterwards."""
    begun, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    def flush() -> int:
        begun.set()
        go_on.wait(10)
        ended.append("flush")
        return 1

    flusher = Flusher(flush, lambda end_offset, generation: ended.append("told"))
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flusher.run)
            flusher.start(0)
            await trio.to_thread.run_sync(begun.wait)
            nursery.cancel_scope.cancel()
            go_on.set()
    assert ended == ["flush", "told"]


@pytest.mark.parametrize(
    ("flush", "flushed", "number"), [(broken_flush, fail, 5), (lambda: 1, fail, 28)], ids=["flush", "event"]
)
async def test_an_error_ends_the_flusher(
    flush: Callable[[], int], flushed: Callable[[int, int], None], number: int
) -> None:
    with pytest.raises(ExceptionGroup) as ended:
        await run_one(flush, flushed)
    assert ended.group_contains(OSError, match=rf"\[Errno {number}\]")
