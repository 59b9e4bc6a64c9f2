"""Mistakes of other codecs, kio 0.6.5 and kafka-python 3.0.12, each as a test of ours."""

from __future__ import annotations

import tracemalloc

import pytest

from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from tests.support.both_codecs import read, unreadable, unwritable, written

HEARTBEAT = bytes.fromhex("00000001 0000000000000002 0000000000000003 00 00")
"""Versions 0 and 1 without their tags."""


class TestKio:
    def test_an_unknown_tag_is_kept(self) -> None:
        raw = HEARTBEAT + b"\x01\x63\x02ab"
        request = read(BrokerHeartbeatRequest, raw, 1)
        assert request.unknown_tagged_fields == ((99, b"ab"),)
        assert written(request, 1) == raw

    def test_a_bool_of_2_is_true(self) -> None:
        request = read(BrokerHeartbeatRequest, HEARTBEAT[:-2] + b"\x02\xff\x00", 1)
        assert (request.want_fence, request.want_shut_down) == (True, True)

    def test_malformed_text_is_replaced(self) -> None:
        assert read(TopicRecord, b"\x04a\xffb" + bytes(17), 0).name == "a\N{REPLACEMENT CHARACTER}b"

    @pytest.mark.parametrize("byte", [0x80, 0x81, 0xFE, 0xFF])
    def test_a_struct_is_null_for_any_negative_byte(self, byte: int) -> None:
        raw = written(ConsumerGroupHeartbeatResponse(assignment=None), 0)
        assert raw[-2:] == b"\xff\x00"
        response = read(ConsumerGroupHeartbeatResponse, raw[:-2] + bytes((byte, 0)), 0)
        assert response.assignment is None

    @pytest.mark.parametrize("byte", [0x00, 0x02, 0x7F])
    def test_a_struct_is_present_for_any_other_byte(self, byte: int) -> None:
        raw = written(ConsumerGroupHeartbeatResponse(assignment=Assignment()), 0)
        assert raw[-4:] == b"\x01\x01\x00\x00"
        response = read(ConsumerGroupHeartbeatResponse, raw[:-4] + bytes((byte,)) + raw[-3:], 0)
        assert response.assignment == Assignment()

    @pytest.mark.parametrize("version", [4, 7])
    def test_text_of_more_than_32767_bytes_is_not_written(self, version: int) -> None:
        error = unwritable(CreateTopicsRequest([CreatableTopic("x" * 32768)]), version)
        assert "topics[0].name: is a string of 32768 bytes" in str(error)

    @pytest.mark.parametrize(
        ("tail", "field"),
        [
            # 29 bytes that claim to hold 268 million directories.
            (b"\x01\x00\x04\xff\xff\xff\x7f", "offline_log_dirs"),
            (b"\x01\x00\x05\xff\xff\xff\xff\x07", "offline_log_dirs"),
            (b"\x01\x09\xff\xff\xff\xff\x07", ""),
            (b"\xff\xff\xff\xff\x07", ""),
        ],
    )
    def test_no_memory_is_taken_for_a_length_from_the_wire(self, tail: bytes, field: str) -> None:
        raw = HEARTBEAT + tail
        assert len(raw) <= 31
        assert unreadable(BrokerHeartbeatRequest, raw, 1)[0] == field
        # The minimum of several, because other threads of this process take memory too.
        assert min(peak_bytes(raw) for _ in range(5)) < 50_000


def peak_bytes(raw: bytes) -> int:
    """Return the peak memory of the refusal of a heartbeat."""
    tracemalloc.start()
    try:
        unreadable(BrokerHeartbeatRequest, raw, 1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestKafkaPython:
    def test_unknown_tags_are_written_again(self) -> None:
        record = TopicRecord("a", unknown_tagged_fields=((3, b"x"), (200, b"")))
        raw = written(record, 0)
        assert raw.endswith(b"\x02\x03\x01x\xc8\x01\x00")
        assert written(read(TopicRecord, raw, 0), 0) == raw

    def test_tagged_fields_are_written_in_the_order_of_their_tags(self) -> None:
        # Directories, tag 8, are declared before tags 6 and 7.
        record = PartitionChangeRecord(
            directories=(), eligible_leader_replicas=(), last_known_elr=(), leader=1
        )
        raw = written(record, 2)
        assert (
            raw[20:] == b"\x04" + b"\x01\x04\0\0\0\x01" + b"\x06\x01\x01" + b"\x07\x01\x01" + b"\x08\x01\x01"
        )
        assert read(PartitionChangeRecord, raw, 2) == record

    def test_a_tagged_struct_has_tags_of_its_own(self) -> None:
        part = PartitionData(diverging_epoch=EpochEndOffset(3, 4, ((7, b"q"),)), records=b"")
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[part])])
        raw = written(response, 17)
        assert b"\x01\x07\x01q" in raw
        assert read(FetchResponse, raw, 17) == response

    @pytest.mark.parametrize(("count", "version"), [(b"\xff\xff\xff\x7f", 7), (b"\x7f\xff\xff\xff", 4)])
    def test_too_long_an_array_is_refused_before_its_elements(self, count: bytes, version: int) -> None:
        field, offset, reason = unreadable(CreateTopicsRequest, count + bytes(100), version)
        assert (field, offset) == ("topics", 4)
        assert reason.endswith("elements in 100 remaining bytes")
