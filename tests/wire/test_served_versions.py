"""The version of a request follows from the versions that the peer serves."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import DecodeError, ErrorCode, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.wire.headers import API_VERSIONS_KEY, encode_response
from kraft_wire.wire.served_versions import ServedVersions, VersionsRefused, read_versions

UNKNOWN_VERSION = int(ErrorCode.UNSUPPORTED_VERSION)


def _versions(ranges: dict[int, tuple[int, int]], error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def _answer(version: int, response: ApiVersionsResponse) -> bytes:
    return encode_response(API_VERSIONS_KEY, version, 0, response)


@pytest.mark.parametrize(
    ("served", "version"), [((0, 2), 2), ((0, 1), 1), ((1, 1), 1), ((2, 9), 2), ((0, 32767), 2)]
)
def test_the_highest_version_that_both_know_is_taken(served: tuple[int, int], version: int) -> None:
    assert ServedVersions(_versions({52: served})).version_of(VoteRequest()) == version


@pytest.mark.parametrize(
    ("request_", "served", "reason"),
    [
        (VoteRequest(), {55: (0, 2)}, "the peer doesn't serve this API"),
        (VoteRequest(), {52: (3, 5)}, "the peer serves 3 to 5, we 0 to 2"),
        (FetchRequest(), {1: (0, 3)}, "the peer serves 0 to 3, we 4 to 18"),
        (DescribeQuorumRequest(), {55: (0, -1)}, "the peer serves 0 to -1, we 0 to 2"),
    ],
)
def test_without_a_common_version_the_reason_is_named(
    request_: Message, served: dict[int, tuple[int, int]], reason: str
) -> None:
    with pytest.raises(UnsupportedVersion, match=reason):
        ServedVersions(_versions(served)).version_of(request_)


@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_an_answer_is_read_at_the_version_that_was_asked(version: int) -> None:
    served = read_versions(_answer(version, _versions({52: (0, 1)})), version)
    assert isinstance(served, ServedVersions)
    assert served.version_of(VoteRequest()) == 1


@pytest.mark.parametrize(
    ("known", "next_version"),
    [({18: (0, 3)}, 3), ({18: (0, 0)}, 0), ({}, 0), ({52: (0, 2)}, 0), ({18: (0, 4)}, 3), ({18: (0, -7)}, 0)],
)
def test_a_peer_that_does_not_know_the_version_is_asked_at_a_lower_one(
    known: dict[int, tuple[int, int]], next_version: int
) -> None:
    refusal = _answer(0, _versions(known, UNKNOWN_VERSION))
    assert read_versions(refusal, asked_version=4) == next_version


@pytest.mark.parametrize(
    ("error", "version"),
    [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 4), (ErrorCode.INVALID_REQUEST, 2), (UNKNOWN_VERSION, 0)],
)
def test_another_error_is_the_end(error: int, version: int) -> None:
    with pytest.raises(VersionsRefused, match=ErrorCode(error).name):
        read_versions(_answer(version, _versions({}, int(error))), version)


@pytest.mark.parametrize("whole", [b"", b"\0\0\0\0", b"\0\0\0\0\0", b"\0\0\0\0\0\x23", b"\0\0\0\0\0\0\xff"])
def test_what_is_no_answer_is_a_decode_error(whole: bytes) -> None:
    with pytest.raises(DecodeError):
        read_versions(whole, asked_version=4)
