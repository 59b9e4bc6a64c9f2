"""Slow name servers: a lookup keeps its thread until the system gives up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
import trio

from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.network.host_names import MOST_STRANGERS_LOOKUPS, HostNames
from kraft_wire.server.network.peers import MOST_STRANGERS
from tests.server.network.outgoing import running, vote, vote_answer
from tests.server.network.scripted_peer import HOST, listening

SLOW = b".slow.example"


class SlowNames:
    """A lookup that hangs for some names until ``answer`` is set. All others are names of this machine."""

    def __init__(self) -> None:
        self.hanging: list[bytes] = []
        self.answer = Event()

    def look_up(self, host: bytes, *args: Any) -> list[Any]:
        if host.endswith(SLOW):
            self.hanging.append(host)
            self.answer.wait()
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return socket.getaddrinfo(HOST, *args)


@pytest.fixture
def names() -> Iterator[SlowNames]:
    names = SlowNames()
    yield names
    names.answer.set()


async def test_strangers_slow_names_hold_up_neither_known_peers_nor_files(names: SlowNames) -> None:
    trio.socket.set_custom_hostname_resolver(HostNames(names.look_up))
    async with listening() as scripted, running() as (peers, reports):
        known = Peer(2, "voter.example", scripted.peer.port)
        peers.know([known])
        for number in range(2, 50):
            peers.send(number, Peer(number, f"{number}{SLOW.decode()}", 9093), vote())
            await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(60):
            while len(names.hanging) < MOST_STRANGERS_LOOKUPS:
                await trio.sleep(0.001)
        peers.send(1, known, vote())
        connection = await scripted.connected()
        await connection.answer(await connection.receive(), vote_answer(3))
        assert await reports.epoch_of(1) == 3
        assert len(names.hanging) == MOST_STRANGERS_LOOKUPS == MOST_STRANGERS
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0


async def test_this_machine_s_own_name_is_found() -> None:
    trio.socket.set_custom_hostname_resolver(HostNames())
    found = await trio.socket.getaddrinfo("localhost", 9093, type=socket.SOCK_STREAM)
    assert found == socket.getaddrinfo("localhost", 9093, type=socket.SOCK_STREAM)
