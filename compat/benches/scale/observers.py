"""Let very many pretend brokers follow the metadata log, and measure what that costs the controller."""

from __future__ import annotations

import resource
import select
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from compat.benches.scale.java_heap import give_heap
from compat.benches.scale.pretend_fetcher import FetchFrame, PretendFetcher, batches_of
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import (
    REGISTRATION_VERSION,
    heartbeat,
    random_uuid,
    registration,
    supported_features,
)
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient, describe_quorum
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import decode_response, encode_request

HEARTBEAT_VERSION: Final = 1
CHANGE_VERSION: Final = 1
FIRST_BROKER: Final = 1000
TOPIC: Final = "observed"
FIRST_VALUE: Final = 10_000_000_000
"""Each change sets another ``retention.ms``, by which its record is found in the log."""
SETTLE_S: Final = 3.0
PATIENCE_S: Final = 20.0
AT_ONCE: Final = 64
"""Sockets that are read before the clock is looked at again."""


class ObserverSizes(msgspec.Struct, frozen=True):
    """How many brokers follow the log, with which version of Fetch, and how much is changed."""

    fetch_version: int
    brokers: int = 1000
    changes_a_second: int = 20
    seconds: float = 20.0
    heartbeat_every_s: float = 2.0


class ObserverFigures(msgspec.Struct, frozen=True):
    """What the brokers cost, and how soon all of them had a change.

    The shares are of one core. Times are from the change's request until all brokers have its record, until
    all know that it is committed, and until the request is answered.
    """

    controller_share: float
    client_share: float
    fetches_a_second: float
    had_ms: list[float]
    known_ms: list[float]
    answered_ms: list[float]
    heartbeats_ms: list[float]
    unknown: int
    """Changes that some brokers didn't know in the end."""


class _Member(msgspec.Struct, frozen=True):
    """A registered broker: the connection of its heartbeats and the frame of one."""

    id: int
    directory: Uuid
    socket: socket.socket
    beat: bytes


def measure_observers(
    kind: ControllerKind, folder: Path, tools: ToolServer, sizes: ObserverSizes
) -> ObserverFigures:
    """Register the brokers, let them follow the log while it changes, and measure."""
    _allow_sockets(3 * sizes.brokers)
    properties = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}
    with Workspace(folder / f"{kind}-observed-{sizes.fetch_version}") as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind], "dynamic", properties)
        give_heap(quorum)
        quorum.format()
        quorum.start()
        leader = quorum.leader()
        members = _register(leader.port, quorum.cluster_id, sizes.brokers)
        load = _Load(leader.port, quorum.cluster_id, members, sizes)
        process = leader.running_process
        load.run_for(SETTLE_S, changes=False)
        before = len(load.heartbeats_ms)
        began_s, spent_s, own_s = time.perf_counter(), process.cpu_seconds(), time.process_time()
        answers = load.answers
        load.run_for(sizes.seconds, changes=True)
        took_s = time.perf_counter() - began_s
        controller_share = (process.cpu_seconds() - spent_s) / took_s
        client_share = (time.process_time() - own_s) / took_s
        fetches_a_second = (load.answers - answers) / took_s
        lacking = load.finish()
        load.close()
    return ObserverFigures(
        controller_share,
        client_share,
        fetches_a_second,
        load.changes.had_ms,
        load.changes.known_ms,
        load.answered_ms,
        load.heartbeats_ms[before:],
        lacking,
    )


def _allow_sockets(count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(count, 1024), most), most))


# Registration.


def _register(port: int, cluster_id: str, count: int) -> list[_Member]:
    """Register brokers, and send heartbeats until they are unfenced."""
    with WireClient(port) as client:
        features = supported_features(client)
    directories = {id: random_uuid() for id in range(FIRST_BROKER, FIRST_BROKER + count)}
    clients = {id: WireClient(port, client_id=str(id), timeout_s=PATIENCE_S) for id in directories}
    for id, client in clients.items():
        client.send(registration(id, cluster_id, directories[id], features), REGISTRATION_VERSION)
    epochs = {id: client.receive(BrokerRegistrationResponse).broker_epoch for id, client in clients.items()}
    for client in clients.values():
        client.close()
    members = []
    for id, directory in directories.items():
        request = heartbeat(id, epochs[id])
        beat = frame(encode_request(request.API_KEY, HEARTBEAT_VERSION, 0, str(id), request))
        members.append(_Member(id, directory, _connect(port), beat))
    wait_until(lambda: _all_unfenced(port, epochs), "all pretend brokers to be unfenced", PATIENCE_S)
    return members


