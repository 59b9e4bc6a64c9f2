"""Serve UpdateFeatures (57): raise and lower the levels of features. KIP-584, KIP-853, KIP-1022.

Nothing changes if one of the features can't get its level. Kafka requires ALTER on the cluster. Rules:
FeatureControlManager, ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraft_wire.configs.schema import ALL_BROKERS, MIN_INSYNC_REPLICAS
from kraft_wire.controller.cluster.cluster_min_isr import cluster_min_isr
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features.metadata_version import (
    controller_registration_supported,
    metadata_changed_between,
    name_of,
)
from kraft_wire.metadata.features.supported import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    check_level,
)
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)

LAST_WITH_RESULTS: Final = 1
UPGRADE: Final = 1
UPGRADE_TYPES: Final = range(1, 4)
"""Upgrade, safe downgrade, unsafe downgrade."""


def handle(state: ControllerState, request: UpdateFeaturesRequest, version: int, context: Context) -> Result:
    """Give features their levels, if every controller and broker supports them.

    Raises ApiError(INVALID_UPDATE_VERSION).
    """
    updates = {update.feature: update for update in request.feature_updates}
    proposed = state.finalized_levels()
    proposed |= {update.feature: update.max_version_level for update in updates.values()}
    upgraded: int | None = None
    records: list[VersionedRecord] = []
    for update in updates.values():
        upgrade_type = _upgrade_type(update, version)
        _check(state, update, upgrade_type)
        if update.feature == KRAFT_VERSION:
            if upgrade_type == UPGRADE:
                upgraded = _check_kraft_version(state, update)
                # The answer waits for the commit of this record, and so for that of the level before it.
                records.append((NoOpRecord(), 0))
            continue
        if update.feature == METADATA_VERSION:
            _check_metadata_version(state, update)
        else:
            _check_needs(update, proposed)
        records.append((FeatureLevelRecord(update.feature, update.max_version_level), 0))
    if updates.get(ELIGIBLE_LEADER_REPLICAS_VERSION, FeatureUpdateKey()).max_version_level > 0:
        records = [*_one_min_isr(state), *records]
    response = UpdateFeaturesResponse(error_message=None)
    if version <= LAST_WITH_RESULTS:
        response.results = [UpdatableFeatureResult(feature=name, error_message=None) for name in updates]
    if request.validate_only:
        return Result(response)
    return Result(response, records, kraft_version=upgraded)


def _upgrade_type(update: FeatureUpdateKey, version: int) -> int:
    """Return the type of an update. Version 0 has a flag instead, for a safe downgrade."""
    if version == 0:
        return UPGRADE + update.allow_downgrade
    return update.upgrade_type


def _check(state: ControllerState, update: FeatureUpdateKey, upgrade_type: int) -> None:
    """Check the update in Java's order."""
    level = update.max_version_level
    if upgrade_type not in UPGRADE_TYPES:
        raise _refused(update, f"Upgrade type {upgrade_type} is unknown.")
    if level < 0:
        raise _refused(update, "A level can't be negative.")
    _check_supported(state, update)
    present = state.finalized_levels().get(update.feature, 0)
    if level < present and (upgrade_type == UPGRADE or update.feature == KRAFT_VERSION):
        can = "can't be downgraded" if update.feature == KRAFT_VERSION else "is higher: ask for a downgrade"
        raise _refused(update, f"The present level {present} {can}.")
    if level > present and upgrade_type != UPGRADE:
        raise _refused(update, f"The present level {present} is lower: ask for an upgrade.")


def _check_supported(state: ControllerState, update: FeatureUpdateKey) -> None:
    """Check that this controller, every broker and every other controller support the level."""
    _check_range(update, f"Controller {state.node_id}", state.settings.feature_ranges)
    for broker in state.metadata.brokers.values():
        _check_range(update, f"Broker {broker.id}", broker.features)
    if not controller_registration_supported(state.metadata.features.metadata_version):
        return
    controllers = state.metadata.controllers
    for controller in controllers.values():
        if controller.id != state.node_id:
            _check_range(update, f"Controller {controller.id}", controller.features)
    for voter_id in state.voter_ids:
        if voter_id != state.node_id and controllers.get(voter_id) is None:
            raise _refused(update, f"Controller {voter_id} has not registered, and may not support it.")


def _check_range(update: FeatureUpdateKey, node: str, ranges: Mapping[str, tuple[int, int]]) -> None:
    level = update.max_version_level
    lowest, highest = ranges.get(update.feature, (0, 0))
    if not lowest <= level <= highest:
        supported = f"{lowest} to {highest}" if highest else "no level but 0"
        raise _refused(update, f"{node} supports {supported}.")


def _check_metadata_version(state: ControllerState, update: FeatureUpdateKey) -> None:
    """Check that a downgrade loses nothing. No release of Kafka 4 makes one that does."""
    present, level = state.metadata.features.metadata_version, update.max_version_level
    if level < present and metadata_changed_between(present, level):
        raise _refused(
            update,
            f"The format of the metadata has changed between {name_of(level)} and {name_of(present)}: a "
            "downgrade would lose some of it.",
        )


def _check_needs(update: FeatureUpdateKey, proposed: Mapping[str, int]) -> None:
    try:
        check_level(update.feature, update.max_version_level, proposed, unstable=True)
    except FeatureError as error:
        raise _refused(update, f"{error}.") from None


def _one_min_isr(state: ControllerState) -> list[VersionedRecord]:
    """Return the records that make min.insync.replicas a setting of the cluster, which no broker overrides:
    eligible leader replicas need that (KIP-966)."""
    configs, broker = state.metadata.configs, ResourceType.BROKER
    records: list[VersionedRecord] = []
    if configs.value(broker, ALL_BROKERS, MIN_INSYNC_REPLICAS) is None:
        records.append(cluster_min_isr(state))
    names = [name for kind, name in configs.resources() if kind == broker and name != ALL_BROKERS]
    for name in sorted(names, key=int):
        if configs.value(broker, name, MIN_INSYNC_REPLICAS) is not None:
            record = ConfigRecord(broker.value, name, MIN_INSYNC_REPLICAS, None)
            records.append((record, 0))
    return records


def _check_kraft_version(state: ControllerState, update: FeatureUpdateKey) -> int:
    problem = state.kraft_version_problem(update.max_version_level)
    if problem is not None:
        raise _refused(update, problem[:1].upper() + problem[1:])
    return update.max_version_level


def _refused(update: FeatureUpdateKey, reason: str) -> ApiError:
    name, level = update.feature, update.max_version_level
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Feature {name} can't get level {level}. {reason}")
