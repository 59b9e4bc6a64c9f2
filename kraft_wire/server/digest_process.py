"""Make a digest of the state in a forked child, so that the event loop doesn't wait for millions of records.

Only a fork has the state itself, as it was at one moment: the process that writes snapshots builds its own
from the files. The parent waits for the copy of its page tables, which takes milliseconds.

A fork has one thread and may not touch what other threads were using: the child computes, writes to its pipe
and ends, without the event loop, the log or any file of the parent. It ends, too, when its parent has ended.
"""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import msgspec
import trio

from kraft_wire.metadata.digest import Digester, StateDigest
from kraft_wire.metadata.state import MetadataState
from kraft_wire.server.snapshot_process import BELOW_THE_CONTROLLER

LIMIT_S: Final = 120.0
"""A child that takes longer is killed. Two million partitions take a quarter of that."""
MOST_CHARACTERS: Final = 1_000
SIGNALS: Final[Sequence[signal.Signals]] = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
KILLED_BEFORE_THE_CONTROLLER: Final = "1000"
"""The child's oom_score_adj: its memory is the controller's, which must not be chosen first."""


class DigestProcessFailed(Exception):
    """The child made no digest. The text says why."""


class ForkedDigest(NamedTuple):
    """A child that makes a digest, its pidfd, and the pipe that it writes the digest to."""

    pid: int
    pidfd: int
    pipe: int


class _Outcome(msgspec.Struct):
    """What the child writes, in JSON."""

    made: StateDigest | None = None
    error: str = ""


def fork_digest(metadata: MetadataState, end_offset: int) -> ForkedDigest:
    """Begin the digest of this metadata as it is now, without what was applied from ``end_offset`` on.

    Raises OSError if this process can't be forked.
    """
    digester = Digester()  # made here: OpenSSL takes locks for it that another thread may hold
    parent = os.getpid()
    readable, writable = os.pipe()
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # their handlers are the parent's
    try:
        pid = _fork()
        if pid == 0:
            _be_the_child(digester, metadata, end_offset, parent, writable, signals)
        return ForkedDigest(pid, os.pidfd_open(pid), readable)
    except OSError:
        os.close(readable)  # a child that is there already ends when it can't write
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        os.close(writable)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads: the child does without what they use.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


async def digest_from(child: ForkedDigest) -> StateDigest:
    """Wait for the digest. The child has ended when this returns, or is cancelled.

    Raises DigestProcessFailed.
    """
    try:
        with trio.move_on_after(LIMIT_S) as limit:
            async with trio.lowlevel.FdStream(child.pipe) as stream:
                written = b"".join([piece async for piece in stream])
    finally:
        with trio.CancelScope(shield=True):
            await _end(child)
    if limit.cancelled_caught:
        raise DigestProcessFailed(f"its process took more than {LIMIT_S:.0f} s")
    if not written:
        raise DigestProcessFailed("its process was killed")
    outcome = msgspec.json.decode(written, type=_Outcome)
    if outcome.made is None:
        raise DigestProcessFailed(outcome.error)
    return outcome.made


async def _end(child: ForkedDigest) -> None:
    """Kill the child, and wait until the system has freed its memory. Mostly it has ended by itself."""
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
        await trio.lowlevel.wait_readable(child.pidfd)
        with suppress(ChildProcessError):  # if this process was started with SIGCHLD ignored
            os.waitpid(child.pid, 0)
    finally:
        trio.lowlevel.notify_closing(child.pidfd)
        os.close(child.pidfd)


def _be_the_child(
    digester: Digester,
    metadata: MetadataState,
    end_offset: int,
    parent: int,
    writable: int,
    signals: Iterable[int],
) -> NoReturn:
    """Make the digest, write the outcome, and end: no exception may get to the code of the parent."""
    try:
        outcome = _Outcome()
        try:
            _leave_the_parent(writable, signals)
            metadata.undo_to(end_offset)
            for _ in digester.slices(metadata):
                if os.getppid() != parent:
                    os._exit(1)
            outcome.made = digester.result()
        except Exception as error:  # noqa: BLE001 - the parent gets the text of any error
            outcome.error = f"{type(error).__name__}: {error}"[:MOST_CHARACTERS]
        os.write(writable, msgspec.json.encode(outcome))  # less than fits into a pipe
    finally:
        os._exit(0)


def _leave_the_parent(writable: int, signals: Iterable[int]) -> None:
    """Let go of the parent's signals, sockets and files: they must close when the parent closes them."""
    signal.set_wakeup_fd(-1)
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, signals)
    for fd in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if fd != writable:
            with suppress(OSError):  # the listing itself was one of them
                os.close(fd)
    gc.disable()  # a collection would touch, and so copy, all of the parent's memory
    os.nice(BELOW_THE_CONTROLLER)
    Path("/proc/self/oom_score_adj").write_text(KILLED_BEFORE_THE_CONTROLLER)
