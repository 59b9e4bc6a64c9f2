"""Requests to peers, on real sockets: order, lanes, versions, and all ends of a connection."""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.outgoing import Lane
from kraft_wire.server.network import peer_connection
from kraft_wire.server.network import peers as peers_module
from kraft_wire.server.network.peers import Peers
from kraft_wire.wire.address import Address
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import API_VERSIONS_KEY, encode_response
from tests.server.network.outgoing import Reports, describe_quorum, fetch, running, vote, vote_answer
from tests.server.network.scripted_peer import (
    GIVE_UP_S,
    HOST,
    OURS,
    Accepted,
    ScriptedPeer,
    listening,
    versions_response,
)

VOTE = 52


@asynccontextmanager
async def connected(vote_id: int = 1) -> AsyncIterator[tuple[Peers, Reports, ScriptedPeer, Accepted]]:
    """One Vote is in flight on a new connection."""
    async with listening() as scripted, running() as (peers, reports):
        peers.send(vote_id, scripted.peer, vote())
        yield peers, reports, scripted, await scripted.connected()


async def _works(peers: Peers, reports: Reports, scripted: ScriptedPeer, request_id: int = 99) -> bool:
    """Whether the next Vote goes out on a new connection, and is answered."""
    peers.send(request_id, scripted.peer, vote())
    connection = await scripted.connected()
    await connection.answer(await connection.receive(), vote_answer(7))
    return await reports.epoch_of(request_id) == 7


# Requests and answers.


async def test_versions_are_asked_first_and_nothing_else_with_them() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote(5, pre_vote=True))
        connection = await scripted.accept()
        question = await connection.receive()
        assert (question.api_key, question.version) == (API_VERSIONS_KEY, 4)
        assert await connection.is_silent()
        await connection.answer(question, versions_response(OURS))
        asked = await connection.receive()
        assert (asked.api_key, asked.version, asked.client_id) == (VOTE, 2, "raft-client-7")
        assert asked.request == vote(5, pre_vote=True)
        await connection.answer(asked, vote_answer(3))
        assert await reports.of(1) == vote_answer(3)


async def test_requests_are_pipelined_and_their_responses_reported_in_order() -> None:
    async with listening() as scripted, running() as (peers, reports):
        for number in range(400):
            peers.send(number, scripted.peer, vote(number))
        connection = await scripted.connected()
        asked = [await connection.receive() for _ in range(400)]
        assert [each.request for each in asked] == [vote(number) for number in range(400)]
        for number, each in enumerate(asked):
            await connection.answer(each, vote_answer(number))
        assert [await reports.epoch_of(number) for number in range(400)] == list(range(400))
    assert reports.ids == list(range(400))


async def test_a_connection_stays_open_for_the_next_request() -> None:
    async with connected() as (peers, reports, scripted, connection):
        await connection.answer(await connection.receive(), vote_answer(1))
        await reports.of(1)
        for number in range(2, 300):
            peers.send(number, scripted.peer, vote())
            await connection.answer(await connection.receive(), vote_answer(number))
            assert await reports.epoch_of(number) == number


@pytest.mark.parametrize("taken", [0, 1, 30], ids=["full", "takes one byte", "takes some"])
async def test_what_a_socket_does_not_take_at_once_is_sent_later(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected() as (peers, reports, scripted, connection):
        await connection.answer(await connection.receive(), vote_answer(1))
        await reports.of(1)
        attempts: list[int] = []

        def write(fd: int, data: bytes) -> int:
            attempts.append(fd)
            if not taken:
                raise BlockingIOError
            with socket.socket(fileno=os.dup(fd)) as connected_socket:
                return connected_socket.send(data[:taken])

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", write)
            peers.send(2, scripted.peer, vote(2))
            peers.send(3, scripted.peer, vote(3))
        assert len(attempts) == 1, "the second has to wait for the first"
        for number in (2, 3):
            asked = await connection.receive()
            assert asked.request == vote(number)
            await connection.answer(asked, vote_answer(number))
            assert await reports.epoch_of(number) == number


async def test_a_parked_fetch_does_not_delay_a_vote() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, fetch())
        fetching = await scripted.connected()
        parked = await fetching.receive()
        peers.send(2, scripted.peer, vote())
        voting = await scripted.connected()
        await voting.answer(await voting.receive(), vote_answer(4))
        assert await reports.epoch_of(2) == 4
        await fetching.answer(parked, FetchResponse(throttle_time_ms=11))
        assert await reports.of(1) == FetchResponse(throttle_time_ms=11)


