"""Inject faults into a controller. Each is a context manager: the fault lasts for its block, then it is
healed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from compat.harness.chaos.arena import Arena
from compat.harness.kafka.quorum import Controller
from compat.harness.processes import suspended
from compat.harness.strace import inject_into_flushes

Fault = Callable[[Arena, Controller], AbstractContextManager[None]]

EXIT_CODE_OF_A_FAILED_DISK = 1
GIVING_UP_S = 60.0


@contextmanager
def isolated(arena: Arena, victim: Controller) -> Iterator[None]:
    """Drop all packets to and from the victim."""
    with _healed(arena):
        arena.network.isolate(arena.host(victim))
        yield


@contextmanager
def muted(arena: Arena, victim: Controller) -> Iterator[None]:
    """Drop all packets that the victim sends."""
    with _healed(arena):
        arena.network.mute(arena.host(victim))
        yield


@contextmanager
def deafened(arena: Arena, victim: Controller) -> Iterator[None]:
    """Drop all packets that are sent to the victim."""
    with _healed(arena):
        arena.network.deafen(arena.host(victim))
        yield


@contextmanager
def bridged(arena: Arena, victim: Controller, other: Controller) -> Iterator[None]:
    """Drop all packets between two controllers; the third reaches both."""
    with _healed(arena):
        arena.network.separate(arena.host(victim), arena.host(other))
        yield


@contextmanager
def _healed(arena: Arena) -> Iterator[None]:
    try:
        yield
    finally:
        arena.network.heal()


@contextmanager
def killed(arena: Arena, victim: Controller) -> Iterator[None]:
    """Kill the victim with SIGKILL, and start it again afterwards."""
    victim.kill()
    yield
    victim.start()


@contextmanager
def paused(arena: Arena, victim: Controller) -> Iterator[None]:
    """Suspend the victim with SIGSTOP, and resume it with SIGCONT."""
    with suspended(victim.running_process):
        yield


@contextmanager
def without_power(arena: Arena, *victims: Controller) -> Iterator[None]:
    """Cut the power: the victims die and lose what they haven't flushed."""
    for victim in victims:
        arena.disk(victim).cut_power()
    for victim in victims:
        victim.running_process.kill_with_children()
    try:
        yield
    finally:
        for victim in victims:
            arena.disk(victim).restore_power()
            victim.start()


@contextmanager
def failing_flush(arena: Arena, victim: Controller) -> Iterator[None]:
    """Let the victim's next flush fail with EIO; a further flush would succeed."""
    process = victim.running_process
    workspace, name = arena.quorum.workspace, f"{victim.name}-strace"
    tracer = inject_into_flushes(workspace, name, process, "error=EIO:when=1")
    assert process.wait(GIVING_UP_S) == EXIT_CODE_OF_A_FAILED_DISK, process.tail()
    assert "the disk is not to be trusted" in process.log_text(), process.tail()
    tracer.wait(GIVING_UP_S)
    yield
    victim.start()


FAULTS: dict[str, Fault] = {
    "isolated": isolated,
    "muted": muted,
    "deafened": deafened,
    "killed": killed,
    "paused": paused,
    "without power": without_power,
    "failing flush": failing_flush,
}
"""The faults that end a leader's leadership."""
