"""UpdateFeatures: the rules of FeatureControlManager and, for eligible leader replicas, of
ConfigurationControlManager."""

from __future__ import annotations

import pytest

from kraft_wire.controller.brokers import broker_registration
from kraft_wire.controller.cluster import update_features
from kraft_wire.controller.decision.context import Result
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.features.supported import ELIGIBLE_LEADER_REPLICAS_VERSION as ELR
from kraft_wire.metadata.features.supported import KRAFT_VERSION, supported_ranges
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.controller.cluster.test_controller_registration_api import register
from tests.controller.controller_harness import NODE_ID, Harness
from tests.controller.lone_controller import LoneController

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
ANOTHER = NODE_ID + 1
BROKER = int(ResourceType.BROKER)
MIN_ISR = "min.insync.replicas"


def request(
    feature: str = KRAFT_VERSION, level: int = 1, upgrade_type: int = UPGRADE, *, validate_only: bool = False
) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    return UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)


def with_static_voters() -> Harness:
    harness = Harness()
    harness.state.kraft_version = 0
    return harness


def decide(harness: Harness, asked: UpdateFeaturesRequest, version: int = 2) -> Result:
    return harness.decide(update_features, asked, version)


def refusal(harness: Harness, asked: UpdateFeaturesRequest, version: int = 2) -> str:
    with pytest.raises(ApiError) as refused:
        decide(harness, asked, version)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    return refused.value.message


def test_kraft_version_is_raised_before_a_record_whose_commit_is_awaited() -> None:
    result = decide(with_static_voters(), request())
    assert result.kraft_version == 1
    assert [type(record) for record, _ in result.records] == [NoOpRecord]


def test_validate_only_changes_nothing() -> None:
    result = decide(with_static_voters(), request(validate_only=True))
    assert result.kraft_version is None
    assert not result.records


@pytest.mark.parametrize(("version", "names"), [(0, [KRAFT_VERSION]), (1, [KRAFT_VERSION]), (2, [])])
def test_only_old_versions_name_each_feature(version: int, names: list[str]) -> None:
    response = decide(with_static_voters(), request(), version).response
    assert isinstance(response, UpdateFeaturesResponse)
    assert [each.feature for each in response.results] == names
    assert response.error_message is None


def test_raft_may_refuse() -> None:
    harness = with_static_voters()
    harness.state.kraft_version_problem = "level {} is too early".format
    assert refusal(harness, request()).endswith("can't get level 1. Level 1 is too early")


@pytest.mark.parametrize("upgrade_type", [UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_kraft_version_is_never_downgraded(upgrade_type: int) -> None:
    harness = Harness()
    harness.state.kraft_version = 1
    assert "can't be downgraded" in refusal(harness, request(level=0, upgrade_type=upgrade_type))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (request(level=-1), "can't be negative"),
        (request(level=2), f"Controller {NODE_ID} supports 0 to 1"),
        (request(upgrade_type=0), "Upgrade type 0 is unknown"),
        (request(upgrade_type=SAFE_DOWNGRADE), "The present level 0 is lower"),
        (request("no.such.feature"), f"Controller {NODE_ID} supports no level but 0"),
        (request("metadata.version", 32), "The present level 33 is higher"),
        (request("metadata.version", 32, SAFE_DOWNGRADE), "a downgrade would lose some of it"),
        (request("metadata.version", 32, UNSAFE_DOWNGRADE), "a downgrade would lose some of it"),
        (request("metadata.version", 34), f"Controller {NODE_ID} supports 7 to 33"),
        (request("metadata.version", 6, SAFE_DOWNGRADE), f"Controller {NODE_ID} supports 7 to 33"),
        (request("share.version", 1), "The present level 2 is higher"),
    ],
)
def test_impossible_updates_are_refused(asked: UpdateFeaturesRequest, text: str) -> None:
    assert text in refusal(with_static_voters(), asked)


def test_the_present_level_of_a_feature_is_written_again_as_in_java() -> None:
    result = decide(with_static_voters(), request("metadata.version", 33))
    assert result.kraft_version is None
    assert result.records == [(FeatureLevelRecord("metadata.version", 33), 0)]


