"""The peers as one thing: what a peer writes of a request, and what it reads in an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from compat.peers import aiokafka_codec, kafka_protocol_codec, kafka_python_codec, kio_codec
from compat.peers.values import flat

CLIENT_ID = "peer"


class Peer(msgspec.Struct, frozen=True):
    """One codec. Messages go by the schema's names.

    ``request(message, version, body, correlation_id)`` has the peer read a request's bytes and write them
    with its own header. ``answer(message, version, payload)`` is the correlation id and the values that it
    reads.
    """

    name: str
    versions: Callable[[str], Iterable[int]]
    request: Callable[[str, int, bytes, int], bytes]
    answer: Callable[[str, int, bytes], tuple[int, list[Any]]]


def _kio_request(message: str, version: int, body: bytes, correlation_id: int) -> bytes:
    return kio_codec.encode_request(kio_codec.decode(message, version, body), correlation_id, CLIENT_ID)


def _kio_answer(message: str, version: int, payload: bytes) -> tuple[int, list[Any]]:
    correlation_id, decoded = kio_codec.decode_response(message, version, payload)
    return correlation_id, list(flat(kio_codec.plain(decoded)))


def _kafka_python_request(message: str, version: int, body: bytes, correlation_id: int) -> bytes:
    decoded = kafka_python_codec.decode(message, version, body)
    return kafka_python_codec.encode_request(decoded, correlation_id, CLIENT_ID)


def _kafka_python_answer(message: str, version: int, payload: bytes) -> tuple[int, list[Any]]:
    correlation_id, decoded = kafka_python_codec.decode_response(message, version, payload)
    return correlation_id, list(flat(kafka_python_codec.plain(decoded)))


def _aiokafka_request(message: str, version: int, body: bytes, correlation_id: int) -> bytes:
    return aiokafka_codec.encode_request(
        aiokafka_codec.decode(message, version, body), correlation_id, CLIENT_ID
    )


def _aiokafka_answer(message: str, version: int, payload: bytes) -> tuple[int, list[Any]]:
    correlation_id, decoded = aiokafka_codec.decode_response(message, version, payload)
    return correlation_id, aiokafka_codec.leaves(decoded)


def _kafka_protocol_request(message: str, version: int, body: bytes, correlation_id: int) -> bytes:
    with kafka_protocol_codec.mended():
        decoded = kafka_protocol_codec.decode(message, version, body)
        return kafka_protocol_codec.encode_request(message, version, decoded, correlation_id, CLIENT_ID)


def _kafka_protocol_answer(message: str, version: int, payload: bytes) -> tuple[int, list[Any]]:
    with kafka_protocol_codec.mended():
        correlation_id, decoded = kafka_protocol_codec.decode_response(message, version, payload)
    return correlation_id, list(kafka_protocol_codec.leaves(decoded))


PEERS = (
    Peer("kio", kio_codec.versions, _kio_request, _kio_answer),
    Peer("kafka-python", kafka_python_codec.versions, _kafka_python_request, _kafka_python_answer),
    Peer("aiokafka", aiokafka_codec.versions, _aiokafka_request, _aiokafka_answer),
    Peer("kafka-protocol", kafka_protocol_codec.versions, _kafka_protocol_request, _kafka_protocol_answer),
)