def _all_unfenced(port: int, epochs: dict[int, int]) -> bool:
    with WireClient(port, timeout_s=PATIENCE_S) as client:
        answers = [
            client.call(heartbeat(id, epoch), HEARTBEAT_VERSION, BrokerHeartbeatResponse)
            for id, epoch in epochs.items()
        ]
    return not any(answer.is_fenced for answer in answers)


def _connect(port: int) -> socket.socket:
    connected = socket.create_connection((HOST, port), timeout=PATIENCE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


# Changes.


class _Lacking(msgspec.Struct):
    """The changes in one batch, how many brokers lack the batch, and how many don't know its commit."""

    changes: list[int]
    lacking: int
    not_knowing: int


class _Changes:
    """The changes on their way: when each was sent, and which brokers have it and know it."""

    def __init__(self, brokers: int) -> None:
        self.had_ms: list[float] = []
        self.known_ms: list[float] = []
        self._brokers = brokers
        self._sent_s: list[float] = []
        self._found = 0
        self._last_end = 0
        self._batches: dict[int, _Lacking] = {}
        """By the end offset of a batch."""

    def next_value(self) -> str:
        """Return the value of the next change, which is sent now."""
        self._sent_s.append(time.perf_counter())
        return str(FIRST_VALUE + len(self._sent_s) - 1)

    @property
    def unknown(self) -> int:
        """How many of the changes that were sent aren't known to all brokers."""
        return len(self._sent_s) - len(self.known_ms)

    def progressed(self, had: int, has: int, knew: int, knows: int, data: bytes) -> None:
        """Take note that one broker has more, or knows more, by the response ``data``."""
        if has > self._last_end:
            self._find(data)
            self._last_end = has
        for end_offset, batch in list(self._batches.items()):
            if had < end_offset <= has:
                batch.lacking -= 1
                if not batch.lacking:
                    self.had_ms += self._ages_ms(batch)
            if knew < end_offset <= knows:
                batch.not_knowing -= 1
                if not batch.not_knowing:
                    self.known_ms += self._ages_ms(batch)
                    del self._batches[end_offset]

    def _find(self, data: bytes) -> None:
        """Find the changes that no broker had before."""
        for end_offset, start, stop in batches_of(data):
            if end_offset <= self._last_end:
                continue
            changes = []
            while self._found < len(self._sent_s) and self._value(self._found) in data[start:stop]:
                changes.append(self._found)
                self._found += 1
            if changes:
                self._batches[end_offset] = _Lacking(changes, self._brokers, self._brokers)

    def _value(self, change: int) -> bytes:
        return str(FIRST_VALUE + change).encode()

    def _ages_ms(self, batch: _Lacking) -> list[float]:
        now_s = time.perf_counter()
        return [(now_s - self._sent_s[change]) * 1000 for change in batch.changes]


# The load.


class _Asker:
    """A connection whose requests are answered in their order; ``answered_ms`` has how long each took."""

    __slots__ = ("_asked_s", "_check", "_left", "_socket", "answered_ms")

    def __init__(
        self, connected: socket.socket, answered_ms: list[float], check: Callable[[bytes], None]
    ) -> None:
        self._socket = connected
        self._check = check
        self._left = b""
        self._asked_s: list[float] = []
        self.answered_ms = answered_ms

    def ask(self, request: bytes) -> None:
        self._asked_s.append(time.perf_counter())
        self._socket.send(request)

    def readable(self) -> None:
        data = self._left + self._socket.recv(1 << 16)
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4])):
            self._check(data[4:end])
            self.answered_ms.append((time.perf_counter() - self._asked_s.pop(0)) * 1000)
            data = data[end:]
        self._left = data


