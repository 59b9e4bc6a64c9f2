"""Choose the version of each request by what the peer serves (KIP-35, KIP-511)."""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.registry import stable_versions
from kraft_wire.wire.headers import API_VERSIONS_KEY, decode_response

FIRST_ASKED_VERSION: Final = 4
QUESTION: Final = ApiVersionsRequest(
    client_software_name="kraft-wire",
    client_software_version="unknown",  # Java's word; to look up ours would take 20 ms of the server's start
)

_ERROR_CODE: Final = slice(4, 6)  # after the correlation id, in every version


class VersionsRefused(ProtocolError):
    """ApiVersions was answered with an error."""


class ServedVersions:
    """The APIs that a peer serves, each with its first and last version."""

    __slots__ = ("_ranges",)

    def __init__(self, response: ApiVersionsResponse) -> None:
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def serves(self, api_key: int) -> bool:
        """Whether the peer serves any version of an API."""
        return api_key in self._ranges

    def version_of(self, request: Message, ours: tuple[int, int] | None = None) -> int:
        """Return the highest version that both sides know; ``ours`` are those of Kafka's message by default.

        Raises UnsupportedVersion if there is none.
        """
        theirs = self._ranges.get(request.API_KEY)
        if theirs is None:
            raise UnsupportedVersion(request.NAME, request.MAX_VERSION, "the peer doesn't serve this API")
        if ours is None:
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
    """Read the answer to ApiVersions: return what is served, or the version at which to ask again.

    A peer that doesn't know the version answers at version 0 with UNSUPPORTED_VERSION and, since KIP-511, the
    versions of ApiVersions that it knows. Raises ProtocolError for anything else.
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
    # The version decreases each time, whatever the peer answers: no endless loop.
    return max(0, min(highest, asked_version - 1))
