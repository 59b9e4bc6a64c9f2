"""Serve UpdateFeatures (57): upgrade kraft.version. KIP-584, KIP-853.

Other features keep their levels: a request that would change one is refused. Rules: FeatureControlManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.metadata.features.supported import KRAFT_VERSION, supported_ranges
from kraft_wire.protocol.errors import ApiError, ErrorCode
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
    """Upgrade kraft.version, if it is among the features and every controller and broker supports the level.

    Nothing changes if one of the features can't get its level. Raises ApiError(INVALID_UPDATE_VERSION).
    """
    updates = {update.feature: update for update in request.feature_updates}
    upgraded: int | None = None
    for update in updates.values():
        _check(state, update, _upgrade_type(update, version))
        if update.feature == KRAFT_VERSION:
            upgraded = _check_kraft_version(state, update)
    response = UpdateFeaturesResponse(error_message=None)
    if version <= LAST_WITH_RESULTS:
        response.results = [UpdatableFeatureResult(feature=name, error_message=None) for name in updates]
    if request.validate_only or upgraded is None:
        return Result(response)
    # The answer waits for the commit of this record, and so for that of the level before it.
    return Result(response, [(NoOpRecord(), 0)], kraft_version=upgraded)


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
    if level != present and update.feature != KRAFT_VERSION:
        raise _refused(update, "This controller can't change this feature yet, only kraft.version.")


def _check_supported(state: ControllerState, update: FeatureUpdateKey) -> None:
    """Check that this controller, every broker and every other controller support the level."""
    _check_range(update, f"Controller {state.node_id}", supported_ranges())
    for broker in state.metadata.brokers.values():
        _check_range(update, f"Broker {broker.id}", broker.features)
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


def _check_kraft_version(state: ControllerState, update: FeatureUpdateKey) -> int:
    problem = state.kraft_version_problem(update.max_version_level)
    if problem is not None:
        raise _refused(update, problem[:1].upper() + problem[1:])
    return update.max_version_level


def _refused(update: FeatureUpdateKey, reason: str) -> ApiError:
    name, level = update.feature, update.max_version_level
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Feature {name} can't get level {level}. {reason}")