async def test_snapshots_travel_with_fetches_and_all_else_with_votes() -> None:
    async with listening() as scripted, running() as (peers, _):
        peers.send(1, scripted.peer, fetch())
        peers.send(2, scripted.peer, FetchSnapshotRequest())
        fetching = await scripted.connected()
        assert [(await fetching.receive()).api_key for _ in range(2)] == [1, 59]
        peers.send(3, scripted.peer, vote())
        peers.send(4, scripted.peer, describe_quorum())
        other = await scripted.connected()
        assert [(await other.receive()).api_key for _ in range(2)] == [52, 55]


async def test_what_is_sent_before_it_runs_goes_out_when_it_does() -> None:
    async with listening() as scripted, trio.open_nursery() as nursery:
        reports = Reports()
        peers = Peers(reports.add, reports.add, client_id="early")
        peers.send(1, scripted.peer, vote())
        nursery.start_soon(peers.run)
        connection = await scripted.connected()
        await connection.answer(await connection.receive(), vote_answer(2))
        assert await reports.epoch_of(1) == 2
        nursery.cancel_scope.cancel()


async def test_reports_may_send_again() -> None:
    reports = Reports()

    def answered(request_id: int, response: Message) -> None:
        reports.add(request_id, response)
        if request_id < 5:
            peers.send(request_id + 1, scripted.peer, vote(request_id + 1))

    def failed(request_id: int, failure: Failure) -> None:
        reports.add(request_id, failure)
        peers.send(request_id + 1, scripted.peer, vote(request_id + 1))

    peers = Peers(answered, failed, client_id="again")
    async with listening() as scripted, trio.open_nursery() as nursery:
        nursery.start_soon(peers.run)
        peers.send(1, scripted.peer, vote(1))
        connection = await scripted.connected()
        for number in (1, 2):
            await connection.answer(await connection.receive(), vote_answer(number))
        await connection.receive()
        connection.reset()
        assert await reports.of(3) is Failure.LOST
        connection = await scripted.connected()
        for number in (4, 5):
            await connection.answer(await connection.receive(), vote_answer(number))
            assert await reports.epoch_of(number) == number
        nursery.cancel_scope.cancel()


# Versions.


async def test_a_peer_without_pre_votes_gets_votes_but_no_pre_vote() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote(pre_vote=True))
        peers.send(2, scripted.peer, vote())
        connection = await scripted.connected({VOTE: (0, 1)})
        assert await reports.of(1) is Failure.UNSUPPORTED
        asked = await connection.receive()
        assert asked.version == 1
        await connection.answer(asked, vote_answer(9))
        assert await reports.epoch_of(2) == 9


async def test_a_peer_without_the_api_costs_that_request_only() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, describe_quorum())
        peers.send(2, scripted.peer, vote())
        connection = await scripted.connected({VOTE: (0, 2)})
        assert await reports.of(1) is Failure.UNSUPPORTED
        await connection.answer(await connection.receive(), vote_answer(9))
        assert await reports.epoch_of(2) == 9


async def test_a_request_that_cannot_be_written_says_nothing_of_the_peer() -> None:
    impossible = vote(pre_vote=True)
    impossible.topics[0].partitions[0].replica_epoch = 1 << 31
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, impossible)
        peers.send(2, scripted.peer, vote())
        connection = await scripted.connected({VOTE: (0, 2)})
        assert await reports.of(1) is Failure.UNSENDABLE
        await connection.answer(await connection.receive(), vote_answer(9))
        assert await reports.epoch_of(2) == 9


@pytest.mark.parametrize(("known", "next_version"), [({18: (0, 3)}, 3), ({18: (0, 2)}, 2), ({}, 0)])
async def test_an_older_peer_is_asked_for_its_versions_again(
    known: dict[int, tuple[int, int]], next_version: int
) -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote())
        connection = await scripted.accept()
        question = await connection.receive()
        refusal = versions_response(known, ErrorCode.UNSUPPORTED_VERSION)
        await connection.answer(question._replace(version=0), refusal)
        assert (await connection.answer_versions()).version == next_version
        await connection.answer(await connection.receive(), vote_answer(6))
        assert await reports.epoch_of(1) == 6


async def test_versions_hold_for_one_connection_only() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote())
        old = await scripted.connected({VOTE: (0, 0)})
        assert (await old.receive()).version == 0
        old.reset()
        assert await reports.of(1) is Failure.LOST
        peers.send(2, scripted.peer, vote())
        upgraded = await scripted.connected()
        assert (await upgraded.receive()).version == 2


