"""Serve DescribeConfigs (32): return configuration values and their sources. KIP-133, KIP-226, KIP-569.

On a controller a BROKER resource is this node, by its id, or "" for the values set dynamically on all
brokers. Topics, groups and client metrics subscriptions are those of the cluster. Sensitive values are never
sent. The documentation is in our own words. Versions: 1 adds sources and synonyms, 3 types and
documentation. Kafka requires DESCRIBE_CONFIGS on the topic, on the group, or for all else on the cluster.
Rules: ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from kraft_wire.controller.config_apis.config_entries import ConfigEntries
from kraft_wire.controller.decision.context import Context, ControllerState, Result, refused
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.metadata.configs import Resource as NamedResource
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.topic_names import why_invalid
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.security.authorization import (
    CLUSTER,
    AclOperation,
    Resource,
    group_resource,
    topic_resource,
)

RESOURCES_PER_PIECE: Final = 500
"""The resources that are described in one step."""
ENTRIES_PER_PIECE: Final = 1_000
"""The entries that are made in one step, if one resource doesn't need more."""

_TYPES: Final = frozenset(map(int, ResourceType)) - {int(ResourceType.UNKNOWN)}

_TOPIC: Final = int(ResourceType.TOPIC)


def handle(state: ControllerState, request: DescribeConfigsRequest, version: int, context: Context) -> Result:
    """Describe each resource. Each one that fails has its error in the response.

    Resources that the client may not see come last, as in Kafka. Raises ApiError(INVALID_REQUEST) for a
    resource type that does not exist.
    """
    for resource in request.resources:
        if resource.resource_type not in _TYPES:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no resource type {resource.resource_type}")
    return Result.of_work(_Description(request, context), state, context)


class _Description:
    """The description of the resources of one request. Each is described as it is found in its step."""

    def __init__(self, request: DescribeConfigsRequest, context: Context) -> None:
        self.key = WorkKey(WorkKind.DESCRIBE_CONFIGS)
        self._include_synonyms = request.include_synonyms
        self._include_documentation = request.include_documentation
        self._context = context
        self._asked = list(_keys_by_resource(request.resources).items())
        self._next = 0
        self._described: list[DescribeConfigsResult] = []
        self._refusals: list[DescribeConfigsResult] = []

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Describe the next resources."""
        entries = ConfigEntries(
            state,
            include_synonyms=self._include_synonyms,
            include_documentation=self._include_documentation,
        )
        end = min(self._next + RESOURCES_PER_PIECE, len(self._asked))
        while self._next < end and entries.effort < ENTRIES_PER_PIECE:
            self._describe(state, entries, *self._asked[self._next])
            self._next += 1
        if self._next < len(self._asked):
            return Piece((), is_last=False)
        response = DescribeConfigsResponse(results=self._described + self._refusals)
        return Piece((), is_last=True, response=response)

    def _describe(
        self,
        state: ControllerState,
        entries: ConfigEntries,
        resource: NamedResource,
        keys: Collection[str] | None,
    ) -> None:
        context = self._context
        if context.may_do_everything or context.may(AclOperation.DESCRIBE_CONFIGS, _governing(resource)):
            self._described.append(_result(state, entries, resource, keys))
        else:
            self._refusals.append(
                _failure(resource, refused(AclOperation.DESCRIBE_CONFIGS, _governing(resource)))
            )


def _keys_by_resource(resources: Iterable[DescribeConfigsResource]) -> dict[NamedResource, set[str] | None]:
    """Return for each resource all the keys that are asked of it, None for all that there are."""
    asked: dict[NamedResource, set[str] | None] = {}
    for resource in resources:
        name = resource.resource_type, resource.resource_name
        if not resource.configuration_keys:
            asked[name] = None
        elif (keys := asked.setdefault(name, set())) is not None:
            keys.update(resource.configuration_keys)
    return asked


def _governing(resource: NamedResource) -> Resource:
    """Return the resource whose permission is needed to see a configuration."""
    resource_type, name = resource
    match resource_type:
        case ResourceType.TOPIC:
            return topic_resource(name)
        case ResourceType.GROUP:
            return group_resource(name)
        case _:
            return CLUSTER


def _result(
    state: ControllerState, entries: ConfigEntries, resource: NamedResource, keys: Collection[str] | None
) -> DescribeConfigsResult:
    resource_type, name = resource
    try:
        if resource_type == _TOPIC:
            _check_topic(state, name)
        configs = entries.of(resource_type, name, keys)
    except ApiError as error:
        return _failure(resource, error)
    return DescribeConfigsResult(resource_type=resource_type, resource_name=name, configs=configs)


def _failure(resource: NamedResource, error: ApiError) -> DescribeConfigsResult:
    resource_type, name = resource
    return DescribeConfigsResult(
        error_code=int(error.code),
        error_message=error.message or None,
        resource_type=resource_type,
        resource_name=name,
    )


def _check_topic(state: ControllerState, name: str) -> None:
    if state.metadata.topics.is_name(name):
        return
    if fault := why_invalid(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
