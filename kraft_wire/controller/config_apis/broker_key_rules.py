"""Check how the keys of brokers change. Rules: ConfigurationControlManager."""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.exporter_orders import check_order, is_order
from kraft_wire.configs.java_text import trim
from kraft_wire.configs.own_keys import PREFIX
from kraft_wire.configs.schema import ALL_BROKERS, MIN_INSYNC_REPLICAS
from kraft_wire.configs.types import InvalidConfigValue, split_list
from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.metadata.features import metadata_version
from kraft_wire.protocol.errors import ApiError, ErrorCode

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"


def check_broker_key(
    state: ControllerState, context: Context, broker: str, key: str, current: str | None, value: str | None
) -> None:
    """Check the change of one key from ``current`` to ``value``. None is no value.

    Raises ApiError(INVALID_CONFIG).
    """
    if key.startswith(PREFIX) and value is not None:
        _check_own(broker, key, value)
    if key == MIN_INSYNC_REPLICAS and state.metadata.features.elr_enabled:
        _check_min_isr(broker, value)
    elif key == CORDONED_LOG_DIRS:
        _check_cordoned(state, context, current, value)


def _check_own(broker: str, key: str, value: str) -> None:
    """Check a key of kraft-wire. Only orders for exporters can be set while controllers run."""
    if not is_order(key):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{key} is read when a controller starts: set it in the controller's properties file",
        )
    if broker != ALL_BROKERS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{key} is for all controllers: set it on the default of all brokers"
        )
    try:
        check_order(key, value)
    except InvalidConfigValue as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_min_isr(broker: str, value: str | None) -> None:
    """Only all brokers together have a minimum with eligible leader replicas, and always (KIP-966)."""
    if broker != ALL_BROKERS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_REPLICAS} can't be set on one broker while eligible leader replicas are enabled",
        )
    if value is None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_REPLICAS} can't be removed while eligible leader replicas are enabled",
        )


def _check_cordoned(state: ControllerState, context: Context, current: str | None, value: str | None) -> None:
    """Check a list of cordoned log directories (KIP-1066).

    A broker checks it for its clients, because only the broker knows its directories. A client that asks the
    controller itself may only remove some.
    """
    level = state.metadata.features.metadata_version
    if not metadata_version.cordoned_dirs_supported(level):
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{CORDONED_LOG_DIRS} needs metadata.version 4.3-IV0 or higher"
        )
    if context.is_forwarded or value is None or not trim(value):
        return
    known = set() if current is None else set(split_list(current) or [""])
    if added := [item for item in split_list(value) if item not in known]:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"ask a broker to add {','.join(added)!r} to {CORDONED_LOG_DIRS}; controllers only remove items",
        )
