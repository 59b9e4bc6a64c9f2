"""What a peer serves: how it is asked on a new connection, and the version that each request then takes
(KIP-35, KIP-511)."""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.headers import API_VERSIONS_KEY, decode_response
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.registry import stable_versions

FIRST_ASKED_VERSION: Final = 4
QUESTION: Final = ApiVersionsRequest(
    client_software_name="kraft-wire",
    client_software_version="unknown",  # as Java says it; to look ours up costs the server's start 20 ms
)

_ERROR_CODE: Final = slice(4, 6)  # behind the correlation id, in every version


class VersionsRefused(ProtocolError):
    """ApiVersions was answered with an error."""


class ServedVersions:
    """A peer's APIs, each with its first and last version."""

    __slots__ = ("_ranges",)

    def __init__(self, response: ApiVersionsResponse) -> None:
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def version_of(self, request: Message) -> int:
        """The highest version that both sides know. Raises UnsupportedVersion where there is none."""
        theirs = self._ranges.get(request.API_KEY)
        if theirs is None:
            raise UnsupportedVersion(request.NAME, request.MAX_VERSION, "the peer doesn't serve this API")
        ours = stable_versions(request.API_KEY)
        version = min(theirs[1], ours[1])
        if version < max(theirs[0], ours[0]):
            raise UnsupportedVersion(
                request.NAME,
                version,
                f"the peer serves {theirs[0]} to {theirs[1]}, we {ours[0]} to {ours[1]}",
            )
        return version


def read_versions(whole: bytes, asked_version: int) -> ServedVersions | int:
    """What a frame that answers ApiVersions says: what is served, or the version at which to ask again.

    A peer that doesn't know the version says so at version 0, with the versions of ApiVersions that it knows
    or, before KIP-511, without. Raises ProtocolError for anything else.
    """
    is_unknown = _error_code(whole) == ErrorCode.UNSUPPORTED_VERSION and asked_version > 0
    _, response = decode_response(API_VERSIONS_KEY, 0 if is_unknown else asked_version, whole)
    assert isinstance(response, ApiVersionsResponse)
    if is_unknown:
        return _next_version(response, asked_version)
    if response.error_code:
        raise VersionsRefused(f"ApiVersions was answered with {ErrorCode.of(response.error_code).name}")
    return ServedVersions(response)


def _error_code(whole: bytes) -> int:
    return int.from_bytes(whole[_ERROR_CODE], "big", signed=True)


def _next_version(response: ApiVersionsResponse, asked_version: int) -> int:
    highest = max(
        (api.max_version for api in response.api_keys if api.api_key == API_VERSIONS_KEY), default=0
    )
    # Lower each time, whatever the peer says: asking comes to an end.
    return max(0, min(highest, asked_version - 1))
