"""Lines of ``codec decode`` and ``codec encode``, one at a time."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from kraft_wire.cli.codec.lines import decode_line, encode_line
from kraft_wire.protocol.messages import MODULES
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraft_wire.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.protocol.registry import message_class
from tests.support.odd_wire import OddWriter, mutate
from tests.support.random_messages import all_messages, random_message

TOPIC = {"message": "TopicRecord", "version": 0}
TOPIC_HEX = "036162" + "00" * 15 + "01" + "00"
TOPIC_DATA = {"name": "ab", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}


def decoded(line: object) -> dict[str, Any]:
    return told(decode_line(as_line(line), 7))


def encoded(line: object) -> dict[str, Any]:
    return told(encode_line(as_line(line), 7))


def as_line(line: object) -> bytes:
    return line if isinstance(line, bytes) else json.dumps(line).encode()


def told(answer: tuple[str, bool]) -> dict[str, Any]:
    """The answer's line; whether it is an error is in it, too."""
    line, ok = answer
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    assert ok == ("error" not in found)
    return found


def test_a_message_each_way() -> None:
    assert decoded(TOPIC | {"hex": TOPIC_HEX}) == TOPIC | {"data": TOPIC_DATA}
    assert encoded(TOPIC | {"data": TOPIC_DATA}) == TOPIC | {"hex": TOPIC_HEX}


def test_keys_stand_in_the_order_in_which_one_reads_them() -> None:
    assert list(decoded(TOPIC | {"hex": TOPIC_HEX})) == ["message", "version", "data"]
    assert list(encoded(TOPIC | {"data": TOPIC_DATA})) == ["message", "version", "hex"]


def test_digits_may_be_large_and_bytes_apart() -> None:
    assert decoded(TOPIC | {"hex": " ".join((TOPIC_HEX[:6], TOPIC_HEX[6:])).upper()})["data"] == TOPIC_DATA


@pytest.mark.parametrize("kind", ["request", "response", "header", "metadata", "data", "coordinator-key"])
def test_messages_of_every_kind(kind: str) -> None:
    for name in MODULES:
        cls = message_class(name)
        if kind == cls.KIND and cls.MIN_VERSION <= cls.MAX_VERSION:
            line = {"message": name, "version": cls.MAX_VERSION, "hex": cls().encode(cls.MAX_VERSION).hex()}
            shown = decoded(line)
            assert shown["data"] == cls().to_json(cls.MAX_VERSION)
            assert encoded(shown) == line


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_on_the_way_there_and_back(seed: int) -> None:
    random = Random(seed)
    for cls in all_messages()[seed::20]:
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            raw = random_message(random, cls, version).encode(version)
            line = {"message": cls.NAME, "version": version, "hex": raw.hex()}
            assert encoded(decoded(line)) == line


def test_the_bytes_of_records_are_base64() -> None:
    partition = PartitionProduceData(index=3, records=b"\xfb\xff")
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    line = {"message": "ProduceRequest", "version": 9, "hex": request.encode(9).hex()}
    shown = decoded(line)
    assert shown["data"]["topicData"][0]["partitionData"] == [{"index": 3, "records": "+/8="}]
    assert encoded(shown) == line


@pytest.mark.parametrize(
    ("value", "text"), [(float("nan"), "NaN"), (float("-inf"), "-Infinity"), (1.5e300, 1.5e300)]
)
def test_numbers_that_json_lacks_are_text(value: float, text: object) -> None:
    raw = ClientQuotaRecord(value=value).encode(0)
    line = {"message": "ClientQuotaRecord", "version": 0, "hex": raw.hex()}
    shown = decoded(line)
    assert shown["data"]["value"] == text
    assert encoded(shown) == line


