"""Random and damaged bytes for everything around messages: frames, headers, the prefixes of metadata
records."""

from __future__ import annotations

from random import Random

import pytest

from kraft_wire.protocol.errors import DecodeError, FrameTooLarge, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.request_header import RequestHeader
from kraft_wire.protocol.messages.response_header import ResponseHeader
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.protocol.registry import (
    API_KEYS,
    METADATA_RECORD_KEYS,
    metadata_record_class,
    request_class,
    response_class,
)
from kraft_wire.protocol.varint import uvarint
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import (
    decode_request_header,
    decode_response,
    request_header_version,
    response_header_version,
)
from tests.protocol.codec_checks import check_encoding, check_memory, tracing_memory
from tests.protocol.fuzzing import Fuzz
from tests.support.odd_wire import OddWriter, mutate

SHARE = 20
"""Each of these gets this many times fewer inputs than all messages together."""
ENOUGH = 1000
MAX_FRAME_BYTES = 300


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def frames(random: Random, *, requests: bool) -> list[tuple[int, int, bytes]]:
    """Return a frame for every API and version, with its key and version: header and body follow the
    schema."""
    found = []
    for key in API_KEYS:
        for version in versions(request_class(key)):
            body = OddWriter(random, version, 0.01).write(
                (request_class if requests else response_class)(key)
            )
            if requests:
                header = RequestHeader(key, version, random.getrandbits(31), random.choice((None, "", "me")))
                raw = header.encode(request_header_version(key, version))
            else:
                raw = ResponseHeader(random.getrandbits(31)).encode(response_header_version(key, version))
            found.append((key, version, raw + body))
    return found


def test_any_bytes_are_a_request_or_a_typed_error(pytestconfig: pytest.Config) -> None:
    fuzz = Fuzz(pytestconfig)
    random = fuzz.random("requests")
    pool = [raw for _, _, raw in frames(random, requests=True)]
    decoded = 0
    for number in range(fuzz.inputs // SHARE):
        raw = mutate(random, pool[number % len(pool)], pool)
        with fuzz.examining("decode_request_header", raw):
            try:
                header, end = decode_request_header(raw)
                assert 4 <= end <= len(raw)
                assert raw.startswith(header.request_api_key.to_bytes(2))
                request_class(header.request_api_key).decode_from(raw, header.request_api_version, end)
                decoded += 1
            except DecodeError as error:
                assert 0 <= error.offset <= len(raw)
            except UnsupportedVersion:
                pass
    assert fuzz.inputs // SHARE < ENOUGH or decoded > ENOUGH // 10


def test_any_bytes_are_a_response_or_a_typed_error(pytestconfig: pytest.Config) -> None:
    fuzz = Fuzz(pytestconfig)
    random = fuzz.random("responses")
    pool = frames(random, requests=False)
    others = [raw for _, _, raw in pool]
    decoded = 0
    for number in range(fuzz.inputs // SHARE):
        key, version, raw = pool[number % len(pool)]
        raw = mutate(random, raw, others)
        with fuzz.examining(f"decode_response {key} {version}", raw):
            try:
                correlation_id, _ = decode_response(key, version, raw)
                assert raw.startswith(correlation_id.to_bytes(4, signed=True))
                decoded += 1
            except DecodeError as error:
                assert 0 <= error.offset <= len(raw)
    assert fuzz.inputs // SHARE < ENOUGH or decoded > ENOUGH // 10


def test_any_bytes_are_a_metadata_record_or_a_typed_error(pytestconfig: pytest.Config) -> None:
    fuzz = Fuzz(pytestconfig)
    random = fuzz.random("metadata records")
    pool = [
        b"\x01" + uvarint(key) + uvarint(version) + OddWriter(random, version, 0.01).write(cls)
        for key in METADATA_RECORD_KEYS
        for cls in (metadata_record_class(key),)
        for version in versions(cls)
    ]
    decoded = 0
    for number in range(fuzz.inputs // SHARE):
        raw = mutate(random, pool[number % len(pool)], pool)
        with fuzz.examining("decode_metadata_record", raw):
            try:
                record, version = decode_metadata_record(raw)
            except DecodeError as error:
                assert 0 <= error.offset <= len(raw)
            except UnsupportedVersion:
                pass
            else:
                decoded += 1
                if check_encoding(record, version) is not None:
                    again = decode_metadata_record(encode_metadata_record(record, version))
                    assert repr(again) == repr((record, version))
    assert fuzz.inputs // SHARE < ENOUGH or decoded > ENOUGH // 10


def test_any_stream_is_cut_into_frames_until_a_length_is_impossible(pytestconfig: pytest.Config) -> None:
    fuzz = Fuzz(pytestconfig)
    random = fuzz.random("streams")
    for _ in range(fuzz.inputs // SHARE):
        sizes = random.choices((0, 1, 5, 299, 300, 301), weights=(2, 2, 8, 1, 1, 1), k=random.randrange(5))
        stream = b"".join(frame(random.randbytes(size)) for size in sizes)
        stream = mutate(random, stream, [stream, b"\xff\xff\xff\xff"])
        with fuzz.examining("FrameReader", stream):
            assert _read_in_chunks(random, stream) == _frames_of(stream)


def _read_in_chunks(random: Random, stream: bytes) -> tuple[list[bytes], bool]:
    reader, found = FrameReader(MAX_FRAME_BYTES), []
    pos = 0
    try:
        while pos < len(stream):
            end = pos + random.choice((1, 3, 4, 50, 1000))
            reader.feed(stream[pos:end])
            pos = end
            while (payload := reader.next_frame()) is not None:
                found.append(payload)
    except FrameTooLarge:
        return found, False
    assert reader.buffered_bytes == len(stream) - sum(4 + len(payload) for payload in found)
    return found, True


def _frames_of(stream: bytes) -> tuple[list[bytes], bool]:
    """Return the frames, and whether no length was impossible, computed in the simplest way."""
    found: list[bytes] = []
    while len(stream) >= 4:
        size = int.from_bytes(stream[:4], signed=True)
        if not 0 <= size <= MAX_FRAME_BYTES:
            return found, False
        if 4 + size > len(stream):
            break
        found.append(stream[4 : 4 + size])
        stream = stream[4 + size :]
    return found, True


def test_a_declared_frame_takes_no_memory_before_it_is_there() -> None:
    largest = 2**31 - 1
    reader = FrameReader(largest)
    reader.feed(largest.to_bytes(4) + b"abc")
    with tracing_memory():
        check_memory(reader.next_frame, 0)