def _check_beat(answer: bytes) -> None:
    """Raise ProcessFailed unless a heartbeat was successful: header 1, throttle time, then the error."""
    error, is_fenced = int.from_bytes(answer[9:11]), answer[12]
    if error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT) or is_fenced:
        raise ProcessFailed(f"a heartbeat was answered with {ErrorCode(error).name}, fenced {is_fenced}")


def _check_change(answer: bytes) -> None:
    _, response = decode_response(IncrementalAlterConfigsRequest.API_KEY, CHANGE_VERSION, answer)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    for changed in response.responses:
        if changed.error_code:
            raise ProcessFailed(f"a change was answered with {ErrorCode(changed.error_code).name}")


class _Load:
    """All brokers and the client that changes something, in one loop."""

    def __init__(self, port: int, cluster_id: str, members: list[_Member], sizes: ObserverSizes) -> None:
        with WireClient(port) as client:
            create = CreateTopicsRequest(topics=[CreatableTopic(TOPIC, 1, 1)])
            client.call(create, 7, CreateTopicsResponse)
            log = describe_quorum(client).topics[0].partitions[0]
        self.changes = _Changes(len(members))
        self.answered_ms: list[float] = []
        self.heartbeats_ms: list[float] = []
        self._sizes = sizes
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._sockets: list[socket.socket] = []
        self._fetchers = []
        self._beats = []
        for member in members:
            asker = _Asker(member.socket, self.heartbeats_ms, _check_beat)
            self._watch(member.socket, asker.readable)
            self._beats.append(partial(asker.ask, member.beat))
            connected = _connect(port)
            request = FetchFrame(
                sizes.fetch_version, cluster_id, member.id, member.directory, log.leader_epoch
            )
            fetcher = PretendFetcher(connected, request, log.high_watermark, self.changes.progressed)
            self._watch(connected, fetcher.readable)
            self._fetchers.append(fetcher)
        connected = _connect(port)
        self._client = _Asker(connected, self.answered_ms, _check_change)
        self._watch(connected, self._client.readable)
        self._next_beat = 0
        self._next_beat_s = time.perf_counter()
        for fetcher in self._fetchers:
            fetcher.fetch()

    @property
    def answers(self) -> int:
        """The answers to Fetches so far."""
        return sum(fetcher.answers for fetcher in self._fetchers)

    def run_for(self, seconds: float, *, changes: bool) -> None:
        """Keep everything going, and change something at a steady pace."""
        interval_s = 1 / self._sizes.changes_a_second
        ends_s = time.perf_counter() + seconds
        change_s = time.perf_counter() + interval_s if changes else ends_s
        while (now_s := time.perf_counter()) < ends_s:
            if now_s >= change_s:
                self._client.ask(_change(self.changes.next_value()))
                change_s += interval_s
            self._turn(min(change_s, ends_s))

    def finish(self) -> int:
        """Go on until all brokers know all changes; return how many they don't after a while."""
        ends_s = time.perf_counter() + PATIENCE_S
        while self.changes.unknown and time.perf_counter() < ends_s:
            self._turn(ends_s)
        return self.changes.unknown

    def close(self) -> None:
        """Close all connections."""
        self._epoll.close()
        for connected in self._sockets:
            connected.close()

    def _turn(self, until_s: float) -> None:
        """Send the heartbeats that are due, and read some of the answers that are there."""
        while self._next_beat_s <= time.perf_counter():
            self._beats[self._next_beat]()
            self._next_beat = (self._next_beat + 1) % len(self._beats)
            self._next_beat_s += self._sizes.heartbeat_every_s / len(self._beats)
        timeout_s = max(0.0, min(until_s, self._next_beat_s) - time.perf_counter())
        for descriptor, _ in self._epoll.poll(timeout_s, AT_ONCE):
            self._readers[descriptor]()

    def _watch(self, connected: socket.socket, readable: Callable[[], None]) -> None:
        self._epoll.register(connected, select.EPOLLIN)
        self._readers[connected.fileno()] = readable
        self._sockets.append(connected)


def _change(value: str) -> bytes:
    config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(ResourceType.TOPIC, TOPIC, [config])])
    return frame(encode_request(request.API_KEY, CHANGE_VERSION, 0, "bench", request))
