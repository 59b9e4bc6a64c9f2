"""Our codec gives the recorded results of Kafka 4.4.0's own classes (java/make_verdicts.py,
java/JavaFacts.java).

This is a quick check without a JVM; compat/interop/codec/test_codec_judge.py asks the classes
themselves, and much more.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.registry import (
    API_KEYS,
    api_listeners,
    api_name,
    message_class,
    request_class,
    stable_versions,
)
from kraft_wire.wire.headers import request_header_version, response_header_version

DATA = Path(__file__).parent / "data"


def lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


VERDICTS = lines("java-4.4.0-verdicts.txt")
FACTS = [line.split() for line in lines("java-4.4.0-facts.txt")]


def verdicts_of(*kinds: str) -> list[str]:
    return [line for line in VERDICTS if message_class(line.split(" ", 1)[0]).KIND in kinds]


@pytest.mark.parametrize(
    "kinds",
    [
        ("request",),
        ("response",),
        ("metadata",),
        ("data", "header"),
        ("coordinator-key", "coordinator-value"),
    ],
    ids="+".join,
)
def test_every_verdict_is_ours_too(kinds: tuple[str, ...]) -> None:
    chosen = verdicts_of(*kinds)
    assert chosen
    for line in chosen:
        name, version, raw, verdict = line.split(" ", 3)
        assert our_verdict(name, int(version), bytes.fromhex(raw)) == parsed(verdict), line


def our_verdict(name: str, version: int, raw: bytes) -> object:
    cls = message_class(name)
    try:
        message, end = cls.decode_from(raw, version, 0)
        written = message.encode(version)
    except ProtocolError:
        return "error"
    # Converted to text and back, so that the order of keys counts.
    return written.hex(), len(raw) - end, json.dumps(message.to_json(version))


def parsed(verdict: str) -> object:
    if verdict == "error":
        return "error"
    written, unread, shown = verdict.split(" ", 2)
    return written, int(unread), json.dumps(json.loads(shown))


def test_the_verdicts_cover_every_message_and_both_outcomes() -> None:
    names = {line.split(" ", 1)[0] for line in VERDICTS}
    assert len(names) == 278
    assert sum(line.endswith(" error") for line in VERDICTS) > 100


def test_apis_are_kafka_s() -> None:
    rows = [row[1:] for row in FACTS if row[0] == "api"]
    assert len(rows) == 91
    for key_text, name, first, last, last_stable, listeners in rows:
        key = int(key_text)
        request = request_class(key)
        assert api_name(key) == name
        assert int(first) == request.MIN_VERSION
        assert int(last) == request.MAX_VERSION
        assert stable_versions(key) == (int(first), int(last_stable))
        assert ",".join(sorted(api_listeners(key))) == listeners.replace("-", "")


def test_apis_without_a_version_are_kafka_s() -> None:
    dead = [int(row[1]) for row in FACTS if row[0] == "dead"]
    assert dead == [
        key for key in API_KEYS if request_class(key).MAX_VERSION < request_class(key).MIN_VERSION
    ]


def test_header_versions_are_kafka_s() -> None:
    rows = [[int(part) for part in row[1:]] for row in FACTS if row[0] == "header"]
    assert len(rows) > 300
    for key, version, request, response in rows:
        assert request_header_version(key, version) == request
        assert response_header_version(key, version) == response


def test_error_codes_are_kafka_s() -> None:
    rows = {
        (int(code), name, retriable == "true")
        for kind, code, name, retriable in (row for row in FACTS if row[0] == "error")
        if kind
    }
    assert rows == {(int(member), member.name, member.retriable) for member in ErrorCode}
