"""Hosts in network namespaces with a router between them, which loses packets in silence where it is told to.

A namespace is held by an open file and has no name: it is gone, with everything in it, when this process is.
The router forgets packets by routing rules (``iif PORT to ADDRESS blackhole``), those of established
connections as well, and nobody hears of it. Needs root and `ip` and `nsenter`.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

CLONE_NEWNET = 0x40000000
OWN_NAMESPACE = "/proc/thread-self/ns/net"
LIBC = ctypes.CDLL(None, use_errno=True)


class NetworkUnavailable(RuntimeError):
    """This machine, or this user, can't have network namespaces; the message says what is missing."""


class Namespace:
    """A network namespace, in which nothing but loopback is there and up."""

    def __init__(self) -> None:
        with _this_thread_as_it_was():
            _checked(LIBC.unshare(CLONE_NEWNET), "a network namespace can't be made: are you root?")
            self._fd = _own_namespace()
        self.ip("link set lo up")

    @property
    def command_prefix(self) -> list[str]:
        """Runs the command that follows inside, under the same process id."""
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self._fd}"]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Inside: this thread's new sockets are the namespace's, and so are threads and processes that it
        starts."""
        with _this_thread_as_it_was():
            _checked(LIBC.setns(self._fd, CLONE_NEWNET), "the network namespace can't be entered")
            yield

    def ip(self, *commands: str) -> None:
        """Commands of `ip`, without the word itself."""
        done = self.run("ip", "-batch", "-", text="\n".join(commands))
        if done.returncode:
            raise NetworkUnavailable(f"ip failed: {done.stderr.strip()}\n" + "\n".join(commands))

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end."""
        argv = [*self.command_prefix, *command]
        try:
            return subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise NetworkUnavailable(f"no `{error.filename}` on the PATH: run `make network`") from None

    def close(self) -> None:
        os.close(self._fd)


@contextmanager
def _this_thread_as_it_was() -> Iterator[None]:
    fd = _own_namespace()
    try:
        yield
    finally:
        if os.fstat(fd).st_ino != Path(OWN_NAMESPACE).stat().st_ino:
            _checked(LIBC.setns(fd, CLONE_NEWNET), "the former network namespace can't be entered again")
        os.close(fd)


def _own_namespace() -> int:
    return os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)


def _checked(result: int, what: str) -> None:
    if result:
        raise NetworkUnavailable(f"{what} ({os.strerror(ctypes.get_errno())})")


class Network:
    """Hosts by name, each in a namespace of its own; any reaches any until that is cut."""

    def __init__(self, names: Iterable[str]) -> None:
        self._closing = ExitStack()
        with ExitStack() as on_failure:
            on_failure.callback(self._closing.close)
            self._router = self._namespace()
            forwarding = self._router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            if forwarding.returncode:
                raise NetworkUnavailable(f"packets can't be forwarded: {forwarding.stderr.strip()}")
            self._numbers = {name: number for number, name in enumerate(names, start=1)}
            self.hosts: Mapping[str, Namespace] = {name: self._connect(name) for name in self._numbers}
            on_failure.pop_all()
        self._cuts: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def _namespace(self) -> Namespace:
        namespace = Namespace()
        self._closing.callback(namespace.close)
        return namespace

    def _connect(self, name: str) -> Namespace:
        host, number = self._namespace(), self._numbers[name]
        self._router.ip(
            f"link add {self._port(name)} type veth peer name eth0 netns {host_path(host)}",
            f"addr add 10.0.{number}.1/24 dev {self._port(name)}",
            f"link set {self._port(name)} up",
        )
        host.ip(
            f"addr add {self.address(name)}/24 dev eth0",
            "link set eth0 up",
            f"route add default via 10.0.{number}.1",
        )
        return host

    def _port(self, name: str) -> str:
        return f"port{self._numbers[name]}"

    def address(self, name: str) -> str:
        return f"10.0.{self._numbers[name]}.2"

    def others(self, name: str) -> list[str]:
        return [other for other in self._numbers if other != name]

    # What is lost.

    def lose(self, sender: str, receiver: str) -> None:
        """Whatever the one sends to the other is lost from now on."""
        if (sender, receiver) not in self._cuts:
            self._cuts.add((sender, receiver))
            self._router.ip(f"rule add iif {self._port(sender)} to {self.address(receiver)} blackhole")

    def separate(self, one: str, other: str) -> None:
        """They don't reach each other."""
        self.lose(one, other)
        self.lose(other, one)

    def mute(self, name: str) -> None:
        """What this host sends is lost; what is sent to it arrives."""
        for other in self.others(name):
            self.lose(name, other)

    def deafen(self, name: str) -> None:
        """What is sent to this host is lost; what it sends arrives."""
        for other in self.others(name):
            self.lose(other, name)

    def isolate(self, name: str) -> None:
        """Nothing gets to or from this host."""
        self.mute(name)
        self.deafen(name)

    def heal(self) -> None:
        """Nothing is lost any more."""
        while self._cuts:
            sender, receiver = self._cuts.pop()
            self._router.ip(f"rule del iif {self._port(sender)} to {self.address(receiver)} blackhole")


def host_path(namespace: Namespace) -> Path:
    """Under which `ip` finds a namespace."""
    return Path(namespace.command_prefix[-1].removeprefix("--net="))
