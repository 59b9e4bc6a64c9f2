"""Other clients' codecs and ours agree on the values and the bytes of random messages.

Each message goes both ways: the other codec decodes our bytes, and ours decodes what it encodes.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from compat.judges.client_codecs import aiokafka_codec, kafka_protocol_codec, kafka_python_codec, kio_codec
from compat.judges.client_codecs.values import flat, plain
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from kraft_wire.protocol.registry import message_class
from tests.support.random_messages import random_message

CASES = 20
"""The number of instances of each message and version."""


def _instance(random: Random, cls: type[Message], version: int) -> Any:
    """Draw a message without unknown tagged fields, which the other codecs drop or reject."""
    return random_message(random, cls, version, unknown_tags=False)


def _shared(cls: type[Message], versions: Any) -> list[int]:
    shared = [version for version in versions if cls.MIN_VERSION <= version <= cls.MAX_VERSION]
    assert shared, f"{cls.NAME}: no version in common"
    return shared


@pytest.mark.parametrize("message", kio_codec.messages())
def test_kio(message: str) -> None:
    random = Random(message)
    cls = message_class(message)
    for version in _shared(cls, kio_codec.versions(message)):
        for _ in range(CASES):
            ours = _instance(random, cls, version)
            kio_codec.restrict(ours, kio_codec.entity_class(message, version), version)
            data = ours.encode(version)
            theirs = kio_codec.decode(message, version, data)
            assert kio_codec.plain(theirs) == plain(ours, version)
            written = kio_codec.encode(theirs)
            assert written == data
            assert cls.decode(written, version) == ours


@pytest.mark.parametrize("message", sorted(kafka_python_codec.messages()))
def test_kafka_python(message: str) -> None:
    random = Random(message)
    cls = message_class(message)
    for version in _shared(cls, kafka_python_codec.versions(message)):
        for _ in range(CASES):
            ours = _instance(random, cls, version)
            if message == "ApiVersionsResponse":
                ours.error_code = 0  # kafka-python reads every error as version 0
            data = ours.encode(version)
            theirs = kafka_python_codec.decode(message, version, data)
            assert kafka_python_codec.plain(theirs) == plain(ours, version)
            written = kafka_python_codec.encode(theirs)
            assert written == data
            assert cls.decode(written, version) == ours


@pytest.mark.parametrize("message", sorted({message for message, _ in aiokafka_codec.messages()}))
def test_aiokafka(message: str) -> None:
    random = Random(message)
    cls = message_class(message)
    for version in _shared(cls, aiokafka_codec.versions(message)):
        for _ in range(CASES):
            ours = _instance(random, cls, version)
            data = ours.encode(version)
            theirs = aiokafka_codec.decode(message, version, data)
            assert aiokafka_codec.leaves(theirs) == list(flat(plain(ours, version, tagged=False)))
            written = aiokafka_codec.encode(theirs)
            assert written == data
            assert cls.decode(written, version) == ours


@pytest.mark.parametrize("message", sorted(kafka_protocol_codec.CLASSES))
def test_kafka_protocol(message: str) -> None:
    random = Random(message)
    cls = message_class(message)
    for version in _shared(cls, kafka_protocol_codec.versions(message)):
        for _ in range(CASES):
            ours = _instance(random, cls, version)
            _name_all_topics(ours)
            data = ours.encode(version)
            with kafka_protocol_codec.patched():
                theirs = kafka_protocol_codec.decode(message, version, data)
                written = kafka_protocol_codec.encode(theirs)
            values = list(kafka_protocol_codec.leaves(theirs))
            assert values == list(flat(plain(ours, version, tagged=False)))
            assert written == data
            assert cls.decode(written, version) == ours


def _name_all_topics(message: Any) -> None:
    """Name every topic: kafka-protocol needs names, but since Metadata version 10 an id is enough."""
    if isinstance(message, MetadataRequest | MetadataResponse):
        for topic in message.topics or ():
            topic.name = topic.name or ""
