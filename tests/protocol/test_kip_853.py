"""KIP-853's drafted messages: the draft's bytes, Kafka's own at older versions, names on both sides."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraft_wire.protocol import registry
from kraft_wire.protocol.errors import UnsupportedVersion
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully
from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership import kip_853
from kraft_wire.raft.membership.kip_853 import (
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    update_voter_request,
    update_voter_response,
    vote_request,
    vote_response,
)
from tests.support.kip_853_released import RELEASED, Released
from tests.support.random_messages import messages_of, random_message

DRAFTED = {each.NAME: each for each in messages_of("kraft_wire.raft.membership.kip_853")}
ONE, TWO = Uuid(bytes(range(1, 17))), Uuid(bytes(range(17, 33)))
ONE_HEX, TWO_HEX = "0102030405060708090a0b0c0d0e0f10", "1112131415161718191a1b1c1d1e1f20"

VOTE = vote_request.VoteRequest(
    cluster_id="c",
    voter_id=2,
    topics=[
        vote_request.TopicData(
            "t",
            [
                vote_request.PartitionData(
                    partition_index=0,
                    candidate_epoch=5,
                    candidate_id=3,
                    candidate_uuid=ONE,
                    voter_uuid=TWO,
                    last_offset_epoch=4,
                    last_offset=9,
                )
            ],
        )
    ],
)
VOTE_HEX = f"""
    02 63  00000002
    02  02 74
      02  00000000 00000005 00000003 {ONE_HEX} {TWO_HEX} 00000004 0000000000000009 00
    00
    00
"""
VOTE_RESPONSE = vote_response.VoteResponse(
    topics=[
        vote_response.TopicData(
            "t", [vote_response.PartitionData(leader_id=3, leader_epoch=5, vote_granted=True)]
        )
    ],
    node_endpoints=[vote_response.NodeEndpoint(3, "h", 9093)],
)
VOTE_RESPONSE_HEX = """
    0000
    02  02 74
      02  00000000 0000 00000003 00000005 01 00
    00
    01  00 0c  02  00000003 02 68 00002385 00
"""
FETCH = fetch_request.FetchRequest(
    replica_id=1,
    max_wait_ms=500,
    min_bytes=1,
    session_epoch=-1,
    topics=[
        fetch_request.FetchTopic(
            topic_id=TWO,
            partitions=[
                fetch_request.FetchPartition(
                    partition=0,
                    replica_uuid=ONE,
                    current_leader_epoch=7,
                    fetch_offset=8,
                    last_fetched_epoch=6,
                    partition_max_bytes=1024,
                )
            ],
        )
    ],
)
FETCH_HEX = f"""
    00000001 000001f4 00000001 7fffffff 00 00000000 ffffffff
    02  {TWO_HEX}
      02  00000000 {ONE_HEX} 00000007 0000000000000008 00000006 ffffffffffffffff 00000400 00
    00
    01 01
    00
"""
FETCH_RESPONSE = fetch_response.FetchResponse(
    responses=[
        fetch_response.FetchableTopicResponse(
            topic_id=ONE,
            partitions=[
                fetch_response.PartitionData(
                    error_code=6,
                    high_watermark=-1,
                    current_leader=fetch_response.CurrentLeader(3, 5, fetch_response.Endpoint("h", 9093)),
                    aborted_transactions=None,
                    records=b"",
                )
            ],
        )
    ]
)
FETCH_RESPONSE_HEX = f"""
    00000000 0000 00000000
    02  {ONE_HEX}
      02  00000000 0006 ffffffffffffffff ffffffffffffffff ffffffffffffffff 00 ffffffff 01
          01  01 0e  00000003 00000005 02 68 2385 00 00
    00
    00
"""
FETCH_SNAPSHOT = fetch_snapshot_request.FetchSnapshotRequest(
    cluster_id="c",
    replica_id=1,
    max_bytes=1024,
    topics=[
        fetch_snapshot_request.TopicSnapshot(
            "t",
            [
                fetch_snapshot_request.PartitionSnapshot(
                    partition=0,
                    replica_uuid=ONE,
                    current_leader_epoch=7,
                    snapshot_id=fetch_snapshot_request.SnapshotId(100, 6),
                    position=512,
                )
            ],
        )
    ],
)
FETCH_SNAPSHOT_HEX = f"""
    00000001 00000400
    02  02 74
      02  00000000 {ONE_HEX} 00000007  0000000000000064 00000006 00  0000000000000200 00
    00
    01  00 02  02 63
