"""The APIs that this node serves: one table of versions, of who answers, and of what a broker may forward.

ApiVersions advertises exactly this table. A broker offers its own clients the versions of a forwardable API
that both sides know (Kafka's ApiVersionsResponse), so a missing row here is an API that clients of every
broker lose.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, cast

import msgspec

from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import api_name, response_class

Handler = Callable[[ControllerState, Any, int, Context], Result]
"""``handle(state, request, version, context)``: see ``Result``; raises ApiError where all of the request
fails."""

ErrorResponder = Callable[[Any, int, ErrorCode, str], Message]
"""``error_response(request, version, code, message)``: the API's own form of "all of it failed"."""


class AnsweredBy(Enum):
    """Who makes the answer."""

    HANDLER = "handler"
    """The module named in the row: state and request to records and response."""
    RAFT = "raft"
    """The raft core. A Fetch whose replica id is negative is a consumer's: ``consumer_fetch``."""
    NODE = "node"
    """The node itself, with the pure functions of the module named in the row."""


class Api(msgspec.Struct, frozen=True):
    """One row: an API, its versions, and who answers.

    ``is_write`` marks what only the active controller may answer, after its records are committed; the other
    handlers read whatever this node has applied. ``is_forwardable`` is Kafka's ApiKeys.forwardable.
    """

    key: int
    min_version: int
    max_version: int
    answered_by: AnsweredBy
    module: str = ""
    is_write: bool = False
    is_forwardable: bool = False

    @property
    def name(self) -> str:
        """Kafka's name of the API, such as "CreateTopics"."""
        return api_name(self.key)

    def supports(self, version: int) -> bool:
        """Whether a request of this version is served."""
        return self.min_version <= version <= self.max_version

    def handler(self) -> Handler:
        """The function that answers; only for rows answered by a handler. Its module is imported on first
        use."""
        return cast(Handler, _member(self.module, "handle"))

    def error_response(self, request: Message, version: int, code: ErrorCode, message: str = "") -> Message:
        """The response that says that all of ``request`` failed with ``code``."""
        if not self.module:
            return top_level_error(self.key, code, message)
        responder = cast(ErrorResponder, _member(self.module, "error_response"))
        return responder(request, version, code, message)


def top_level_error(api_key: int, code: ErrorCode, message: str = "") -> Message:
    """An otherwise empty response with an error at its top, where the API's response has one."""
    cls = response_class(api_key)
    fields: dict[str, Any] = {"error_code": int(code)}
    if message and "error_message" in cls.__struct_fields__:
        fields["error_message"] = message
    return cls(**fields)


@cache
def _member(module: str, name: str) -> Any:
    return getattr(import_module(f"kraft_wire.controller.{module}"), name)


def _raft(key: int, max_version: int, *, min_version: int = 0, forwardable: bool = False) -> Api:
    return Api(key, min_version, max_version, AnsweredBy.RAFT, is_forwardable=forwardable)


def _node(key: int, max_version: int, module: str, *, min_version: int = 0) -> Api:
    return Api(key, min_version, max_version, AnsweredBy.NODE, module)


def _read(key: int, max_version: int, module: str, *, min_version: int = 0) -> Api:
    return Api(key, min_version, max_version, AnsweredBy.HANDLER, module)


def _write(
    key: int, max_version: int, module: str, *, min_version: int = 0, forwardable: bool = False
) -> Api:
    return Api(key, min_version, max_version, AnsweredBy.HANDLER, module, True, forwardable)


_TABLE: Final = (
    _read(0, 13, "refuse_produce", min_version=3),  # Produce
    _raft(1, 18, min_version=4),  # Fetch
    _node(2, 11, "consumer_list_offsets", min_version=1),  # ListOffsets
    _read(3, 13, "consumer_metadata"),  # Metadata
    _read(18, 5, "api_versions"),  # ApiVersions
    _write(19, 7, "create_topics", min_version=2, forwardable=True),
    _write(20, 6, "delete_topics", min_version=1, forwardable=True),
    _read(32, 4, "describe_configs", min_version=1),
    _write(37, 3, "create_partitions", forwardable=True),
    _write(43, 2, "elect_leaders", forwardable=True),
    _write(44, 1, "incremental_alter_configs", forwardable=True),
    _raft(52, 2),  # Vote
    _raft(53, 1),  # BeginQuorumEpoch
    _raft(54, 1),  # EndQuorumEpoch
    _raft(55, 2, forwardable=True),  # DescribeQuorum
    _write(56, 3, "alter_partition", min_version=2),
    _node(58, 0, "envelope"),
    _raft(59, 1),  # FetchSnapshot
    _read(60, 2, "describe_cluster"),
    _write(62, 4, "broker_registration"),
    _write(63, 2, "broker_heartbeat"),
    _write(64, 0, "unregister_broker", forwardable=True),
    _write(67, 0, "allocate_producer_ids", forwardable=True),
    _write(70, 0, "controller_registration"),
    _write(73, 0, "assign_replicas_to_dirs"),
)

APIS: Final = MappingProxyType({api.key: api for api in _TABLE})
"""Every API that is served, by key, in the order of keys."""