# Lost connections.


@pytest.mark.parametrize("is_reset", [True, False])
async def test_a_reset_or_closed_connection_loses_all_that_is_in_flight(is_reset: bool) -> None:
    async with connected() as (peers, reports, scripted, connection):
        peers.send(2, scripted.peer, vote())
        for _ in range(2):
            await connection.receive()
        connection.reset() if is_reset else connection.close_now()
        assert await reports.of(1) is await reports.of(2) is Failure.LOST
        assert reports.ids == [1, 2]
        assert await _works(peers, reports, scripted)


async def test_a_connection_that_ends_within_an_answer_is_lost() -> None:
    async with connected() as (_, reports, _, connection):
        await connection.receive()
        await connection.stream.send_all(b"\0\0\0\x50half of it")
        connection.close_now()
        assert await reports.of(1) is Failure.LOST


async def test_a_connection_that_ends_before_its_versions_are_known_is_lost() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote())
        connection = await scripted.accept()
        await connection.receive()
        connection.close_now()
        assert await reports.of(1) is Failure.LOST
        assert await _works(peers, reports, scripted)


async def test_a_refused_connection_is_lost() -> None:
    with socket.socket() as unheard:
        unheard.bind((HOST, 0))
        peer = Peer(1, *unheard.getsockname())
        with trio.fail_after(GIVE_UP_S):
            async with running() as (peers, reports):
                for request_id in (1, 2):
                    peers.send(request_id, peer, vote())
                    assert await reports.of(request_id) is Failure.LOST


class NoSuchHost(trio.abc.HostnameResolver):
    """A name server that knows no name."""

    async def getaddrinfo(self, *_: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def getnameinfo(self, *_: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    "peer",
    [
        Peer(1, "controller.example", 9093),
        Peer(1, "no name at all" * 10, 9093),
        Peer(1, "controller\0", 9093),
        Peer(1, "", 9093),
        Peer(1, HOST, 0),
        Peer(1, HOST, -1),
        Peer(1, HOST, 65536),
        Peer(1, HOST, 2**31 - 1),
    ],
)
async def test_a_peer_without_an_address_is_lost(peer: Peer) -> None:
    trio.socket.set_custom_hostname_resolver(NoSuchHost())
    with trio.fail_after(GIVE_UP_S):
        async with running() as (peers, reports):
            peers.send(1, peer, vote())
            assert await reports.of(1) is Failure.LOST


async def test_a_connection_that_was_closed_while_idle_loses_nothing() -> None:
    async with connected() as (peers, reports, scripted, connection):
        await connection.answer(await connection.receive(), vote_answer(1))
        await reports.of(1)
        connection.close_now()
        # No task of ours has run since, and noticed that the connection is closed.
        assert await _works(peers, reports, scripted)
    assert reports.ids == [1, 99]


async def test_a_closed_idle_connection_is_noticed_without_a_request() -> None:
    async with connected() as (peers, reports, scripted, connection):
        await connection.answer(await connection.receive(), vote_answer(1))
        await reports.of(1)
        connection.reset()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert await _works(peers, reports, scripted)
    assert reports.ids == [1, 99]


# Bad responses.


def _answer(correlation_id: int) -> bytes:
    return frame(encode_response(VOTE, 2, correlation_id, vote_answer()))


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "frame of 1213486160 bytes, allowed are 0 to 1048576"),
        (struct.pack(">i", -1), "frame of -1 bytes"),
        (struct.pack(">i", (1 << 20) + 1), "frame of 1048577 bytes"),
        (frame(b""), "a frame of 0 bytes is too short for a response"),
        (frame(b"\0\0\0"), "a frame of 3 bytes is too short for a response"),
        (
            _answer(correlation_id=2),
            "correlation id 2 arrived, expected 1: the responses are out of order",
        ),
        (frame(_answer(correlation_id=1)[4:-12]), "VoteResponse"),
        (frame(b"\0\0\0\1\0" + b"\xff" * 40), "VoteResponse"),
    ],
    ids=["http", "negative", "too large", "empty", "tiny", "other request", "cut off", "ones"],
)
async def test_a_bad_response_fails_the_requests_in_flight_and_is_logged(
    sent: bytes, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with connected() as (peers, reports, scripted, connection):
        peers.send(2, scripted.peer, vote())
        for _ in range(2):
            await connection.receive()
        await connection.stream.send_all(sent)
        assert await reports.of(1) is await reports.of(2) is Failure.GARBLED
        assert await connection.is_closed_by_peer()
        assert await _works(peers, reports, scripted)
    (record,) = caplog.records
    fields = record.__dict__["fields"]
    assert (str(fields["peer"]), fields["api"]) == (scripted.address, "Vote")
    assert complaint in fields["error"]


async def test_an_answer_with_nothing_asked_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with connected() as (peers, reports, scripted, connection):
        asked = await connection.receive()
        await connection.answer(asked, vote_answer(1))
        await connection.answer(asked, vote_answer(2))
        assert await connection.is_closed_by_peer()
        assert await _works(peers, reports, scripted)
    assert reports.ids == [1, 99]
    (record,) = caplog.records
    assert "but no request is in flight" in record.__dict__["fields"]["error"]


@pytest.mark.parametrize("error", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST])
async def test_a_peer_that_refuses_to_name_its_versions_is_dropped(
    error: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote())
        connection = await scripted.accept()
        await connection.answer(await connection.receive(), versions_response({}, error))
        assert await reports.of(1) is Failure.GARBLED
        assert await connection.is_closed_by_peer()
    (record,) = caplog.records
    assert record.__dict__["fields"]["api"] == "ApiVersions"