"""
FETCH_SNAPSHOT_RESPONSE = fetch_snapshot_response.FetchSnapshotResponse(
    topics=[
        fetch_snapshot_response.TopicSnapshot(
            "t",
            [
                fetch_snapshot_response.PartitionSnapshot(
                    snapshot_id=fetch_snapshot_response.SnapshotId(100, 6),
                    current_leader=fetch_snapshot_response.CurrentLeader(
                        3, 5, fetch_snapshot_response.Endpoint("h", 9093)
                    ),
                    size=2,
                    position=0,
                    unaligned_records=b"xy",
                )
            ],
        )
    ]
)
FETCH_SNAPSHOT_RESPONSE_HEX = """
    00000000 0000
    02  02 74
      02  00000000 0000  0000000000000064 00000006 00  0000000000000002 0000000000000000 03 7879
          01  00 0e  00000003 00000005 02 68 2385 00 00
    00
    00
"""
UPDATE_VOTER = update_voter_request.UpdateVoterRequest(
    cluster_id="c",
    current_leader_epoch=5,
    voter_id=3,
    voter_uuid=ONE,
    listeners=[update_voter_request.Listener("L", "h", 9093)],
    kraft_version_feature=update_voter_request.KRaftVersionFeature(0, 1),
)
UPDATE_VOTER_HEX = f"""
    02 63  00000005 00000003 {ONE_HEX}
    02  02 4c  02 68  2385 00
    0000 0001 00
    00
"""
UPDATE_VOTER_RESPONSE = update_voter_response.UpdateVoterResponse(
    error_code=41,
    current_leader=update_voter_response.LeaderIdAndEpoch(3, 5),
    node_endpoint=update_voter_response.NodeEndpoint("h", 9093),
)
UPDATE_VOTER_RESPONSE_HEX = """
    0029
    02  00 09  00000003 00000005 00
        01 07  02 68  00002385 00
"""


@pytest.mark.parametrize(
    ("message", "version", "text"),
    [
        (VOTE, 1, VOTE_HEX),
        (VOTE_RESPONSE, 1, VOTE_RESPONSE_HEX),
        (FETCH, 14, FETCH_HEX),
        (FETCH_RESPONSE, 14, FETCH_RESPONSE_HEX),
        (FETCH_SNAPSHOT, 1, FETCH_SNAPSHOT_HEX),
        (FETCH_SNAPSHOT_RESPONSE, 1, FETCH_SNAPSHOT_RESPONSE_HEX),
        (UPDATE_VOTER, 0, UPDATE_VOTER_HEX),
        (UPDATE_VOTER_RESPONSE, 0, UPDATE_VOTER_RESPONSE_HEX),
    ],
    ids=lambda value: value.NAME if isinstance(value, Message) else "",
)
def test_bytes_written_by_hand(message: Message, version: int, text: str) -> None:
    raw = bytes.fromhex(text)
    assert message.encode(version).hex() == raw.hex()
    assert type(message).decode(raw, version) == message


def test_keys_and_versions_are_the_draft_s() -> None:
    assert {(each.API_KEY, each.NAME, each.MIN_VERSION, each.MAX_VERSION) for each in DRAFTED.values()} == {
        (52, "VoteRequest", 0, 1),
        (52, "VoteResponse", 0, 1),
        (1, "FetchRequest", 0, 14),
        (1, "FetchResponse", 0, 14),
        (59, "FetchSnapshotRequest", 0, 1),
        (59, "FetchSnapshotResponse", 0, 1),
        (77, "UpdateVoterRequest", 0, 0),
        (77, "UpdateVoterResponse", 0, 0),
    }
    assert sorted(kip_853.REQUESTS) == sorted(kip_853.RESPONSES) == [1, 52, 59, 77]


def every_version() -> list[Any]:
    return [
        pytest.param(cls, version, id=f"{name}-{version}")
        for name, cls in DRAFTED.items()
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ]


@pytest.mark.parametrize(("cls", "version"), every_version())
def test_what_is_written_is_read(cls: type[Message], version: int) -> None:
    random = Random(f"kip-853 {cls.NAME} {version}")
    for _ in range(20):
        message = random_message(random, cls, version)
        raw = message.encode(version)
        assert cls.decode_from(b"ab" + raw, version, 2) == (message, 2 + len(raw))
        assert decode_message_carefully(cls, raw, version, 0) == (message, len(raw))
        out: list[bytes] = []
        encode_message_carefully(message, out, version)
        assert b"".join(out) == raw
        shown = message.to_json(version)
        assert cls.from_json(shown, version).to_json(version) == shown


def older_versions() -> list[Any]:
    """Return the versions before the draft's that 4.4.0 still has."""
    return [
        pytest.param(cls, version, id=f"{name}-{version}")
        for name, cls in DRAFTED.items()
        if cls.API_KEY != 77
        for version in range(registry.message_class(name).MIN_VERSION, cls.MAX_VERSION)
    ]