class TestUnknownTags:
    PART = PartitionData(
        records=None,
        diverging_epoch=EpochEndOffset(3, 4, ((0, b""), (9, b"q"))),
        unknown_tagged_fields=((70_000, b"ab"),),
    )
    MESSAGE = FetchResponse(
        responses=[
            FetchableTopicResponse(),
            FetchableTopicResponse(partitions=[PartitionData(records=b""), PART]),
        ],
        unknown_tagged_fields=((5, b"\0"),),
    )

    def test_they_stand_beside_the_data_with_their_place(self) -> None:
        line = {"message": "FetchResponse", "version": 17, "hex": self.MESSAGE.encode(17).hex()}
        shown = decoded(line)
        assert shown["unknown_tags"] == [
            {"in": "", "tag": 5, "hex": "00"},
            {"in": "responses[1].partitions[1]", "tag": 70_000, "hex": "6162"},
            {"in": "responses[1].partitions[1].divergingEpoch", "tag": 0, "hex": ""},
            {"in": "responses[1].partitions[1].divergingEpoch", "tag": 9, "hex": "71"},
        ]
        assert encoded(shown) == line

    @pytest.mark.parametrize(
        "place",
        [
            "x",
            "responses",
            "responses[2]",
            "responses[0].partitions[0]",
            "throttleTimeMs",
            "responses[",
            "[0]",
            ".responses[1]",
            "responses[-1]",
            "responses[" + "9" * 5000 + "]",
            "FIELDS",
            "to_json",
        ],
    )
    def test_a_place_that_is_none(self, place: str) -> None:
        shown = {"message": "FetchResponse", "version": 17, "data": self.MESSAGE.to_json(17)}
        error = encoded(shown | {"unknown_tags": [{"in": place, "tag": 1, "hex": ""}]})["error"]
        told = f"unknown_tags: the message has no tagged fields at {place!r}"
        assert (error[:400], error[-400:]) == (told[:400], told[-400:])

    def test_a_version_without_tags(self) -> None:
        line = {"message": "FetchResponse", "version": 11, "data": FetchResponse().to_json(11)}
        error = encoded(line | {"unknown_tags": [{"in": "", "tag": 1, "hex": ""}]})["error"]
        assert (
            error
            == "FetchResponse.unknown_tagged_fields version 11: there are no tagged fields at this version"
        )

    def test_what_is_read_and_must_not_be_written(self) -> None:
        shown = decoded(TOPIC | {"hex": TOPIC_HEX[:-2] + "02" + "0700" + "0600"})
        assert [tag["tag"] for tag in shown["unknown_tags"]] == [7, 6]
        assert encoded(shown)["error"].startswith("TopicRecord.unknown_tagged_fields: tag 6 follows tag 7")


def test_bytes_behind_the_message_are_counted_and_not_written_back() -> None:
    shown = decoded(TOPIC | {"hex": TOPIC_HEX + "aabbcc"})
    assert shown == TOPIC | {"data": TOPIC_DATA, "unread_bytes": 3}
    assert encoded(shown) == TOPIC | {"hex": TOPIC_HEX}


class TestOtherFields:
    def test_they_are_copied_to_the_answer(self) -> None:
        others = {"offset": 7, "é": [1.50, None], "host": {"b": "\n"}}
        shown = decoded(others | TOPIC | {"hex": TOPIC_HEX})
        assert shown == TOPIC | {"data": TOPIC_DATA} | others
        assert list(shown)[:3] == ["message", "version", "data"]
        assert encoded(shown) == TOPIC | {"hex": TOPIC_HEX} | others

    def test_they_are_copied_to_the_error_of_a_line_without_its_own_fields(self) -> None:
        line = b'{"id":7,"message":"NoOpRecord","hex":"00"}'
        error = "Object missing required field `version`"
        assert json.loads(decode_line(line, 3).line) == {"line": 3, "error": error, "id": 7}

    def test_they_are_copied_to_an_error_as_well(self) -> None:
        answer = decoded(TOPIC | {"hex": "0", "offset": 7})
        assert answer == TOPIC | {"error": "hex: a byte has two digits, and one is missing", "offset": 7}

    @pytest.mark.parametrize("name", ["data", "error", "line", "unknown_tags", "unread_bytes"])
    def test_one_that_the_answer_defines_is_refused(self, name: str) -> None:
        error = decoded(TOPIC | {"hex": TOPIC_HEX, name: 1})["error"]
        assert error == f"`{name}` is a field of another kind of line: rename it"

    def test_a_misspelt_field_is_not_taken_for_one(self) -> None:
        error = encoded(TOPIC | {"data": TOPIC_DATA, "unknown_tag": []})["error"]
        assert error == "`unknown_tag`: the nearest field is `unknown_tags`"

    def test_a_line_that_breaks_off_after_one_is_no_json(self) -> None:
        assert decoded(b'{"offset":7,"message":"NoOpRecord"')["error"].startswith("Input data was truncated")


