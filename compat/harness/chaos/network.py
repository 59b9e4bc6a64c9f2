"""Run hosts in network namespaces, connected by a router that silently drops packets on request.

A namespace has no name and is held by an open file, so it disappears with this process. The router drops
packets with routing rules (``iif PORT to ADDRESS blackhole``), also those of established connections, and
without any ICMP error. Needs root, `ip` and `nsenter`.
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
    """Network namespaces can't be created on this machine or by this user; the message says what is
    missing."""


class Namespace:
    """A network namespace with only the loopback interface, which is up."""

    def __init__(self) -> None:
        with _this_thread_as_it_was():
            _checked(LIBC.unshare(CLONE_NEWNET), "a network namespace can't be made: are you root?")
            self._fd = _own_namespace()
        self.ip("link set lo up")

    @property
    def command_prefix(self) -> list[str]:
        """Words before a command that run it in the namespace, with the same process id."""
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self._fd}"]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Move this thread into the namespace: its new sockets, threads and processes belong there."""
        with _this_thread_as_it_was():
            _checked(LIBC.setns(self._fd, CLONE_NEWNET), "the network namespace can't be entered")
            yield

    def ip(self, *commands: str) -> None:
        """Run commands of `ip`, given without the word `ip`."""
        done = self.run("ip", "-batch", "-", text="\n".join(commands))
        if done.returncode:
            raise NetworkUnavailable(f"ip failed: {done.stderr.strip()}\n" + "\n".join(commands))

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the namespace until it ends."""
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
    """Named hosts in namespaces of their own. Every host reaches every other until a connection is cut."""

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

    # Dropping packets.

    def lose(self, sender: str, receiver: str) -> None:
        """Drop all packets from the sender to the receiver from now on."""
        if (sender, receiver) not in self._cuts:
            self._cuts.add((sender, receiver))
            self._router.ip(f"rule add iif {self._port(sender)} to {self.address(receiver)} blackhole")

    def separate(self, one: str, other: str) -> None:
        """Drop the packets between two hosts, both ways."""
        self.lose(one, other)
        self.lose(other, one)

    def mute(self, name: str) -> None:
        """Drop everything that this host sends; it still receives."""
        for other in self.others(name):
            self.lose(name, other)

    def deafen(self, name: str) -> None:
        """Drop everything that is sent to this host; it still sends."""
        for other in self.others(name):
            self.lose(other, name)

    def isolate(self, name: str) -> None:
        """Drop everything from and to this host."""
        self.mute(name)
        self.deafen(name)

    def heal(self) -> None:
        """Stop dropping packets."""
        while self._cuts:
            sender, receiver = self._cuts.pop()
            self._router.ip(f"rule del iif {self._port(sender)} to {self.address(receiver)} blackhole")


def host_path(namespace: Namespace) -> Path:
    """Return the path by which `ip` finds a namespace."""
    return Path(namespace.command_prefix[-1].removeprefix("--net="))