@pytest.mark.parametrize(("cls", "version"), older_versions())
def test_older_versions_are_kafka_s_own(cls: type[Message], version: int) -> None:
    random = Random(f"older {cls.NAME} {version}")
    for _ in range(20):
        raw = random_message(random, registry.message_class(cls.NAME), version).encode(version)
        assert cls.decode(raw, version).encode(version) == raw


@pytest.mark.parametrize(
    ("message", "version", "field"),
    [
        (VOTE, 0, "candidate_uuid"),
        (VOTE_RESPONSE, 0, "node_endpoints"),
        (FETCH, 13, "replica_uuid"),
        (FETCH_RESPONSE, 13, "end_point"),
        (FETCH_SNAPSHOT, 0, "replica_uuid"),
        (FETCH_SNAPSHOT_RESPONSE, 0, "end_point"),
    ],
    ids=lambda value: value.NAME if isinstance(value, Message) else "",
)
def test_fields_of_the_draft_are_refused_at_older_versions(
    message: Message, version: int, field: str
) -> None:
    with pytest.raises(UnsupportedVersion, match=rf"\.{field} version {version}: "):
        message.encode(version)


class TestReleased:
    def test_every_drafted_message_is_there_at_the_draft_s_version(self) -> None:
        drafted = {(each.NAME, each.API_KEY, each.MAX_VERSION) for each in DRAFTED.values()}
        assert {(each.draft.name, each.draft.key, each.draft.version) for each in RELEASED} == drafted
        assert len(RELEASED) == len(drafted)

    @pytest.mark.parametrize("each", RELEASED, ids=lambda each: each.draft.name)
    def test_keys_and_versions_exist(self, each: Released) -> None:
        released = registry.message_class(each.released.name)
        assert each.released.key == released.API_KEY
        assert released.MIN_VERSION <= each.released.version <= released.MAX_VERSION

    @pytest.mark.parametrize("each", RELEASED, ids=lambda each: each.draft.name)
    def test_every_field_is_on_both_sides(self, each: Released) -> None:
        drafted = leaves(DRAFTED[each.draft.name], each.draft.version)
        released = leaves(registry.message_class(each.released.name), each.released.version)
        assert each.moved.keys() <= drafted.keys()
        targets = {path: each.moved.get(path, path) for path in drafted}
        assert all(path != target for path, target in each.moved.items())
        assert len(set(targets.values())) == len(targets)
        assert {*targets.values(), *each.added} == released.keys()
        assert not set(targets.values()) & set(each.added)

    @pytest.mark.parametrize("each", RELEASED, ids=lambda each: each.draft.name)
    def test_types_differ_exactly_where_the_table_says(self, each: Released) -> None:
        drafted = leaves(DRAFTED[each.draft.name], each.draft.version)
        released = leaves(registry.message_class(each.released.name), each.released.version)
        differing = {
            path: (kind, released[each.moved.get(path, path)])
            for path, kind in drafted.items()
            if released[each.moved.get(path, path)] != kind
        }
        assert differing == each.retyped


def leaves(cls: type[Structure], version: int, path: str = "") -> dict[str, str]:
    """Return the types of all fields that hold a value of their own, by their paths."""
    found: dict[str, str] = {}
    for field in cls.FIELDS:
        if not field.is_present(version):
            continue
        if field.struct is not None:
            found |= leaves(field.struct, version, f"{path}{field.name}.")
        else:
            found[path + field.name] = f"[]{field.kind}" if field.array else field.kind
    return found