class TestErrors:
    @pytest.mark.parametrize(
        "change",
        [
            {"data": TOPIC_DATA | {"name": ["x" * 10**6]}},
            {"data": TOPIC_DATA | {"topicId": "x" * 10**6}},
            {"data": TOPIC_DATA | {"x" * 10**6: 1}},
            {"data": TOPIC_DATA | {"name": 10**4000}},
            {"message": "x" * 10**6},
            {"version": 10**4000},
            {"unknown_tags": [{"in": "x" * 10**6, "tag": 1, "hex": ""}]},
        ],
    )
    def test_what_is_wrong_is_not_repeated_at_any_length(self, change: dict[str, Any]) -> None:
        answer = encoded(TOPIC | {"data": TOPIC_DATA} | change)
        assert len(answer["error"]) < 1100
        assert len(str(answer.get("message"))) < 1100

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"hex": TOPIC_HEX[:20]}, "TopicRecord.topicId at offset 3: needs 16 bytes, 7 remain"),
            ({"hex": ""}, "TopicRecord.name at offset 0: ends inside a varint"),
            ({"hex": "00" + "00" * 17}, "TopicRecord.name at offset 0: is null, and must not be"),
            ({"hex": "036"}, "hex: a byte has two digits, and one is missing"),
            ({"hex": "0x03"}, "hex: 'x' at character 1 is not a hexadecimal digit"),
            ({"hex": "0\u0663"}, "hex: '\u0663' at character 1 is not a hexadecimal digit"),
            ({"version": 1, "hex": ""}, "TopicRecord version 1: known are 0 to 0"),
            ({"version": -1, "hex": ""}, "TopicRecord version -1: known are 0 to 0"),
            ({"version": 10**30, "hex": ""}, f"TopicRecord version {10**30}: known are 0 to 0"),
            (
                {"message": "topicrecord", "hex": ""},
                "there is no message 'topicrecord'; the nearest is TopicRecord",
            ),
            (
                {"message": "TopicRecrd", "hex": ""},
                "there is no message 'TopicRecrd'; the nearest is TopicRecord",
            ),
            ({"message": "\n\u2028", "hex": ""}, "there is no message '\\n\\u2028'"),
            (
                {"message": "vote", "hex": ""},
                "there is no message 'vote'; there is VoteRequest, VoteResponse, VotersRecord",
            ),
            ({"message": "", "hex": ""}, "there is no message ''"),
            ({"message": "StopReplicaRequest", "hex": ""}, "StopReplicaRequest version 0: it has no version"),
            ({}, "Object missing required field `hex`"),
            ({"hex": 5}, "Expected `str`, got `int` - at `$.hex`"),
            ({"hex": "", "data": {}}, "`data` is a field of another kind of line: rename it"),
        ],
    )
    def test_lines_that_say_what_they_are(self, change: dict[str, Any], error: str) -> None:
        line = TOPIC | change
        assert decoded(line) == {"message": line["message"], "version": line["version"], "error": error}

    @pytest.mark.parametrize(
        ("line", "error"),
        [
            (b"{", "Input data was truncated (byte 1)"),
            (b'{"message":"NoOpRecord","hex":"00', "Input data was truncated (byte 33)"),
            (b"hello", "JSON is malformed: invalid character (byte 0)"),
            (b"[]", "Expected `object`, got `array`"),
            (b"5", "Expected `object`, got `int`"),
            (b'{"message":"TopicRecord","hex":""}', "Object missing required field `version`"),
            (b'{"version":0,"hex":""}', "Object missing required field `message`"),
            (
                b'{"message":"TopicRecord","version":"0","hex":""}',
                "Expected `int`, got `str` - at `$.version`",
            ),
            (
                b'{"message":"TopicRecord","version":true,"hex":""}',
                "Expected `int`, got `bool` - at `$.version`",
            ),
            (b'{"message":null,"version":0,"hex":""}', "Expected `str`, got `null` - at `$.message`"),
        ],
    )
    def test_other_lines_are_named_by_their_number(self, line: bytes, error: str) -> None:
        assert decoded(line) == {"line": 7, "error": error}

    @pytest.mark.parametrize(
        "line", [b'{"message":"\xff","version":0,"hex":""}', b"\xff", b'{"a":' + b"[" * 100_000]
    )
    def test_what_is_no_text_at_all(self, line: bytes) -> None:
        for answer in (decoded(line), encoded(line)):
            assert answer["line"] == 7
            assert answer["error"]

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            ({"name": 5}, "ElectLeadersRequest.name: there is no such field"),
            (
                {"electionTyp": 1},
                "ElectLeadersRequest.electionTyp: there is no such field; the nearest is electionType",
            ),
            ({"electionType": "1"}, "ElectLeadersRequest.electionType: is a string instead of an integer"),
            ({"electionType": 1.5}, "ElectLeadersRequest.electionType: is 1.5 instead of an integer"),
            ({"electionType": 1000}, "ElectLeadersRequest.electionType: 1000 does not fit int8"),
            ({"timeoutMs": 2**70}, f"ElectLeadersRequest.timeoutMs: {2**70} does not fit int32"),
            ({"timeoutMs": None}, "ElectLeadersRequest.timeoutMs: is null instead of an integer"),
            ({"topicPartitions": 1}, "ElectLeadersRequest.topicPartitions: is 1 instead of an array"),
            ({"topicPartitions": [1]}, "ElectLeadersRequest.topicPartitions[0]: is 1 instead of an object"),
            (
                {"topicPartitions": [None]},
                "ElectLeadersRequest.topicPartitions[0]: is null instead of an object",
            ),
            (
                {"topicPartitions": [{"topic": "a", "partition": []}]},
                "ElectLeadersRequest.topicPartitions[0].partition: there is no such field;"
                " the nearest is partitions",
            ),
            (
                {"topicPartitions": [{"topic": "a"}]},
                "ElectLeadersRequest.topicPartitions[0].partitions: is missing, and mandatory at version 2",
            ),
            (
                {"topicPartitions": [{"topic": "x" * 40_000, "partitions": []}]},
                "ElectLeadersRequest.topicPartitions[0].topic: is a string of 40000 bytes,"
                " at most 32767 are allowed",
            ),
        ],
    )
    def test_data_that_is_not_the_message_s(self, data: dict[str, Any], error: str) -> None:
        whole = {"electionType": 1, "topicPartitions": [], "timeoutMs": 5}
        line = {"message": "ElectLeadersRequest", "version": 2}
        assert encoded(line | {"data": whole | data}) == line | {"error": error}

    def test_a_field_that_the_version_lacks(self) -> None:
        data = {"electionType": 1, "topicPartitions": [], "timeoutMs": 5}
        line = {"message": "ElectLeadersRequest", "version": 0, "data": data}
        assert encoded(line)["error"] == (
            "ElectLeadersRequest.electionType version 0: has a value, and does not exist at this version"
        )

    @pytest.mark.parametrize("data", [[], None, 5, "x"])
    def test_data_that_is_no_object(self, data: object) -> None:
        assert encoded(TOPIC | {"data": data})["error"].startswith("Expected `object`, got ")


