"""The answer of a simulated node to ApiVersions, as far as a leader needs it that makes the node a voter."""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft.membership.voters import KRAFT_VERSION_RANGE

SERVED: Final = ApiVersionsResponse(
    api_keys=[ApiVersion(api_key=VoteRequest.API_KEY)],
    supported_features=[SupportedFeatureKey("kraft.version", *KRAFT_VERSION_RANGE)],
)