@pytest.mark.parametrize(
    ("feature", "before", "after", "upgrade_type"),
    [
        ("metadata.version", 7, 33, UPGRADE),
        ("metadata.version", 25, 31, UPGRADE),
        ("metadata.version", 31, 30, SAFE_DOWNGRADE),
        ("metadata.version", 31, 30, UNSAFE_DOWNGRADE),
        ("transaction.version", 0, 2, UPGRADE),
        ("transaction.version", 2, 1, SAFE_DOWNGRADE),
        ("group.version", 1, 0, UNSAFE_DOWNGRADE),
    ],
)
def test_levels_are_raised_and_lowered(feature: str, before: int, after: int, upgrade_type: int) -> None:
    harness = Harness(level=before) if feature == "metadata.version" else Harness(features={feature: before})
    harness.run(update_features, request(feature, after, upgrade_type), 2, UpdateFeaturesResponse)
    assert harness.metadata.features.levels.get(feature, 0) == after


def test_a_feature_needs_the_levels_that_others_get_in_the_same_request() -> None:
    harness = Harness(level=22)
    asked = request(ELR)
    assert "needs metadata.version 23" in refusal(harness, asked)
    asked.feature_updates += request("metadata.version", 23).feature_updates
    harness.run(update_features, asked, 2, UpdateFeaturesResponse)
    assert harness.metadata.features.elr_enabled


def test_eligible_leader_replicas_make_the_minimum_a_setting_of_the_cluster() -> None:
    harness = Harness(features={ELR: 0}, static_configs={MIN_ISR: "2"})
    for broker in ("10", "2"):
        harness.replay([(ConfigRecord(BROKER, broker, MIN_ISR, "3"), 0)])
    harness.replay([(ConfigRecord(BROKER, "1", "log.cleaner.threads", "3"), 0)])
    assert decide(harness, request(ELR)).records == [
        (ConfigRecord(BROKER, "", MIN_ISR, "2"), 0),
        (ConfigRecord(BROKER, "2", MIN_ISR, None), 0),
        (ConfigRecord(BROKER, "10", MIN_ISR, None), 0),
        (FeatureLevelRecord(ELR, 1), 0),
    ]
    harness.replay([(ConfigRecord(BROKER, "", MIN_ISR, "1"), 0)])
    harness.run(update_features, request(ELR), 2, UpdateFeaturesResponse)
    assert harness.metadata.configs.get(BROKER, "") == {MIN_ISR: "1"}, "it has one already"


def test_before_controllers_register_nobody_can_ask_them_what_they_support() -> None:
    harness = Harness(level=14)
    harness.state.voter_ids = (NODE_ID, ANOTHER)
    harness.run(update_features, request("metadata.version", 33), 2, UpdateFeaturesResponse)
    assert harness.metadata.features.metadata_version == 33


def test_a_broker_that_does_not_support_the_level_vetoes_it() -> None:
    harness = Harness(level=30)
    broker = harness.registration_request(1, features={**supported_ranges(), "metadata.version": (7, 31)})
    harness.run(broker_registration, broker, 4, BrokerRegistrationResponse)
    assert "Broker 1 supports 7 to 31" in refusal(harness, request("metadata.version", 32))
    assert decide(harness, request("metadata.version", 31)).records


def test_nothing_changes_if_one_of_the_features_is_refused() -> None:
    asked = request()
    asked.feature_updates += request("metadata.version", 32).feature_updates
    refusal(with_static_voters(), asked)


def test_a_controller_that_does_not_support_the_level_vetoes_it() -> None:
    harness = with_static_voters()
    register(harness, ANOTHER, "CONTROLLER")
    assert f"Controller {ANOTHER} supports no level but 0" in refusal(harness, request())


def test_a_voter_that_has_not_registered_vetoes_it() -> None:
    harness = with_static_voters()
    harness.state.voter_ids = (NODE_ID, ANOTHER)
    assert f"Controller {ANOTHER} has not registered" in refusal(harness, request())


def test_the_answer_waits_for_the_commit_of_the_level() -> None:
    controller = LoneController()
    controller.flush()
    controller.flush()
    assert controller.node.core.kraft_version == 0
    controller.ask("upgrade", request(), 2)
    assert controller.node.core.kraft_version == 1
    assert "upgrade" not in controller.replies
    controller.flush()
    assert controller.answer("upgrade", UpdateFeaturesResponse).error_code == 0
    controller.ask("again", request(), 2)
    controller.flush()
    assert controller.answer("again", UpdateFeaturesResponse).error_code == 0
