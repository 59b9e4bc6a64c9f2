"""Policies: code of other packages that forbids new topics, or changes of configurations.

Kafka's CreateTopicPolicy and AlterConfigPolicy (KIP-108, KIP-133). A policy runs in the event loop: it
decides by what it is given, without I/O, in far less than a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode


class PolicyViolation(Exception):
    """What a policy forbids. The client gets POLICY_VIOLATION with this text."""


class NewTopic(msgspec.Struct, frozen=True):
    """A topic that a client wants to create. Everything else about it is valid.

    A client gives the brokers of each partition as ``replica_assignments``, by partition; otherwise they are
    None, and the numbers are those that the topic gets. ``configs`` are those that the client gives.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replica_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]

    @property
    def subject(self) -> str:
        """What this is about, without values, which may be secret."""
        return f"topic {self.topic}"


class ConfigChange(msgspec.Struct, frozen=True):
    """A change of a resource's configuration, which is valid otherwise.

    ``configs`` are the keys that a client names and changes, with the new values; None removes a value. Keys
    that AlterConfigs removes by not naming them aren't among them. For a new topic they are its
    configuration. Those of brokers are there even if they don't change.
    """

    resource_type: ResourceType
    resource_name: str
    configs: Mapping[str, str | None]

    @property
    def subject(self) -> str:
        """What this is about, without values, which may be secret."""
        return f"{', '.join(self.configs)} of {self.resource_type.name} {self.resource_name!r}"


Asked = TypeVar("Asked", bound=NewTopic | ConfigChange, contravariant=True)


class Policy(Protocol[Asked]):
    """What a package brings along: a class, or a function that returns such an object. It is called once,
    with the controller's properties."""

    def validate(self, asked: Asked, /) -> None:
        """Raises PolicyViolation if this isn't allowed."""


class Policies(msgspec.Struct, frozen=True):
    """The policies of a controller."""

    create_topic: Policy[NewTopic] | None = None
    alter_config: Policy[ConfigChange] | None = None

    def check_topic(self, describe: Callable[[], NewTopic]) -> None:
        """Raise ApiError(POLICY_VIOLATION) if the topic isn't allowed."""
        if self.create_topic is not None:
            _check(self.create_topic, describe())

    def check_configs(self, describe: Callable[[], ConfigChange]) -> None:
        """Raise ApiError(POLICY_VIOLATION) if the change isn't allowed."""
        if self.alter_config is not None:
            _check(self.alter_config, describe())


def _check(policy: Policy[Asked], asked: Asked) -> None:
    try:
        policy.validate(asked)
    except PolicyViolation as violation:
        raise ApiError(ErrorCode.POLICY_VIOLATION, str(violation)) from violation
