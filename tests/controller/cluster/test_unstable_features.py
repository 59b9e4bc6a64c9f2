"""With unstable.feature.versions.enable a controller supports levels that no release calls stable."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.controller.cluster import api_versions, update_features
from kraft_wire.metadata.features.metadata_version import LATEST_PRODUCTION, LATEST_TESTING
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.controller.controller_harness import Harness

UPDATE = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", LATEST_TESTING)])


def highest_of(harness: Harness) -> int:
    request = ApiVersionsRequest("test", "1")
    response = harness.run(api_versions, request, 4, ApiVersionsResponse)
    return {each.name: each.max_version for each in response.supported_features}["metadata.version"]


@pytest.fixture
def unstable() -> Harness:
    made = Harness()
    made.state.settings = msgspec.structs.replace(made.state.settings, unstable_feature_versions_enable=True)
    return made


def test_there_is_an_unstable_level() -> None:
    assert LATEST_TESTING > LATEST_PRODUCTION


def test_an_unstable_level_is_not_supported_by_default() -> None:
    harness = Harness()
    assert highest_of(harness) == LATEST_PRODUCTION
    with pytest.raises(ApiError) as error:
        harness.decide(update_features, UPDATE, 2)
    assert error.value.code == ErrorCode.INVALID_UPDATE_VERSION


def test_an_unstable_level_is_supported_if_that_is_enabled(unstable: Harness) -> None:
    assert highest_of(unstable) == LATEST_TESTING
    assert unstable.run(update_features, UPDATE, 2, UpdateFeaturesResponse).error_code == ErrorCode.NONE
    assert unstable.metadata.features.metadata_version == LATEST_TESTING