def test_any_line_has_an_answer() -> None:
    random = Random(1)
    pool = [
        json.dumps({"message": cls.NAME, "version": cls.MAX_VERSION, "hex": raw.hex()}).encode()
        for cls in all_messages()
        for raw in (OddWriter(random, cls.MAX_VERSION, 0.02).write(cls),)
    ]
    pool += [decode_line(line, 1).line.encode() for line in pool]
    for line in [*pool, *(mutate(random, random.choice(pool), pool) for _ in range(1000))]:
        told(decode_line(line, 1))
        told(encode_line(line, 1))


@pytest.mark.parametrize("number", ["1e999", "-1E400", "9" * 400 + ".0"])
def test_a_number_that_is_out_of_range_is_shown_with_its_place(number: str) -> None:
    start = b'{"message":"ClientQuotaRecord","version":0,"data":{"key":"\\" 1e999","entity":[],"value":'
    error = encoded(start + number.encode() + b"}}")["error"]
    assert error == f"number out of range: {number[:24]} (byte {len(start)})"


@pytest.mark.parametrize("tag", [0, 1])
def test_a_known_tag_among_the_unknown_ones(tag: int) -> None:
    line = {"message": "FetchRequest", "version": 17, "data": FetchRequest().to_json(17)}
    error = encoded(line | {"unknown_tags": [{"in": "", "tag": tag, "hex": "00"}]})["error"]
    assert error.startswith(f"FetchRequest.unknown_tagged_fields: tag {tag} is known: it is that of ")
