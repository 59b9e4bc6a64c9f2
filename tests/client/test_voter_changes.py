"""Whether kraft.version can be raised: the request changes nothing, and both forms of the answer are read."""

from __future__ import annotations

import pytest

from kraft_wire.client.voter_changes import ChangeAnswer, read_features, try_kraft_version
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)

INVALID = ErrorCode.INVALID_UPDATE_VERSION


def test_the_request_only_asks() -> None:
    request = try_kraft_version(1, 5000)
    (update,) = request.feature_updates
    assert (request.validate_only, update.feature, update.max_version_level) == (True, "kraft.version", 1)
    assert update.upgrade_type == 1


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (UpdateFeaturesResponse(error_message=None), ChangeAnswer(ErrorCode.NONE, "")),
        (UpdateFeaturesResponse(error_code=INVALID, error_message="no"), ChangeAnswer(INVALID, "no")),
        (
            UpdateFeaturesResponse(
                results=[UpdatableFeatureResult("kraft.version", INVALID, "controller 1 is too old")]
            ),
            ChangeAnswer(INVALID, "controller 1 is too old"),
        ),
        (
            UpdateFeaturesResponse(results=[UpdatableFeatureResult("kraft.version", 0, "NONE")]),
            ChangeAnswer(ErrorCode.NONE, "NONE"),
        ),
    ],
)
def test_the_answer_is_at_the_top_or_beside_the_feature(
    response: UpdateFeaturesResponse, answer: ChangeAnswer
) -> None:
    assert read_features(response) == answer
