"""ApiVersions: APIs, features and versions from the future."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS, OBSERVER_APIS
from kraft_wire.controller.cluster import api_versions
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from tests.controller.controller_harness import Harness, failure


def ask(
    harness: Harness, version: int, name: str = "librdkafka", software: str = "2.0.2"
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    return harness.run(api_versions, request, version, ApiVersionsResponse)


@pytest.mark.parametrize("version", range(6))
def test_exactly_the_table_is_advertised(version: int) -> None:
    response = ask(Harness(), version)
    advertised = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert advertised == {api.key: (api.min_version, api.max_version) for api in CONTROLLER_APIS}
    assert [key.api_key for key in response.api_keys] == sorted(advertised)


def test_supported_features() -> None:
    response = ask(Harness(), 4)
    supported = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
    assert supported["metadata.version"] == (7, 33)
    assert supported["kraft.version"] == (0, 1)
    assert supported["group.version"] == (0, 1)


def test_older_clients_do_not_see_features_that_begin_at_0() -> None:
    """KAFKA-17492: old clients can't read features with minimum 0."""
    assert [f.name for f in ask(Harness(), 3).supported_features] == ["metadata.version"]


def test_finalized_features_include_kraft_version_and_the_offset_of_the_last_change() -> None:
    harness = Harness(33, {"group.version": 0})
    epoch = harness.metadata.features.epoch
    harness.add_brokers(0)
    response = ask(harness, 3)
    finalized = {f.name: (f.min_version_level, f.max_version_level) for f in response.finalized_features}
    assert finalized["metadata.version"] == (33, 33)
    assert finalized["kraft.version"] == (1, 1)
    assert "group.version" not in finalized
    assert response.finalized_features_epoch == epoch

    harness.replay([(FeatureLevelRecord("group.version", 1), 0)])
    response = ask(harness, 3)
    assert response.finalized_features_epoch == harness.state.next_offset - 1
    assert "group.version" in {f.name for f in response.finalized_features}


def test_before_the_metadata_is_loaded_there_are_no_finalized_features() -> None:
    response = ask(Harness(0, kraft_version=0), 4)
    assert response.finalized_features == []
    assert response.finalized_features_epoch == -1


@pytest.mark.parametrize(("name", "software"), [("", "1"), ("a b", "1"), ("ok", "-1"), ("ok", "1.")])
def test_a_client_name_with_other_characters_is_refused_where_it_is_sent(name: str, software: str) -> None:
    with pytest.raises(ApiError) as refused:
        ask(Harness(), 3, name, software)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert ask(Harness(), 2, name, software).error_code == 0


def test_a_version_from_the_future_is_answered_at_version_0() -> None:
    api = CONTROLLER_APIS[ApiVersionsRequest.API_KEY]
    response = api.error_response(ApiVersionsRequest(), 6, ErrorCode.UNSUPPORTED_VERSION, "")
    decoded = ApiVersionsResponse.decode(response.encode(0), 0)
    assert decoded.error_code == 35
    assert [(k.api_key, k.min_version, k.max_version) for k in decoded.api_keys] == [(18, 0, 5)]


def test_other_errors_have_only_a_code() -> None:
    response = failure(ApiVersionsResponse, ApiVersionsRequest(), 3, ErrorCode.INVALID_REQUEST, "why")
    assert (response.error_code, response.api_keys) == (42, [])


def test_an_observer_advertises_no_votes_and_no_kraft_version() -> None:
    """Leaders make no node a voter that doesn't say which levels of kraft.version it supports."""
    context = msgspec.structs.replace(Harness().context(), apis=OBSERVER_APIS)
    request = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.0.2")
    response = api_versions.handle(Harness().state, request, 4, context).response
    assert isinstance(response, ApiVersionsResponse)
    controllers = {api.key for api in CONTROLLER_APIS}
    missing = controllers - {key.api_key for key in response.api_keys}
    assert {CONTROLLER_APIS[key].name for key in missing} == {"Vote", "BeginQuorumEpoch", "EndQuorumEpoch"}
    features = {feature.name for feature in response.supported_features}
    assert "kraft.version" not in features
    assert "metadata.version" in features
