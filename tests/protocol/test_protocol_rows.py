"""Arrays that are read at once: the careful codec agrees, whatever shapes the elements have."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.fast_read import MOST_UUIDS, UUIDS
from kraft_wire.protocol.fast_rows import PAUSE, ReadRows, row_reader
from kraft_wire.protocol.fault import Fault
from kraft_wire.protocol.message import Message, decode_message_carefully
from kraft_wire.protocol.messages import metadata_response
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.uuid import Uuid

NODE_IDS = st.integers(-(2**31), 2**31 - 1)
COUNTS = st.sampled_from((0, 1, 2, 3, 3, 3, 16, 17, 126, 127, 130))


@st.composite
def partitions(draw: st.DrawFn) -> list[MetadataResponsePartition]:
    """Return partitions mostly of one shape; some differ in a count or have a tagged field."""
    shape = draw(st.tuples(COUNTS, COUNTS, COUNTS))
    count = draw(st.sampled_from((0, 1, 4, 5, 12, 12, 126, 127, 128, 300)))
    made = [_partition(index, *shape) for index in range(count)]
    for odd in draw(st.lists(st.integers(0, max(count - 1, 0)), max_size=2)) if count else ():
        made[odd] = _partition(odd, *draw(st.tuples(COUNTS, COUNTS, COUNTS)))
        made[odd].leader_id = draw(NODE_IDS)
        made[odd].unknown_tagged_fields = draw(st.sampled_from(((), ((3, b"x"),))))
    return made


def _partition(index: int, replicas: int, isr: int, offline: int) -> MetadataResponsePartition:
    three = [tuple(range(index, index + each)) for each in (replicas, isr, offline)]
    return MetadataResponsePartition(0, index, -index, 7, three[0], three[1], three[2])


def answer(cls: type[Message], data: bytes, version: int, *, carefully: bool) -> str:
    try:
        if carefully:
            return repr(decode_message_carefully(cls, data, version, 0))
        return repr(cls.decode_from(data, version, 0))
    except ProtocolError as error:
        return repr(error)


@given(st.lists(partitions(), max_size=4), st.data())
def test_any_mixture_of_shapes_is_read_as_it_was_written(
    all_partitions: list[list[MetadataResponsePartition]], data: st.DataObject
) -> None:
    topics = [MetadataResponseTopic(name=str(n), partitions=each) for n, each in enumerate(all_partitions)]
    message = MetadataResponse(topics=topics)
    raw = message.encode(12)
    assert MetadataResponse.decode(raw, 12) == message
    assert MetadataResponse.decode_from(b"---" + raw + b"--", 12, 3) == (message, len(raw) + 3)

    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    assert answer(MetadataResponse, cut, 12, carefully=False) == answer(
        MetadataResponse, cut, 12, carefully=True
    )
    changed = bytearray(raw)
    for position in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=2)):
        changed[position] = data.draw(st.sampled_from((0, 1, 2, 4, 127, 128, 255)))
    damaged = bytes(changed)
    assert answer(MetadataResponse, damaged, 12, carefully=False) == answer(
        MetadataResponse, damaged, 12, carefully=True
    )


@pytest.mark.parametrize("count", [5, 12, 127, 128, 1000])
def test_elements_of_one_shape_need_neither_a_loop_nor_help(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [_partition(index, 3, 2, 0) for index in range(count)]
    raw = MetadataResponse(topics=[MetadataResponseTopic(name="", partitions=made)]).encode(12)
    for _ in range(PAUSE):
        MetadataResponse.decode(raw, 12)

    def unexpected(*_: object) -> None:
        raise AssertionError("one element was read by itself")

    monkeypatch.setattr(metadata_response, "_read_hiiiB", unexpected)
    monkeypatch.setattr(metadata_response, "decode_message_carefully", unexpected)
    topic = MetadataResponse.decode(raw, 12).topics[0]
    assert topic.partitions == made
    assert type(topic.partitions) is list
    assert {type(each.isr_nodes) for each in topic.partitions} == {tuple}


def test_ids_in_rows_are_ids() -> None:
    ids = [Uuid(bytes((n,)) * 16) for n in range(30)]
    made = [PartitionData(n, 1, 2, each, ids[-n], 3, 4, n % 2 == 0) for n, each in enumerate(ids)]
    message = VoteRequest("c", 1, [TopicData("t", made)])
    decoded = VoteRequest.decode(message.encode(2), 2)
    assert decoded == message
    assert {type(each.replica_directory_id) for each in decoded.topics[0].partitions} == {Uuid}
    assert {type(each.pre_vote) for each in decoded.topics[0].partitions} == {bool}


ELEMENT = b"\x00\x05" + b"\x02" + b"\x00\x00\x00\x09" + b"\x00"
OTHER = b"\x00\x06" + b"\x01" + b"\x00"
TAGGED = ELEMENT[:-1] + b"\x01"


def fresh_reader() -> ReadRows:
    """Return a reader without cached plans."""
    return row_reader.__wrapped__("h i*")


@pytest.mark.parametrize(
    "rows",
    [
        ELEMENT * 4 + OTHER,
        OTHER + ELEMENT * 4,
        ELEMENT * 5,
        ELEMENT * 5 + ELEMENT[:-1],
        ELEMENT * 5 + TAGGED,
        ELEMENT * 5 + b"\x00\x05\x00\x00",
        b"\x00\x05\x80\x01" * 6,
    ],
)
def test_nothing_is_read_where_an_element_differs_or_is_missing(rows: bytes) -> None:
    read = fresh_reader()
    assert read(b"-" + rows, 1, 7) == (((), ()), 7, 1)
    # Earlier arrays make no difference.
    read = fresh_reader()
    assert read(ELEMENT * 6, 0, 7)[1:] == (1, 48)
    assert read(b"-" + rows, 1, 7) == (((), ()), 7, 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 150)), max_size=40))
def test_arrays_of_changing_shapes(shapes: list[tuple[int, int]]) -> None:
    read = fresh_reader()
    for length, count in shapes:
        values = tuple(range(length))
        rows = struct.pack(f">hB{length}iB", 7, length + 1, *values, 0) * count
        columns, size, pos = read(b"--" + rows + b"-", 2, count + 1)
        assert list(zip(*columns, strict=True)) == [(7, values)] * count
        assert (size, pos) == (1, 2 + len(rows))


def test_after_differing_elements_the_next_arrays_are_read_one_by_one() -> None:
    read = fresh_reader()
    read(ELEMENT * 4 + OTHER, 0, 6)
    for _ in range(PAUSE):
        assert read(ELEMENT * 5, 0, 6)[1:] == (6, 0)
    assert read(ELEMENT * 5, 0, 6)[1:] == (1, 40)


def test_no_plan_is_made_for_more_than_there_can_be() -> None:
    """A large count alone must cost nothing."""
    read = fresh_reader()
    tracemalloc.start()
    try:
        for size in (128, 100_000, 1_000_001):
            assert read(b"-" + bytes(50), 1, size) == (((), ()), size, 1)
        assert tracemalloc.get_traced_memory()[1] < 4096
    finally:
        tracemalloc.stop()


class TestUuids:
    def test_the_same_bytes_give_the_same_id(self) -> None:
        raw = bytes(range(100, 116))
        assert type(UUIDS[raw]) is Uuid
        assert UUIDS[raw] == Uuid(raw)
        assert UUIDS[raw] is UUIDS[bytes(bytearray(raw))]

    def test_they_are_not_kept_for_ever(self) -> None:
        for number in range(MOST_UUIDS + 10):
            assert UUIDS[number.to_bytes(16)] == Uuid(number.to_bytes(16))
            assert len(UUIDS) <= MOST_UUIDS

    @pytest.mark.parametrize("length", [0, 15, 17])
    def test_other_lengths_are_no_ids(self, length: int) -> None:
        with pytest.raises(Fault):
            UUIDS[bytes(length)]
        assert bytes(length) not in UUIDS
