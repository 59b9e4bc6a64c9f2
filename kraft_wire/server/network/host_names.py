"""Look up host names in threads of their own: a slow name server must not hold up files, nor strangers' names
those of known peers.

A thread that looks up a name can't be stopped. If its connection is given up, it ends when the system does.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextvars import ContextVar
from socket import AddressFamily, SocketKind
from typing import Any, Final, Literal, TypeVar

import trio

T = TypeVar("T")

MOST_LOOKUPS: Final = 32
MOST_STRANGERS_LOOKUPS: Final = 8
"""Clients can make this controller look up any name. At most so many of those lookups run at once."""

Found = (
    tuple[Literal[AddressFamily.AF_INET], SocketKind, int, str, tuple[str, int]]
    | tuple[
        Literal[AddressFamily.AF_INET6], SocketKind, int, str, tuple[str, int, int, int] | tuple[int, bytes]
    ]
)
"""An address as socket.getaddrinfo returns it."""

_is_for_stranger: ContextVar[bool] = ContextVar("is_for_stranger", default=False)


def look_up_for_stranger() -> None:
    """Let this task's lookups be those of a stranger from now on."""
    _is_for_stranger.set(True)


class HostNames(trio.abc.HostnameResolver):
    """The lookups of a run of trio, after ``trio.socket.set_custom_hostname_resolver``."""

    def __init__(self, look_up: Callable[..., list[Found]] = socket.getaddrinfo) -> None:
        self._look_up = look_up
        self._limiter = trio.CapacityLimiter(MOST_LOOKUPS)
        self._strangers_limiter = trio.CapacityLimiter(MOST_STRANGERS_LOOKUPS)

    async def getaddrinfo(
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Found]:
        """Look up a name. Raises socket.gaierror."""
        return await self._in_thread(self._look_up, host, port, family, type, proto, flags)

    async def getnameinfo(
        self, sockaddr: tuple[str, int] | tuple[str, int, int, int], flags: int
    ) -> tuple[str, str]:
        """Look up the name of an address. Raises socket.gaierror."""
        return await self._in_thread(socket.getnameinfo, sockaddr, flags)

    async def _in_thread(self, look_up: Callable[..., T], *args: Any) -> T:
        limiter = self._strangers_limiter if _is_for_stranger.get() else self._limiter
        return await trio.to_thread.run_sync(look_up, *args, abandon_on_cancel=True, limiter=limiter)
