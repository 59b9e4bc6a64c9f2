"""Define the operations and resources that permissions are about, with Kafka's names and codes."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from kraft_wire.protocol.errors import ErrorCode


class AclOperation(IntEnum):
    """An operation on a resource (org.apache.kafka.common.acl.AclOperation)."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """The type of a resource (org.apache.kafka.common.resource.ResourceType)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Resource(msgspec.Struct, frozen=True, gc=False):
    """A resource that a permission is about. Its text is such as "topic orders"."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return "the cluster" if self.type is ResourceType.CLUSTER else f"{self.type.name.lower()} {self.name}"

    @property
    def refusal(self) -> ErrorCode:
        """The error code for a client without permission on a resource of this type."""
        return _REFUSALS[self.type]


CLUSTER: Final = Resource(ResourceType.CLUSTER, "kafka-cluster")
"""The one resource of type CLUSTER (Resource.CLUSTER in Java)."""

_REFUSALS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def topic_resource(name: str) -> Resource:
    """Return the resource of a topic."""
    return Resource(ResourceType.TOPIC, name)


def group_resource(name: str) -> Resource:
    """Return the resource of a group."""
    return Resource(ResourceType.GROUP, name)
