"""Compiled methods are called like the methods that they replace."""

from __future__ import annotations

from enum import IntEnum
from inspect import signature
from typing import Any

import pytest

from kraft_wire.protocol.errors import DecodeError, EncodeError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.vote_request import TopicData, VoteRequest

BLOB = b"records" * 10_000
RAW = VoteRequest("cluster", 7).encode(2)


class Version(IntEnum):
    TWO = 2


class OwnVote(VoteRequest, gc=False):
    """A subclass, as a user may write one."""

    note: str = ""


def fetched(records: bytes | None) -> FetchResponse:
    partition = PartitionData(7, records=records, diverging_epoch=EpochEndOffset(3, 4))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


def test_arguments_may_be_named() -> None:
    message = VoteRequest("cluster", 7)
    assert VoteRequest.decode(RAW, version=2) == VoteRequest.decode(data=RAW, version=2) == message
    assert VoteRequest.decode_from(RAW, 2, pos=0) == VoteRequest.decode_from(pos=0, data=RAW, version=2)
    assert VoteRequest.decode_from(version=2, data=RAW, pos=0) == (message, len(RAW))
    assert message.encode(version=2) == RAW
    out: list[bytes] = []
    message.encode_into(out, version=2)
    message.encode_into(version=2, out=out)
    assert b"".join(out) == 2 * RAW


@pytest.mark.parametrize(
    "arguments",
    [(), (RAW,), (RAW, 2, 0, [], 0), (RAW, "2"), (None, 2), ("text", 2), (RAW, None)],
)
def test_wrong_arguments_are_type_errors(arguments: tuple[Any, ...]) -> None:
    unknown: dict[str, Any] = {"unknown": 0}
    with pytest.raises(TypeError):
        VoteRequest.decode(*arguments)
    with pytest.raises(TypeError):
        VoteRequest.decode_from(*arguments)
    with pytest.raises(TypeError):
        VoteRequest().encode(*arguments)
    with pytest.raises((TypeError, AttributeError)):
        VoteRequest().encode_into(*arguments)
    with pytest.raises(TypeError):
        VoteRequest.decode(RAW, 2, **unknown)


def test_methods_belong_to_their_class() -> None:
    with pytest.raises(TypeError):
        VoteRequest.encode(BrokerHeartbeatRequest(), 1)  # type: ignore[arg-type]


def test_versions_of_other_types_than_int_are_what_they_are_in_python() -> None:
    assert VoteRequest.decode(RAW, Version.TWO) == VoteRequest("cluster", 7)
    assert VoteRequest("cluster", 7).encode(Version.TWO) == RAW


@pytest.mark.parametrize("version", [-1, 3, 2**40, -(2**40)])
def test_versions_that_do_not_exist_are_refused(version: int) -> None:
    for call in (
        lambda: VoteRequest.decode(RAW, version),
        lambda: VoteRequest.decode_from(RAW, version, 0),
        lambda: VoteRequest().encode(version),
        lambda: VoteRequest().encode_into([], version),
    ):
        with pytest.raises(UnsupportedVersion):
            call()


def test_a_position_behind_the_data_is_an_error() -> None:
    assert VoteRequest.decode_from(b"..." + RAW, 2, 3) == (VoteRequest("cluster", 7), 3 + len(RAW))
    for pos in (len(RAW), len(RAW) + 1, 2**40):
        with pytest.raises(DecodeError):
            VoteRequest.decode_from(RAW, 2, pos)


def test_an_instance_decodes_as_its_class_does() -> None:
    assert VoteRequest().decode(RAW, 2) == VoteRequest("cluster", 7)


def test_a_subclass_can_be_encoded() -> None:
    own = OwnVote("cluster", 7, note="mine")
    assert own.encode(2) == RAW
    out: list[bytes] = []
    own.encode_into(out, 2)
    assert b"".join(out) == RAW
    assert OwnVote.decode(RAW, 2) == VoteRequest("cluster", 7)


def test_a_subclass_among_the_elements_can_be_encoded() -> None:
    class OwnTopic(TopicData, gc=False):
        pass

    assert VoteRequest(topics=[OwnTopic("t")]).encode(2) == VoteRequest(topics=[TopicData("t")]).encode(2)


def test_a_blob_becomes_a_piece_without_a_copy() -> None:
    out = [b"before"]
    fetched(BLOB).encode_into(out, 17)
    assert [piece for piece in out if piece is BLOB] == [BLOB]
    assert b"".join(out) == b"before" + fetched(BLOB).encode(17)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 1000, 4095, 4096, 16_384, 70_000])
@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_blobs_of_any_size_come_back(size: int, version: int) -> None:
    message = fetched(BLOB[:size])
    message.responses[0].topic = "" if version > 12 else "t"
    if version < 12:
        message.responses[0].partitions[0].diverging_epoch = EpochEndOffset()
    raw = message.encode(version)
    out: list[bytes] = []
    message.encode_into(out, version)
    assert b"".join(out) == raw
    assert FetchResponse.decode(raw, version) == message


def test_nothing_is_appended_where_encoding_fails_behind_a_blob() -> None:
    message = fetched(BLOB)
    message.responses.append(FetchableTopicResponse(partitions=None))  # type: ignore[arg-type]
    out = [b"before"]
    with pytest.raises(EncodeError):
        message.encode_into(out, 17)
    assert out == [b"before"]


def test_equal_neighbouring_arrays_are_read_as_one_tuple_and_others_are_not() -> None:
    for isr in ((1, 2, 3), (1, 2), (3, 2, 1), (), (1, 2, 3, 4)):
        record = PartitionRecord(replicas=(1, 2, 3), isr=isr, removing_replicas=(9,), adding_replicas=(9,))
        decoded = PartitionRecord.decode(record.encode(2), 2)
        assert decoded == record
        assert (decoded.isr is decoded.replicas) == (isr == (1, 2, 3))


def test_methods_say_what_they_do() -> None:
    assert str(signature(VoteRequest.decode)) == "(data, version)"
    assert str(signature(VoteRequest.encode_into)) == "(self, /, out, version)"
    for method in (VoteRequest.decode, VoteRequest.decode_from, VoteRequest.encode, VoteRequest.encode_into):
        assert method.__doc__


def test_messages_are_still_of_the_generated_classes() -> None:
    decoded = VoteRequest.decode(RAW, 2)
    assert type(decoded) is VoteRequest
    assert isinstance(decoded, Message)
