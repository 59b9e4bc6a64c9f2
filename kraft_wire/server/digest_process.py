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
from collections.abc import Sequence
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


class DigestProcessFailed(Exception):
    """The child made no digest. The text says why."""


class ForkedDigest(NamedTuple):
    """A child that makes a digest, and the pipe that it writes it to."""

    pid: int
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
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads: see above for what the child does without.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be_the_child(digester, metadata, end_offset, parent, writable)
    except OSError:
        os.close(readable)
        raise
    finally:
        os.close(writable)
    return ForkedDigest(pid, readable)


async def digest_from(child: ForkedDigest) -> StateDigest:
    """Wait for the digest. The child has ended when this returns, or is cancelled.

    Raises DigestProcessFailed.
    """
    try:
        with trio.move_on_after(LIMIT_S) as limit:
            async with trio.lowlevel.FdStream(child.pipe) as stream:
                written = b"".join([piece async for piece in stream])
    finally:
        os.kill(child.pid, signal.SIGKILL)  # it has ended, unless it took too long or nobody waits any more
        os.waitpid(child.pid, 0)
    if limit.cancelled_caught:
        raise DigestProcessFailed(f"its process took more than {LIMIT_S:.0f} s")
    if not written:
        raise DigestProcessFailed("its process was killed")
    outcome = msgspec.json.decode(written, type=_Outcome)
    if outcome.made is None:
        raise DigestProcessFailed(outcome.error)
    return outcome.made


def _be_the_child(
    digester: Digester, metadata: MetadataState, end_offset: int, parent: int, writable: int
) -> NoReturn:
    """Make the digest, write the outcome, and end: no exception may get to the code of the parent."""
    try:
        _leave_the_parent(writable)
        outcome = _Outcome()
        try:
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


def _leave_the_parent(writable: int) -> None:
    """Let go of the parent's signals, sockets and files: they must close when the parent closes them."""
    signal.set_wakeup_fd(-1)
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    os.closerange(0, writable)
    os.closerange(writable + 1, os.sysconf("SC_OPEN_MAX"))
    gc.disable()  # a collection would touch, and so copy, all of the parent's memory
    os.nice(BELOW_THE_CONTROLLER)
