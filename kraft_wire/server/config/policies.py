"""Find and make the policies that installed packages bring along, as entry points.

Packages are looked through only if a key names a policy: that takes some milliseconds.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic

from kraft_wire.controller.policies import Asked, Policies, Policy, PolicyViolation
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.server.config.reader import ConfigError, ConfigReader
from kraft_wire.server.logging import get_logger

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

CREATE_TOPIC: Final = "create.topic.policy.class.name"
ALTER_CONFIG: Final = "alter.config.policy.class.name"
GROUPS: Final[Mapping[str, str]] = {
    CREATE_TOPIC: "kraft_wire.create_topic_policies",
    ALTER_CONFIG: "kraft_wire.alter_config_policies",
}
"""The group of entry points for each key. The key's value is the name of one."""

log = get_logger(__name__)


def check_policies(reader: ConfigReader) -> None:
    """Note as problems of a file what is wrong with its policies. It imports them, but makes none."""
    for key in GROUPS:
        name = reader.get_text(key)
        if name:
            for problem in _problems(key, name):
                reader.problem(problem)


def _problems(key: str, name: str) -> Iterator[str]:
    point = _find(key, name)
    if point is None:
        known = ", ".join(sorted(_installed(key).names)) or "none"
        yield (
            f"{key}={name}: no installed package has an entry point of this name in the group {GROUPS[key]}; "
            f"known are: {known}. Java classes can't run here: write the policy in Python, or remove the key"
        )
        return
    try:
        is_callable = callable(point.load())
    except Exception as error:  # noqa: BLE001 - it is the code of somebody else
        yield f"{key}={name} can't be loaded from {point.value}: {type(error).__name__}: {error}"
    else:
        if not is_callable:
            yield f"{key}={name}: {point.value} is no class and no function"


def make_policies(properties: Mapping[str, str]) -> Policies:
    """Return the policies that a controller's properties name. ``check_policies`` has found no problem.

    Raises ConfigError if one can't be made.
    """
    return Policies(
        create_topic=_make(CREATE_TOPIC, properties), alter_config=_make(ALTER_CONFIG, properties)
    )


def _make(key: str, properties: Mapping[str, str]) -> Policy[Any] | None:
    name = properties.get(key, "").strip()
    point = _find(key, name) if name else None
    if point is None:
        return None
    make: Callable[[Mapping[str, str]], Policy[Any]] = point.load()
    try:
        policy = make(dict(properties))
    except Exception as error:
        raise ConfigError(f"{key}={name}", [f"the policy failed: {type(error).__name__}: {error}"]) from error
    return _Guarded(key, policy)


def _find(key: str, name: str) -> EntryPoint | None:
    return next(iter(_installed(key).select(name=name)), None)


def _installed(key: str) -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=GROUPS[key])


class _Guarded(Generic[Asked]):
    """A policy of somebody else: an error of it fails what was asked for, and nothing else.

    Nobody gets the text of an error: it may quote secret values.
    """

    def __init__(self, key: str, policy: Policy[Asked]) -> None:
        self._key = key
        self._policy = policy

    def validate(self, asked: Asked, /) -> None:
        """Raise PolicyViolation, or ApiError(UNKNOWN_SERVER_ERROR) if the policy raises anything else."""
        try:
            self._policy.validate(asked)
        except PolicyViolation:
            raise
        except Exception as error:  # noqa: BLE001 - it is the code of somebody else
            kind = type(error).__name__
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error("policy failed", key=self._key, asked=asked.subject, error=kind, traceback=where)
            text = f"the policy of {self._key} failed with {kind}; the controller's log says where"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from None
