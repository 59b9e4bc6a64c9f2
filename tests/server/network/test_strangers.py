"""Connections to addresses that clients name: they end with the question, and there are only a few."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

import pytest
import trio

from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.network import complaints
from kraft_wire.server.network import peers as peers_module
from kraft_wire.server.network.complaints import MOST_MISTAKES
from kraft_wire.server.network.peers import MOST_STRANGERS
from tests.server.network.outgoing import fetch, running, vote, vote_answer
from tests.server.network.scripted_peer import GIVE_UP_S, OURS, listening

VOTE = 52


async def test_a_strangers_connection_ends_with_its_answer() -> None:
    async with listening() as stranger, running() as (peers, reports):
        peers.know([])
        peers.send(1, stranger.peer, vote())
        connection = await stranger.connected()
        await connection.answer(await connection.receive(), vote_answer(3))
        assert await connection.is_closed_by_peer()
        assert await reports.epoch_of(1) == 3


async def test_a_strangers_connection_ends_with_a_request_that_it_does_not_know() -> None:
    async with listening() as stranger, running() as (peers, reports):
        peers.know([])
        peers.send(1, stranger.peer, vote())
        connection = await stranger.connected({key: OURS[key] for key in OURS if key != VOTE})
        assert await connection.is_closed_by_peer()
        assert await reports.of(1) is Failure.UNSUPPORTED


async def test_a_strangers_connection_stays_open_while_another_answer_is_due() -> None:
    async with listening() as stranger, running() as (peers, reports):
        peers.know([])
        for number in (1, 2):
            peers.send(number, stranger.peer, vote(number))
        connection = await stranger.connected()
        for number in (1, 2):
            await connection.answer(await connection.receive(), vote_answer(number))
            assert await reports.epoch_of(number) == number
        assert await connection.is_closed_by_peer()


async def test_a_known_peers_connections_stay_open() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.know([scripted.peer])
        peers.send(1, scripted.peer, vote())
        connection = await scripted.connected()
        await connection.answer(await connection.receive(), vote_answer(1))
        await reports.of(1)
        peers.know([scripted.peer, Peer(2, "another.example", 1)])
        peers.send(2, scripted.peer, vote())
        await connection.answer(await connection.receive(), vote_answer(2))
        assert await reports.epoch_of(2) == 2


async def test_connections_to_a_peer_that_is_no_longer_known_are_closed() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.know([scripted.peer])
        peers.send(1, scripted.peer, vote())
        voting = await scripted.connected()
        asked = await voting.receive()
        peers.send(2, scripted.peer, fetch())
        fetching = await scripted.connected()
        await fetching.answer(await fetching.receive(), FetchResponse())
        await reports.of(2)
        peers.know([])
        assert await fetching.is_closed_by_peer()
        await voting.answer(asked, vote_answer(6))
        assert await reports.epoch_of(1) == 6
        assert await voting.is_closed_by_peer()


async def test_a_stranger_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The raft core forgets requests when its role changes: nobody cancels them."""
    monkeypatch.setattr(peers_module, "WARM_AGAIN_S", 0.001)
    monkeypatch.setattr(peers_module, "STRANGER_PATIENCE_S", 0)
    async with listening() as stranger, running() as (peers, reports), trio.open_nursery() as nursery:
        peers.know([])
        peers.send(1, stranger.peer, vote())
        connection = await stranger.connected()
        await connection.receive()
        nursery.start_soon(peers.keep_warm, list, list)
        assert await connection.is_closed_by_peer()
        assert await reports.of(1) is Failure.TIMED_OUT
        nursery.cancel_scope.cancel()


async def test_the_oldest_stranger_makes_room_for_another_and_known_peers_keep_theirs() -> None:
    async with listening() as scripted, running() as (peers, reports), AsyncExitStack() as stack:
        peers.know([scripted.peer])
        peers.send(100, scripted.peer, vote())
        known = await scripted.connected()
        strangers = [await stack.enter_async_context(listening()) for _ in range(MOST_STRANGERS + 2)]
        connections = []
        for number, stranger in enumerate(strangers):
            peers.send(number, stranger.peer, vote())
            connections.append(await stranger.connected())
        for number in (0, 1):
            assert await reports.of(number) is Failure.TIMED_OUT
            assert await connections[number].is_closed_by_peer()
        await known.answer(await known.receive(), vote_answer(5))
        assert await reports.epoch_of(100) == 5
        assert reports.ids == [0, 1, 100]


async def test_strangers_that_are_lost_all_the_time_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(complaints, "MISTAKE_INTERVAL_S", 1000.0)
    caplog.set_level(logging.INFO)
    async with listening() as stranger, running() as (peers, reports):
        peers.know([])
        for number in range(MOST_MISTAKES + 10):
            peers.send(number, stranger.peer, vote())
            await (await stranger.connected()).stream.aclose()
            assert await reports.of(number) is Failure.LOST
    lost = [record for record in caplog.records if record.message.startswith("peer connection lost")]
    assert len(lost) == MOST_MISTAKES


async def test_no_more_strangers_are_connected_if_they_are_asked_at_once() -> None:
    with trio.fail_after(GIVE_UP_S):
        async with running() as (peers, reports):
            peers.know([])
            for number in range(50):
                peers.send(number, Peer(1, f"127.0.1.{number + 1}", 1), vote())
            ends = [await reports.of(number) for number in range(50)]
    given_up = 50 - MOST_STRANGERS
    assert ends == [Failure.TIMED_OUT] * given_up + [Failure.LOST] * MOST_STRANGERS


async def test_files_are_kept_for_known_peers_before_they_are_connected() -> None:
    async with running() as (peers, _):
        peers.know([])
        without = peers.files
        peers.know([Peer(id, f"voter-{id}.example", 9093) for id in range(3)])
        assert peers.files == without + 6
