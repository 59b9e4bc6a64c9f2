"""ApiVersions (18): which APIs and features this controller has. KIP-35, KIP-511, KIP-584, KIP-1242.

Anybody may ask, before authentication too. Versions: 3 adds the client's name and the features, 4 lets
features with minimum 0 through (older clients can't read them, KAFKA-17492), 5 adds the node that the client
means, which Java's controllers don't check either. A version that is too high is answered at version 0 with
UNSUPPORTED_VERSION and the versions of ApiVersions alone: ``unsupported_version``.
"""

from __future__ import annotations

import re
from typing import Final

from kraft_wire.controller.apis import APIS
from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.metadata.features import KRAFT_VERSION, supported_ranges
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

API_VERSIONS: Final = 18

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(state: ControllerState, request: ApiVersionsRequest, version: int, context: Context) -> Result:
    """List what is served, supported and finalized.

    Raises ApiError(INVALID_REQUEST) when the client's name or version has other characters than letters,
    digits, "-" and ".". The epoch of the finalized features is the offset of the last change of a feature, -1
    before any.
    """
    if version >= 3:
        for field in (request.client_software_name, request.client_software_version):
            if not _SOFTWARE_NAME.fullmatch(field):
                raise ApiError(ErrorCode.INVALID_REQUEST, f"{field!r} is no client software name or version")
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api.key, api.min_version, api.max_version) for api in APIS.values()],
        supported_features=_supported(hide_minimum_0=version < 4),
        finalized_features_epoch=state.metadata.features.epoch,
        finalized_features=_finalized(state),
    )
    return Result(response)


def error_response(
    request: ApiVersionsRequest, version: int, code: ErrorCode, message: str
) -> ApiVersionsResponse:
    """Only the code, and for UNSUPPORTED_VERSION the versions of ApiVersions."""
    if code is ErrorCode.UNSUPPORTED_VERSION:
        return unsupported_version()
    return ApiVersionsResponse(error_code=int(code))


def unsupported_version() -> ApiVersionsResponse:
    """The answer, encoded at version 0, to a request whose version this node doesn't know (KIP-511)."""
    api = APIS[API_VERSIONS]
    return ApiVersionsResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        api_keys=[ApiVersion(api.key, api.min_version, api.max_version)],
    )


def finalized_levels(state: ControllerState) -> dict[str, int]:
    """The level of every finalized feature: those of the log, and kraft.version, which only raft knows."""
    levels = dict(state.metadata.features.levels)
    if state.kraft_version:
        levels[KRAFT_VERSION] = state.kraft_version
    return levels


def _supported(*, hide_minimum_0: bool) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name, lowest, highest)
        for name, (lowest, highest) in supported_ranges().items()
        if lowest or not hide_minimum_0
    ]


def _finalized(state: ControllerState) -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
        for name, level in finalized_levels(state).items()
    ]
