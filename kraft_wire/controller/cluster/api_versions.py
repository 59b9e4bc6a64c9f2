"""Serve ApiVersions (18): list the APIs and features of this controller. KIP-35, KIP-511, KIP-584, KIP-1242.

No permission and no authentication is needed. Versions: 3 adds the client's name and the features, 4 includes
features with minimum 0 (older clients can't read them, KAFKA-17492), 5 adds the id of the node that the
client expects, which Java's controllers don't check either. A version that is too high is answered in version
0 with UNSUPPORTED_VERSION and the versions of ApiVersions alone (``ErrorForm.own_versions``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.metadata.features.supported import KRAFT_VERSION
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraft_wire.protocol.messages.vote_request import VoteRequest

if TYPE_CHECKING:
    from kraft_wire.controller.decision.api_table import ApiTable

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(state: ControllerState, request: ApiVersionsRequest, version: int, context: Context) -> Result:
    """List the served APIs, and the supported and the finalized features.

    The epoch of the finalized features is the offset of the last change of a feature, -1 before any change.
    Raises ApiError(INVALID_REQUEST) if the client's name or version has characters other than letters,
    digits, "-" and ".".
    """
    if version >= 3:
        for field in (request.client_software_name, request.client_software_version):
            if not _SOFTWARE_NAME.fullmatch(field):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, f"{field!r} is not a valid client software name or version"
                )
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api.key, api.min_version, api.max_version) for api in context.apis],
        supported_features=_supported(state, context.apis, hide_minimum_0=version < 4),
        finalized_features_epoch=state.metadata.features.epoch,
        finalized_features=_finalized(state),
    )
    # The first request of every peer: it must not wait for a majority that may be down.
    return Result(response, shown_end=state.metadata.features.epoch + 1)


def _supported(state: ControllerState, apis: ApiTable, *, hide_minimum_0: bool) -> list[SupportedFeatureKey]:
    """Return the features that this node supports.

    A node that serves no votes doesn't support kraft.version. Leaders, Java's and ours, ask a newcomer for
    that level, and refuse to make a node a voter that has none.
    """
    votes = apis.find(VoteRequest.API_KEY) is not None
    return [
        SupportedFeatureKey(name, lowest, highest)
        for name, (lowest, highest) in state.settings.feature_ranges.items()
        if (lowest or not hide_minimum_0) and (votes or name != KRAFT_VERSION)
    ]


def _finalized(state: ControllerState) -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
        for name, level in state.finalized_levels().items()
    ]
