"""The limits of lengths on the wire: ours are those of Kafka 4.4; earlier versions have none.

These are the only differences from the judged Kafka versions (compat/judges/codec/differences.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codegen.packages import NEWEST_KAFKA
from compat.harness.kafka.jars import find_jars
from compat.judges.codec.differences import stricter_than
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.ours import Read, read
from kraft_wire.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kraft_wire.protocol.varint import uvarint

VERSION = 5


def request(
    groups: int = 0, tags: int = 0, *, counted_groups: int | None = None, tag_count: int | None = None
) -> bytes:
    """Encode a DescribeGroupsRequest with empty names and empty unknown tags, and with the true or given
    counts."""
    return b"".join(
        (
            uvarint(1 + (groups if counted_groups is None else counted_groups)),
            b"\x01" * groups,
            b"\0",
            uvarint(tags if tag_count is None else tag_count),
            *(uvarint(tag) + b"\0" for tag in range(tags)),
        )
    )


ACCEPTED = {
    "a million elements": request(groups=1_000_000),
    "ten thousand tagged fields": request(tags=10_000),
}
REFUSED = {
    "more elements than bytes": request(groups=100, counted_groups=103),
    "two billion elements": request(counted_groups=2**31 - 1),
    "more tagged fields than bytes": request(tag_count=1),
}
ACCEPTED_BEFORE_4_4 = {
    "more elements than allowed": request(groups=1_000_001),
    "more tagged fields than allowed": request(tags=10_001),
    "a negative number of tagged fields": request(tag_count=2**32 - 1),
}


@pytest.fixture(scope="module", params=[NEWEST_KAFKA, "4.3.1", "3.9.2"])
def java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaCodec]:
    folder = tmp_path_factory.mktemp("codec-judge")
    with JavaCodec(find_jars(request.param), folder / "java.log") as started:
        yield started


def java_reads(java: JavaCodec, raw: bytes) -> str:
    """Return the first word of Java's answer."""
    ((first, *_),) = java.ask([["read", "DescribeGroupsRequestData", str(VERSION), raw.hex()]])
    return first


def we_read(raw: bytes) -> tuple[Read | str, Read | str]:
    """Decode with the generated decoder and with the careful one, which must agree."""
    return (
        read(DescribeGroupsRequest, VERSION, raw, carefully=False),
        read(DescribeGroupsRequest, VERSION, raw, carefully=True),
    )


@pytest.mark.parametrize("java", [NEWEST_KAFKA], indirect=True)
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(java: JavaCodec, name: str) -> None:
    raw = ACCEPTED[name]
    assert java_reads(java, raw) == "0"
    for found in we_read(raw):
        assert isinstance(found, Read)
        assert found.unread == 0
        assert found.message.encode(VERSION) == raw


@pytest.mark.parametrize("name", REFUSED)
def test_refused(java: JavaCodec, name: str) -> None:
    raw = REFUSED[name]
    assert java_reads(java, raw).startswith("!error ")
    for found in we_read(raw):
        assert isinstance(found, str) and found.startswith("!error ")


@pytest.mark.parametrize("name", ACCEPTED_BEFORE_4_4)
def test_accepted_by_kafka_before_4_4(java: JavaCodec, name: str) -> None:
    raw = ACCEPTED_BEFORE_4_4[name]
    their = java_reads(java, raw)
    lenient = java.jars.version != NEWEST_KAFKA
    assert their.startswith("!error ") == (not lenient)
    for our in we_read(raw):
        assert isinstance(our, str) and our.startswith("!error ")
        explained = [each.name for each in stricter_than(java.jars.version) if each.explains(our, their)]
        assert (name in explained) == lenient
