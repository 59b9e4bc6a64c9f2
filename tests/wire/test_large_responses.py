"""Large responses are encoded in pieces: the same bytes as at once."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.large_responses import LARGE, PIECE, encode_in_pieces, estimated_bytes, is_large


def configs(resources: int, entries: int) -> DescribeConfigsResponse:
    shared = [DescribeConfigsResourceResult(name=f"key.{n}", value="v" * n) for n in range(entries)]
    results = [DescribeConfigsResult(resource_name=f"topic-{n}", configs=shared) for n in range(resources)]
    return DescribeConfigsResponse(throttle_time_ms=7, results=results)


def elections(topics: int, partitions: int) -> ElectLeadersResponse:
    results = [
        ReplicaElectionResult(
            f"topic-{n}", [PartitionResult(partition_id=each) for each in range(partitions)]
        )
        for n in range(topics)
    ]
    return ElectLeadersResponse(throttle_time_ms=1, replica_election_results=results)


def mixed(*partitions: int) -> ElectLeadersResponse:
    """Return the results of topics of different sizes."""
    results = [elections(1, count).replica_election_results[0] for count in partitions]
    return ElectLeadersResponse(throttle_time_ms=1, replica_election_results=results)


def metadata(brokers: int, topics: int, partitions: int = 1) -> MetadataResponse:
    each = [MetadataResponsePartition(partition_index=number) for number in range(partitions)]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=number, host="h", port=1) for number in range(brokers)],
        controller_id=3,
        topics=[MetadataResponseTopic(name=f"t{number}", partitions=each) for number in range(topics)],
    )


@pytest.mark.parametrize(
    "response",
    [
        configs(400, 30),
        configs(1, 2),
        elections(3, 9_000),
        elections(9_000, 1),
        configs(2, 3_000),
        mixed(1, 2_000, 0, 999, 1_000, 1_001, 5, 30_000),
        metadata(3, 3_000),
        metadata(100, 2, 3_000),
        metadata(6_000, 0),
    ],
)
def test_the_bytes_are_those_of_the_whole_response(response: Message) -> None:
    for version in range(type(response).MIN_VERSION, type(response).MAX_VERSION + 1):
        assert b"".join(encode_in_pieces(response, version)) == response.encode(version)


@pytest.mark.parametrize(
    ("response", "version"),
    [
        (configs(1_000, 30), 4),
        (elections(1, 30_000), 2),
        (metadata(100, 20_000), 9),
        (metadata(100, 2, 20_000), 9),
    ],
)
def test_pieces_are_small(response: Message, version: int) -> None:
    pieces = list(encode_in_pieces(response, version))
    assert len(pieces) >= 30_000 // (PIECE + 31)
    assert max(map(len, pieces)) < len(response.encode(version)) / 20


@pytest.mark.parametrize("topics", [LARGE - 1, LARGE + 1, 20 * LARGE])
def test_the_size_is_estimated_by_some_of_the_elements(topics: int) -> None:
    alike = elections(1, 2).replica_election_results * topics
    response = ElectLeadersResponse(replica_election_results=alike)
    assert 0.9 < estimated_bytes(response) / (topics * 3 * 50) < 1.1


def test_a_response_with_many_entries_is_large() -> None:
    assert is_large(configs(LARGE // 30, 30))
    assert not is_large(configs(LARGE // 40, 30))
    assert is_large(elections(1, LARGE))
    assert is_large(metadata(3, LARGE // 2 + 1))
    assert not is_large(metadata(3, LARGE // 2))
    assert not is_large(MetadataResponse())