# Cancelling.


async def test_cancelling_closes_the_connection_and_nothing_is_reported() -> None:
    async with connected() as (peers, reports, scripted, connection):
        parked = await connection.receive()
        connection.send_now(_answer(parked.correlation_id))  # it is there, but nobody has looked
        peers.cancel(1)
        assert await connection.is_closed_by_peer()
        assert await _works(peers, reports, scripted)
    assert reports.ids == [99]


async def test_cancelling_is_no_evidence_against_what_shares_the_connection() -> None:
    async with connected() as (peers, reports, scripted, connection):
        for request_id in (2, 3):
            peers.send(request_id, scripted.peer, vote())
        await connection.receive()
        peers.cancel(1)
        peers.cancel(3)
        assert await reports.of(2) is Failure.TIMED_OUT
        assert await connection.is_closed_by_peer()
    assert reports.ids == [2]


async def test_cancelling_leaves_the_other_lane_alone() -> None:
    async with connected() as (peers, reports, scripted, voting):
        peers.send(2, scripted.peer, fetch())
        fetching = await scripted.connected()
        await fetching.receive()
        peers.cancel(2)
        assert await fetching.is_closed_by_peer()
        await voting.answer(await voting.receive(), vote_answer(8))
        assert await reports.epoch_of(1) == 8


async def test_cancelling_before_the_versions_are_known_closes_the_connection() -> None:
    async with listening() as scripted, running() as (peers, reports):
        peers.send(1, scripted.peer, vote())
        connection = await scripted.accept()
        await connection.receive()
        peers.cancel(1)
        assert await connection.is_closed_by_peer()
        assert await _works(peers, reports, scripted)
    assert reports.ids == [99]


async def test_cancelling_ends_an_attempt_to_connect_that_hangs() -> None:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(0)
        peer = Peer(1, *listener.getsockname())
        with socket.create_connection(listener.getsockname()), trio.fail_after(GIVE_UP_S):
            # The queue of connections is full: this attempt gets no answer.
            async with running() as (peers, reports):
                peers.send(1, peer, vote())
                await trio.testing.wait_all_tasks_blocked(0.01)
                peers.cancel(1)
                await trio.testing.wait_all_tasks_blocked(0.01)
                listener.accept()[0].close()
                peers.send(2, peer, vote())
                await trio.lowlevel.wait_readable(listener)
                listener.accept()[0].close()
                assert await reports.of(2) is Failure.LOST
    assert reports.ids == [2]


async def test_cancelling_what_has_ended_does_nothing() -> None:
    async with connected() as (peers, reports, scripted, connection):
        await connection.answer(await connection.receive(), vote_answer(1))
        await reports.of(1)
        peers.cancel(1)
        peers.cancel(12345)
        peers.send(2, scripted.peer, vote())
        await connection.answer(await connection.receive(), vote_answer(2))
        assert await reports.epoch_of(2) == 2


# The end.


async def test_its_end_closes_every_connection_and_reports_nothing() -> None:
    async with listening() as scripted:
        async with running() as (peers, reports):
            peers.send(1, scripted.peer, vote())
            voting = await scripted.connected()
            peers.send(2, scripted.peer, fetch())
            fetching = await scripted.accept()
            await voting.receive()
        peers.send(3, scripted.peer, vote())
        assert await voting.is_closed_by_peer()
        assert await fetching.is_closed_by_peer()
        assert reports.ids == []


