"""KRaft's messages with one topic and one partition have special code, with the results of the general
code."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest

from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully
from kraft_wire.protocol.messages import fetch_response
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.tier import PURE, tier_of
from tests.support.random_messages import random_message

NAMES = [
    "VoteRequest",
    "VoteResponse",
    "BeginQuorumEpochResponse",
    "EndQuorumEpochResponse",
    "FetchRequest",
    "FetchResponse",
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
]
INSTANCES = 60


def about_one_topic(random: Random, name: str) -> tuple[Any, int]:
    """Return a message at its newest version, mostly with one topic of one partition, and with random
    contents."""
    cls = message_class(name)
    version = cls.MAX_VERSION
    message = random_message(random, cls, version)
    topics = "responses" if name == "FetchResponse" else "topics"
    setattr(message, topics, _one(random, getattr(message, topics)))
    for topic in getattr(message, topics):
        topic.partitions = _one(random, topic.partitions)
        for partition in topic.partitions:
            if isinstance(partition, PartitionData):
                partition.aborted_transactions = random.choice((None, [], [AbortedTransaction(1, 2)]))
                partition.records = random.choice((None, b"", bytes(127), bytes(20_000), bytes(2_100_000)))
    if isinstance(message, FetchRequest) and random.random() < 0.7:
        message.forgotten_topics_data = []
    return message, version


def _one(random: Random, elements: list[Any]) -> list[Any]:
    return elements[:1] if random.random() < 0.9 else elements


def answer(cls: type[Message], data: bytes, version: int, *, carefully: bool) -> str:
    try:
        if carefully:
            return repr(decode_message_carefully(cls, data, version, 0))
        return repr(cls.decode_from(data, version, 0))
    except ProtocolError as error:
        return repr(error)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_and_values_are_those_of_the_general_code(name: str) -> None:
    random = Random(name)
    for _ in range(INSTANCES):
        message, version = about_one_topic(random, name)
        raw = message.encode(version)
        general: list[bytes] = []
        message.encode_into(general, version)
        careful: list[bytes] = []
        encode_message_carefully(message, careful, version)
        assert raw == b"".join(general) == b"".join(careful)
        assert type(message).decode(raw, version) == message
        assert type(message).decode_from(b"--" + raw + b"-", version, 2) == (message, len(raw) + 2)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_ones_are_judged_alike(name: str) -> None:
    random = Random(f"damaged {name}")
    for _ in range(INSTANCES):
        message, version = about_one_topic(random, name)
        cls = type(message)
        raw = message.encode(version)
        for _ in range(8):
            damaged = bytearray(raw[: random.randrange(len(raw))] if random.random() < 0.4 else raw)
            for _ in range(random.choice((0, 1, 1, 2))):
                if damaged:
                    position = random.randrange(min(len(damaged), 200))
                    damaged[position] = random.choice((0, 1, 2, 3, 127, 128, 255))
            data = bytes(damaged)
            assert answer(cls, data, version, carefully=False) == answer(cls, data, version, carefully=True)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_values_are_refused_like_by_the_codec(name: str) -> None:
    random = Random(f"wrong {name}")
    for _ in range(INSTANCES):
        message, version = about_one_topic(random, name)
        topics = getattr(message, "responses" if name == "FetchResponse" else "topics")
        holders = [message, *topics, *(partition for topic in topics for partition in topic.partitions)]
        holder = random.choice(holders)
        field = random.choice(holder.__struct_fields__)
        setattr(
            holder, field, random.choice((None, "", "x", 2**70, -1, b"", (), [], 1.5, ((5, b""), (3, b""))))
        )
        assert encoded(message.encode, version) == encoded(general_bytes, message, version)


def encoded(encode: Any, *arguments: Any) -> str:
    try:
        return repr(encode(*arguments))
    except (ProtocolError, TypeError, ValueError, AttributeError) as error:
        return repr(error)


def general_bytes(message: Message, version: int) -> bytes:
    out: list[bytes] = []
    message.encode_into(out, version)
    return b"".join(out)


def careful_bytes(message: Message, version: int) -> bytes:
    out: list[bytes] = []
    encode_message_carefully(message, out, version)
    return b"".join(out)


@pytest.mark.parametrize("count", [0, 2])
def test_other_counts_of_topics_and_partitions(count: int) -> None:
    topic = FetchTopic(partitions=[FetchPartition(partition=n) for n in range(count)])
    for request in (FetchRequest(topics=[topic]), FetchRequest(topics=[FetchTopic()] * count)):
        raw = request.encode(17)
        assert FetchRequest.decode(raw, 17) == request


class TestTheUsualCase:
    """The code without loops is really used."""

    def usual(self, cls: type[Message]) -> Any:
        random = Random(cls.NAME)
        while True:
            message, _ = about_one_topic(random, cls.NAME)
            topics = message.responses if isinstance(message, FetchResponse) else message.topics
            held = [message, *topics, *(each for topic in topics for each in topic.partitions)]
            plain = not any(each.unknown_tagged_fields for each in held)
            if plain and len(held) == 3 and not getattr(message, "forgotten_topics_data", []):
                return message

    @pytest.mark.parametrize("cls", [VoteRequest, FetchRequest])
    def test_requests_are_written(
        self, cls: type[VoteRequest | FetchRequest], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if tier_of(cls) != PURE:
            pytest.skip("the compiled codec has no such code")
        message = self.usual(cls)
        message.cluster_id = "α" * 60
        for topic in message.topics if cls is VoteRequest else ():
            topic.topic_name = "__cluster_metadata"
        expected = careful_bytes(message, cls.MAX_VERSION)
        monkeypatch.setattr(cls, "encode_into", None)
        assert message.encode(cls.MAX_VERSION) == expected

    def test_a_response_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if tier_of(FetchResponse) != PURE:
            pytest.skip("the compiled codec has no such code")
        partition = PartitionData(records=bytes(70_000), aborted_transactions=None)
        message = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
        raw = message.encode(17)
        monkeypatch.setattr(fetch_response, "_read_ihiB", None)
        monkeypatch.setattr(sys.modules[FetchResponse.__module__], "decode_message_carefully", None)
        assert FetchResponse.decode(raw, 17) == message
