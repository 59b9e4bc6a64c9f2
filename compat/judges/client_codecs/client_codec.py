"""One interface to the codecs of other clients: encode a request with its header, decode a response."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from compat.judges.client_codecs import aiokafka_codec, kafka_protocol_codec, kafka_python_codec, kio_codec
from compat.judges.client_codecs.values import flat

CLIENT_ID = "other client"


class ClientCodec(msgspec.Struct, frozen=True):
    """The codec of another client. Messages have the schema's names.

    ``request(message, version, body, correlation_id)`` decodes a request's bytes and encodes them again with
    a header. ``answer(message, version, payload)`` decodes a response and returns the correlation id and the
    values.
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
    with kafka_protocol_codec.patched():
        decoded = kafka_protocol_codec.decode(message, version, body)
        return kafka_protocol_codec.encode_request(message, version, decoded, correlation_id, CLIENT_ID)


def _kafka_protocol_answer(message: str, version: int, payload: bytes) -> tuple[int, list[Any]]:
    with kafka_protocol_codec.patched():
        correlation_id, decoded = kafka_protocol_codec.decode_response(message, version, payload)
    return correlation_id, list(kafka_protocol_codec.leaves(decoded))


CLIENT_CODECS = (
    ClientCodec("kio", kio_codec.versions, _kio_request, _kio_answer),
    ClientCodec("kafka-python", kafka_python_codec.versions, _kafka_python_request, _kafka_python_answer),
    ClientCodec("aiokafka", aiokafka_codec.versions, _aiokafka_request, _aiokafka_answer),
    ClientCodec(
        "kafka-protocol", kafka_protocol_codec.versions, _kafka_protocol_request, _kafka_protocol_answer
    ),
)