@pytest.mark.parametrize("error", [OSError("the disk is full"), trio.BrokenResourceError("ours")])
async def test_an_error_of_a_callback_is_not_taken_for_the_connections(error: Exception) -> None:
    def answered(request_id: int, response: Message) -> None:
        raise error

    reports = Reports()
    peers = Peers(answered, reports.add, client_id="7")
    async with listening() as scripted:
        with pytest.RaisesGroup(type(error), flatten_subgroups=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peers.run)
                peers.send(1, scripted.peer, vote())
                connection = await scripted.connected()
                await connection.answer(await connection.receive(), vote_answer(1))
                await trio.sleep_forever()
    assert reports.ids == []


async def test_a_peer_that_reads_nothing_holds_up_nobody_else() -> None:
    async with listening() as deaf, listening() as scripted, running() as (peers, reports):
        for number in range(100, 400):
            peers.send(number, deaf.peer, vote(cluster_id="x" * 30_000))
        await deaf.connected()
        assert await _works(peers, reports, scripted)
        peers.cancel(100)
        assert await reports.of(399) is Failure.TIMED_OUT


async def test_a_connection_attempt_that_hangs_delays_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its packets were lost; the system repeats them after seconds, and a new connection needn't wait."""
    really_open = peer_connection._open
    attempts: list[Address] = []

    async def lost_at_first(address: Address) -> trio.SocketStream:
        attempts.append(address)
        if len(attempts) == 1:
            await trio.sleep_forever()
        return await really_open(address)

    monkeypatch.setattr(peer_connection, "_open", lost_at_first)
    monkeypatch.setattr(peer_connection, "CONNECT_PATIENCE_S", 0)
    async with listening() as scripted, running() as (peers, reports):
        peers.send(98, scripted.peer, vote())
        await trio.testing.wait_all_tasks_blocked()
        assert await _works(peers, reports, scripted)
    assert len(attempts) == 2


# Warm connections.


async def test_both_connections_to_a_peer_are_opened_before_there_is_a_request() -> None:
    async with listening() as scripted, running() as (peers, _):
        peers.warm(scripted.peer)
        first, second = await scripted.connected(), await scripted.connected()
        peers.send(1, scripted.peer, vote())
        peers.send(2, scripted.peer, fetch(0))
        asked = {(await connection.receive()).api_key for connection in (first, second)}
        assert asked == {VOTE, FetchRequest.API_KEY}


async def test_connections_that_a_peer_closed_are_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "WARM_AGAIN_S", 0.001)
    async with listening() as scripted, running() as (peers, _), trio.open_nursery() as nursery:
        nursery.start_soon(peers.keep_warm, lambda: [scripted.peer], lambda: [scripted.peer])
        closed = [await scripted.connected(), await scripted.connected()]
        for connection in closed:
            connection.close_now()
        await scripted.connected()
        await scripted.connected()
        nursery.cancel_scope.cancel()


async def test_a_peer_whose_connection_broke_is_warmed_again_at_once() -> None:
    async with connected() as (peers, reports, scripted, connection):
        connection.close_now()
        await reports.of(1)
        peers.warm(scripted.peer)
        await scripted.connected()
        await scripted.connected()


async def test_a_peer_that_answers_is_out_of_reach_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    open_stream = peer_connection._open

    async def refuse(address: Address) -> trio.SocketStream:
        raise ConnectionRefusedError

    async with listening() as scripted, running() as (peers, reports):
        monkeypatch.setattr(peer_connection, "_open", refuse)
        peers.warm(scripted.peer)
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr(peer_connection, "_open", open_stream)
        assert await _works(peers, reports, scripted)
        peers.warm(scripted.peer)
        await scripted.connected()  # the lane of Fetches


async def test_a_peer_that_refused_is_left_alone_until_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Roles change several times in an election, and the leader that ended is still a voter."""
    attempts: list[Address] = []

    async def refuse(address: Address) -> trio.SocketStream:
        attempts.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(peer_connection, "_open", refuse)
    down = Peer(1, HOST, 9093)
    async with running() as (peers, _), trio.open_nursery() as nursery:
        for _ in range(3):
            peers.warm(down)
            await trio.testing.wait_all_tasks_blocked()
        assert len(attempts) == len(Lane)
        monkeypatch.setattr(peers_module, "WARM_AGAIN_S", 0.001)
        nursery.start_soon(peers.keep_warm, lambda: [down], lambda: [down])
        while len(attempts) < 2 * len(Lane):
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
