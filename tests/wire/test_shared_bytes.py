"""What the responses of several connections have in common is in memory once, and is freed with the last."""

from __future__ import annotations

import weakref
from random import Random

import pytest

from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.wire.client_side import ClientSide, Response
from kraft_wire.wire.server_side import ServedApi, ServerSide, Slot, answer_alike, decoded_bytes
from kraft_wire.wire.shared_bytes import SHARED_FROM, SharedBytes, encode_in_parts, share, size_of

VERSION = 17


class Connection:
    """A replica's connection, whose client sends and reads nothing by itself."""

    def __init__(self) -> None:
        self.server = ServerSide(
            lambda api_key, version: ServedApi(FetchRequest, 100),
            10_000,
            lambda: None,
            lambda slot, error: None,
        )
        self.client = ClientSide("replica", 1 << 26)
        self._fetches = 0

    def fetch(self) -> Slot:
        self._fetches += 1
        self.server.receive(self.client.send(FetchRequest(), VERSION, request_id=self._fetches))
        frame = self.server.next_frame()
        assert frame is not None
        return self.server.take(frame).slot

    def send_all(self) -> None:
        while data := self.server.take_ready():
            self.client.receive(data)
            self.server.sent(len(data))

    def received(self) -> list[tuple[int, FetchResponse]]:
        found = []
        while (event := self.client.next_event()) is not None:
            assert isinstance(event, Response)
            assert isinstance(event.message, FetchResponse)
            found.append((event.request_id, event.message))
        return found


def answer(records: bytes) -> FetchResponse:
    partition = PartitionData(partition_index=0, high_watermark=0, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


def records_of(size_bytes: int, seed: int = 0) -> bytes:
    return Random(seed).randbytes(size_bytes)


def test_records_are_shared_and_held_by_none_alone() -> None:
    connections = [Connection() for _ in range(3)]
    records = records_of(SHARED_FROM)
    answer_alike([each.fetch() for each in connections], answer(records))
    held = {id(part) for each in connections for part in each.server.shared}
    assert len(held) == 1
    assert all(part.data is records for each in connections for part in each.server.shared)
    assert all(each.server.held_bytes < 200 for each in connections)


def test_answers_one_after_the_other_share_the_same_records() -> None:
    records = records_of(SHARED_FROM)
    connections = [Connection(), Connection()]
    for each in connections:
        answer_alike([each.fetch()], answer(records))
    (one,), (other,) = (each.server.shared for each in connections)
    assert one is other


def test_equal_records_of_other_reads_are_not_mistaken_for_the_same() -> None:
    one, other = share(records_of(SHARED_FROM)), share(records_of(SHARED_FROM))
    assert one is not other


def test_small_records_are_copied() -> None:
    connection = Connection()
    answer_alike([connection.fetch()], answer(records_of(SHARED_FROM // 2)))
    assert not connection.server.shared
    assert connection.server.held_bytes > SHARED_FROM // 2


def test_shared_bytes_are_freed_when_the_last_connection_has_sent_them() -> None:
    connections = [Connection(), Connection()]
    answer_alike([each.fetch() for each in connections], answer(records_of(SHARED_FROM)))
    shared = weakref.ref(next(iter(connections[0].server.shared)))
    connections[0].send_all()
    assert shared() is not None
    connections[1].send_all()
    assert shared() is None
    assert [each.server.held_bytes for each in connections] == [0, 0]


def test_shared_bytes_are_freed_when_the_last_connection_ends() -> None:
    connection = Connection()
    answer_alike([connection.fetch()], answer(records_of(SHARED_FROM)))
    shared = weakref.ref(next(iter(connection.server.shared)))
    connection.server.close()
    assert shared() is None


def test_an_answer_after_the_end_is_not_held() -> None:
    connection = Connection()
    slots = [connection.fetch(), connection.fetch()]
    connection.server.close()
    answer_alike(slots, answer(records_of(SHARED_FROM)))
    slots[0].answer(answer(records_of(SHARED_FROM)))
    assert (slots[0].payload, slots[1].payload, connection.server.held_bytes) == (None, None, 0)


def test_what_is_being_sent_is_held_until_its_last_byte() -> None:
    connection = Connection()
    connection.fetch().answer(answer(records_of(1_000)))
    data = connection.server.take_ready()
    connection.server.sent(len(data) - 1)
    assert connection.server.held_bytes == len(data)
    connection.server.sent(1)
    assert connection.server.held_bytes == 0


def test_a_request_counts_until_it_is_answered() -> None:
    connection = Connection()
    slot = connection.fetch()
    held = connection.server.held_bytes
    assert held == slot.decoded_bytes > 0
    connection.fetch()
    assert connection.server.held_bytes == 2 * held
    slot.answer(answer(b""))
    connection.send_all()
    assert connection.server.held_bytes == held


def test_a_small_request_counts_several_times_and_a_long_value_twice() -> None:
    assert decoded_bytes(1_000) == 8_000
    assert 2 << 26 < decoded_bytes(1 << 26) < 3 << 26


def test_the_parts_of_a_response_are_its_bytes() -> None:
    for size_bytes in (0, 1, SHARED_FROM - 1, SHARED_FROM, 5 * SHARED_FROM):
        response = answer(records_of(size_bytes))
        parts = encode_in_parts(response, VERSION)
        whole = b"".join(part.data if isinstance(part, SharedBytes) else part for part in parts)
        assert whole == response.encode(VERSION)
        assert sum(map(size_of, parts)) == len(whole)


@pytest.mark.parametrize("seed", range(200))
def test_responses_arrive_in_order_however_they_are_cut(seed: int) -> None:
    random = Random(seed)
    connection = Connection()
    slots: dict[int, Slot] = {}
    expected = {}
    asked = 0
    for _ in range(60):
        if random.random() < 0.5:
            asked += 1
            slots[asked] = connection.fetch()
            expected[asked] = answer(records_of(random.choice((0, 10, SHARED_FROM, 3 * SHARED_FROM)), asked))
        elif slots and random.random() < 0.7:
            number = random.choice(list(slots))
            slot = slots.pop(number)
            if random.random() < 0.5:
                answer_alike([slot], expected[number])
            else:
                slot.answer(expected[number])
        elif data := connection.server.take_ready():
            cut = random.randrange(len(data))
            for piece in (data[:cut], data[cut:]):
                connection.client.receive(piece)
                connection.server.sent(len(piece))
    for number, slot in slots.items():
        answer_alike([slot], expected[number])
    connection.send_all()
    assert connection.received() == [(number, expected[number]) for number in range(1, asked + 1)]
    assert (connection.server.held_bytes, len(connection.server.shared), connection.server.has_room) == (
        0,
        0,
        True,
    )
