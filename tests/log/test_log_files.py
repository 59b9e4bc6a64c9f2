"""The small text files, as Java writes them, and the errors in others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import google_crc32c
import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.log.errors import MalformedFile
from kraft_wire.log.files import (
    CLUSTER_METADATA_TOPIC_ID,
    ElectionState,
    MetaProperties,
    meta_properties_text,
    parse_meta_properties,
    parse_partition_metadata,
    parse_quorum_state,
    parse_segment_file_name,
    partition_metadata_text,
    quorum_state_text,
    quorum_state_version,
    quorum_state_voter_ids,
    segment_file_name,
)
from kraft_wire.protocol.messages.quorum_state_data import QuorumStateData
from kraft_wire.protocol.uuid import Uuid
from tests.log.batch_samples import JAVA_FOLDER, JAVA_PARTITION

DIRECTORY = Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ")
VOTED = ElectionState(leader_id=-1, leader_epoch=4, voted_id=2, voted_directory_id=DIRECTORY)


# --- quorum-state


def test_quorum_state_as_java_wrote_it() -> None:
    text = (JAVA_PARTITION / "quorum-state").read_text()
    state = parse_quorum_state(text)
    assert state == ElectionState(leader_id=1, leader_epoch=3)
    assert state.has_leader and not state.has_voted
    assert without_checksum(quorum_state_text(state, 1)) == text


def without_checksum(text: str) -> str:
    return re.sub(r',"crc32c":"[0-9a-f]{8}"}\n$', "}", text)


def with_checksum_line(text: str) -> str:
    """The form of earlier versions: the checksum in a second line."""
    return f"{text}\ncrc32c {google_crc32c.value(text.encode()):08x}\n"


def test_quorum_state_of_both_versions() -> None:
    assert quorum_state_text(VOTED, 1) == (
        '{"leaderId":-1,"leaderEpoch":4,"votedId":2,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1,'
        '"crc32c":"347774d1"}\n'
    )
    assert without_checksum(quorum_state_text(VOTED, 0, [1, 2])) == (
        '{"clusterId":"","leaderId":-1,"leaderEpoch":4,"votedId":2,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    assert (quorum_state_version(0), quorum_state_version(1)) == (0, 1)
    with pytest.raises(ValueError, match="not 2"):
        quorum_state_text(VOTED, 2)


@pytest.mark.parametrize("version", [0, 1])
def test_the_generated_message_reads_the_same(version: int) -> None:
    obj = json.loads(quorum_state_text(VOTED, version, [1, 2]))
    del obj["crc32c"]
    message = QuorumStateData.from_json(obj, version)
    assert (message.leader_id, message.leader_epoch, message.voted_id) == (-1, 4, 2)
    assert message.voted_directory_id == (DIRECTORY if version else Uuid.ZERO)
    assert {**message.to_json(version), "data_version": version} == obj


def test_version_0_forgets_the_directory() -> None:
    state = parse_quorum_state(quorum_state_text(VOTED, 0, [1]))
    assert state == ElectionState(leader_id=-1, leader_epoch=4, voted_id=2)
    assert state.has_voted


def test_unknown_fields_of_quorum_state_do_not_count() -> None:
    text = without_checksum(quorum_state_text(VOTED, 1))[:-1] + ',"later":[1]}'
    assert parse_quorum_state(text) == parse_quorum_state(text + "\n") == VOTED


def texts_with_a_flipped_bit(text: str) -> Iterator[str]:
    data = text.encode()
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield flipped.decode("latin-1")


def quorum_state_forms() -> list[str]:
    """Return quorum-state as we write it, as earlier versions wrote it, and as jq formats ours."""
    ours = [quorum_state_text(VOTED, version, [1, 2, 3]) for version in (0, 1)]
    earlier = [with_checksum_line(without_checksum(text)) for text in ours]
    return [*ours, *earlier, *(json.dumps(json.loads(text), indent=2) for text in ours)]


@pytest.mark.parametrize("text", quorum_state_forms())
def test_no_flipped_bit_changes_what_quorum_state_says(text: str) -> None:
    said = parse_quorum_state(text)
    assert said.leader_epoch == VOTED.leader_epoch
    for flipped in texts_with_a_flipped_bit(text):
        try:
            assert parse_quorum_state(flipped) == said
        except MalformedFile:
            continue


@pytest.mark.parametrize(
    "text", ['{"a":' * 5000, '{"leaderId":99999999999,"leaderEpoch":4,"votedId":2,"data_version":0}']
)
def test_impossible_contents_are_malformed(text: str) -> None:
    with pytest.raises(MalformedFile):
        parse_quorum_state(text)


def test_the_voters_of_a_file_by_java_are_read_or_the_file_is_malformed() -> None:
    malformed = 0
    texts = list(texts_with_a_flipped_bit(without_checksum(quorum_state_text(VOTED, 0, [1, 2, 3]))))
    for text in texts:
        try:
            parse_quorum_state(text)
        except MalformedFile:
            malformed += 1
        else:
            quorum_state_voter_ids(text)
    assert 0 < malformed < len(texts)


def test_quorum_state_is_one_json_document() -> None:
    for version in (0, 1):
        assert json.loads(quorum_state_text(VOTED, version, [1]))["leaderEpoch"] == 4


def test_another_checksum_in_quorum_state_is_refused() -> None:
    text = quorum_state_text(VOTED, 1)
    for wrong in (text.replace('"leaderEpoch":4', '"leaderEpoch":5'), text.replace("347774d1", "347774d2")):
        with pytest.raises(MalformedFile, match="don't match the checksum"):
            parse_quorum_state(wrong)


@pytest.mark.parametrize("end", ["noise", "crc32c", "crc32c 00000000\n", "crc32c 00000000"])
def test_a_second_line_of_quorum_state_is_the_checksum_of_earlier_versions(end: str) -> None:
    text = without_checksum(quorum_state_text(VOTED, 1))
    assert parse_quorum_state(with_checksum_line(text)) == VOTED
    with pytest.raises(MalformedFile):
        parse_quorum_state(f"{text}\n{end}")


@given(
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.binary(min_size=16, max_size=16),
)
def test_quorum_state_is_read_as_it_was_written(
    leader: int, epoch: int, voted: int, directory: bytes
) -> None:
    state = ElectionState(leader, epoch, voted, Uuid(directory))
    assert parse_quorum_state(quorum_state_text(state, 1)) == state


GOOD: dict[str, Any] = json.loads(without_checksum(quorum_state_text(VOTED, 1)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{",
        "[]",
        "null",
        "\x00" * 100,
        *(json.dumps({name: value for name, value in GOOD.items() if name != left_out}) for left_out in GOOD),
        *(json.dumps({**GOOD, name: "x"}) for name in GOOD),
        json.dumps({**GOOD, "data_version": 2}),
        json.dumps({**GOOD, "leaderEpoch": -1}),
        json.dumps({**GOOD, "leaderEpoch": 1 << 31}),
        json.dumps({**GOOD, "leaderId": -2}),
        json.dumps({**GOOD, "votedId": 1.5}),
    ],
)
def test_quorum_state_that_says_nothing_sensible(text: str) -> None:
    with pytest.raises(MalformedFile, match=r"^quorum-state: "):
        parse_quorum_state(text)


# --- meta.properties


def test_meta_properties_as_java_wrote_them() -> None:
    properties = parse_meta_properties((JAVA_FOLDER / "meta.properties").read_text())
    assert properties == MetaProperties(
        cluster_id="4L6g3nShT-eMCtK--X86sw", node_id=1, directory_id=Uuid.parse("TN8ViW3ASwGlVJY3HzsjtA")
    )


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1), st.integers(0, 2**31 - 1))
def test_meta_properties_are_read_as_they_were_written(cluster_id: str, node_id: int) -> None:
    properties = MetaProperties(cluster_id, node_id, DIRECTORY)
    text = meta_properties_text(properties)
    assert parse_meta_properties(text) == properties
    assert javaproperties.loads(text)["version"] == "1"


def test_meta_properties_without_a_directory_id() -> None:
    properties = MetaProperties("abc", 7)
    assert "directory" not in meta_properties_text(properties)
    assert parse_meta_properties(meta_properties_text(properties)) == properties


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("broker.id=1\nversion=0\n", "ZooKeeper"),
        ("broker.id=1\n", "ZooKeeper"),
        ("", "there is no version"),
        ("node.id=1\n", "there is no version"),
        ("\0" * 80, "there is no version"),
        ("version=2\n", "version '2'"),
        ("version=1\nnode.id=1\n", "no cluster.id"),
        ("version=1\ncluster.id=a\n", "no node.id"),
        ("version=1\ncluster.id=a\nnode.id=one\n", "'one'"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=short\n", "short"),
        ("version=1\ncluster.id=\\u00zz\nnode.id=1\n", r"\\u00zz"),
    ],
)
def test_meta_properties_that_say_nothing_sensible(text: str, problem: str) -> None:
    with pytest.raises(MalformedFile, match=problem):
        parse_meta_properties(text)


@pytest.mark.parametrize("directory_id", [None, Uuid(bytes(range(16)))])
def test_a_flipped_bit_in_meta_properties_is_noticed_or_changes_nothing(directory_id: Uuid | None) -> None:
    properties = MetaProperties("4L6g3nShT-eMCtK--X86sw", 7, directory_id)
    text = meta_properties_text(properties)
    noticed = 0
    for position in range(len(text)):
        for bit in range(8):
            flipped = text[:position] + chr(ord(text[position]) ^ 1 << bit) + text[position + 1 :]
            try:
                assert parse_meta_properties(flipped) == properties, flipped
            except MalformedFile:
                noticed += 1
    assert noticed == 8 * (len(text) - len("#crc32c "))


def test_meta_properties_without_a_checksum_are_those_of_java() -> None:
    properties = MetaProperties("4L6g3nShT-eMCtK--X86sw", 7)
    lines = meta_properties_text(properties).partition("#")[0]
    assert parse_meta_properties(lines) == properties
    assert parse_meta_properties(f"#\n#Sat Nov 21 21:09:30 UTC 2026\n{lines}") == properties


def test_meta_properties_that_were_edited_say_what_to_do() -> None:
    text = meta_properties_text(MetaProperties("4L6g3nShT-eMCtK--X86sw", 7))
    with pytest.raises(MalformedFile, match="remove that line"):
        parse_meta_properties(text.replace("node.id=7", "node.id=8"))


# --- partition.metadata


def test_partition_metadata_as_java_wrote_it() -> None:
    text = (JAVA_PARTITION / "partition.metadata").read_text()
    assert parse_partition_metadata(text) == CLUSTER_METADATA_TOPIC_ID
    assert partition_metadata_text() == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "version None"),
        ("version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "version '1'"),
        ("version: 0\n", "no topic_id"),
        ("version: 0\ntopic_id: x", "'x'"),
    ],
)
def test_partition_metadata_that_says_nothing_sensible(text: str, problem: str) -> None:
    with pytest.raises(MalformedFile, match=problem):
        parse_partition_metadata(text)


# --- names


def test_names_of_segments() -> None:
    assert segment_file_name(305) == "00000000000000000305.log"
    assert segment_file_name(0, ".timeindex") == "00000000000000000000.timeindex"
    assert parse_segment_file_name("00000000000000000305.log") == (305, ".log")
    assert parse_segment_file_name("00000000000000000305.snapshot") == (305, ".snapshot")


@pytest.mark.parametrize(
    "name",
    [
        "305.log",
        "00000000000000000305.log.deleted",
        "00000000000000000305-0000000003.checkpoint",
        "quorum-state",
    ],
)
def test_names_of_other_files(name: str) -> None:
    assert parse_segment_file_name(name) is None
