"""Define the table of APIs: for each API its versions, its handler, its permission and who answers.

The table is a value. A node, its connections, Envelope and ApiVersions get it as an argument, so that another
kind of node has another table and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Never, Protocol, TypeVar

import msgspec

from kraft_wire.controller.decision.error_responses import TOP_LEVEL, ErrorForm, failed_response
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import API_KEYS, OWN_API_KEYS, api_name, request_class, response_class
from kraft_wire.security.authorization import AclOperation
from kraft_wire.wire.entry_count import LIMIT_KEY, MAX_REQUEST_ENTRIES, TooManyEntries
from kraft_wire.wire.refused_items import NamedItems

if TYPE_CHECKING:
    from kraft_wire.controller.decision.context import Context, ControllerState, Result
    from kraft_wire.security.authorization import Resource

_KEYS: Final = {api_name(key): key for key in (*API_KEYS, *OWN_API_KEYS)}

CONTROLLER: Final = "kraft_wire.controller"

SMALL_REQUEST_BYTES: Final = 1024 * 1024
"""The most bytes of a request that doesn't grow with the cluster. A thousand listeners or log directories
fit."""
LARGE_REQUEST_BYTES: Final = 8 * 1024 * 1024
"""The most bytes of any other request, of which names of 32 KiB would have most. With usual names and values
it has room for ten times the entries that are allowed."""
SMALL_REQUEST_ENTRIES: Final = 3000
"""The most entries of such a request."""

Request = TypeVar("Request", bound=Message, contravariant=True)


class Handler(Protocol[Request]):
    """A pure function that decides on one request.

    Raises ApiError if the whole request fails.
    """

    def __call__(
        self, state: ControllerState, request: Request, version: int, context: Context, /
    ) -> Result: ...


AnyHandler = Handler[Never]
"""A handler of any request. ``Api`` sees to it that a handler gets requests of its own class only."""


class AnsweredBy(Enum):
    """The part of a node that answers an API."""

    ACTIVE_CONTROLLER = "active controller"
    """The handler, on the active controller only, after its records are committed."""
    ANY_CONTROLLER = "any controller"
    """The handler, with the metadata that this node has applied."""
    RAFT = "raft"
    """The raft core. A Fetch of an ordinary consumer is answered by the node."""
    NODE = "node"
    """The node itself."""


def _never(request: Message) -> bool:
    return False


class Api(msgspec.Struct, frozen=True):
    """One row of the table.

    ``name`` is Kafka's, such as "CreateTopics", or that of an API of ours. ``requires`` is the permission
    that the whole request needs: the node checks it. Handlers check the permissions of single items
    themselves. ``module`` has the function ``handle`` that answers; its name is relative to CONTROLLER. It is
    imported for the first request only: starting a controller is mostly importing modules.

    ``is_forwardable`` is Kafka's ApiKeys.forwardable: whether brokers may send the API in an Envelope. An API
    ``reads_in_pieces`` if its handler changes nothing and may take several steps. It ``searches_log`` if the
    log is read for a request. A request that ``is_about_this_node`` is answered by any controller. A request
    may have ``entries_factor`` times the entries of other requests. A request that ``is_small`` concerns
    single nodes and doesn't grow with the cluster. A request that ``must_begin_in_time`` fails with
    REQUEST_TIMED_OUT if nothing was done for it within its ``timeoutMs``.
    """

    name: str
    min_version: int
    max_version: int
    answered_by: AnsweredBy
    module: str = ""
    requires: tuple[AclOperation, Resource] | None = None
    is_forwardable: bool = False
    reads_in_pieces: bool = False
    searches_log: bool = False
    errors: ErrorForm = TOP_LEVEL
    is_about_this_node: Callable[[Any], bool] = _never
    entries_factor: int = 1
    is_small: bool = False
    must_begin_in_time: bool = False

    @property
    def key(self) -> int:
        """The API key."""
        return _KEYS[self.name]

    @property
    def request_class(self) -> type[Message]:
        """The class of the API's requests."""
        return request_class(self.key)

    @property
    def is_from_cluster(self) -> bool:
        """Whether brokers or controllers send this API for themselves. An Envelope is sent for a client."""
        is_for_cluster = self.requires is not None and self.requires[0] is AclOperation.CLUSTER_ACTION
        return is_for_cluster and self.name != "Envelope"

    @property
    def has_quota(self) -> bool:
        """Whether the time of requests counts for their client. ApiVersions is the first request on all
        connections, also of brokers and controllers."""
        return not self.is_from_cluster and self.name != "ApiVersions"

    @property
    def is_clients_write(self) -> bool:
        """Whether clients send this API, to the active controller only."""
        return self.answered_by is AnsweredBy.ACTIVE_CONTROLLER and not self.is_from_cluster

    @property
    def must_be_answered_first(self) -> bool:
        """Whether a client's next request waits for the answer to this one.

        It sees the effect of a write, as in Kafka. Other requests that take long also take memory until they
        are answered.
        """
        return self.is_clients_write or self.reads_in_pieces or self.searches_log

    def max_entries(self, of_clients: int) -> int:
        """Return the most entries of a request, given that of requests that clients send.

        A low limit is for clients only: the cluster has to go on. Consumers send Fetches, too, and a
        replica's has few entries.
        """
        is_clients = not self.is_from_cluster or self.name == "Fetch"
        of_this = of_clients if is_clients else max(of_clients, MAX_REQUEST_ENTRIES)
        if self.is_small:
            return min(of_this, SMALL_REQUEST_ENTRIES)
        return of_this * self.entries_factor

    @property
    def max_bytes(self) -> int:
        """The most bytes of a request."""
        return SMALL_REQUEST_BYTES if self.is_small else LARGE_REQUEST_BYTES

    def refusal(self, error: TooManyEntries) -> str:
        """Say what is wrong with a request that has too many entries, and what to do."""
        return str(error) if self.is_small else f"{error}: split the request, or raise {LIMIT_KEY}"

    @property
    def named_items(self) -> tuple[NamedItems, ...]:
        """The items of a request that an error response names, if it needs nothing else to name them."""
        return tuple(NamedItems(each.asked, each.keys) for each in self.errors.items if each.nested is None)

    def has_items(self, request: Message) -> bool:
        """Whether a request has any items. None stands for all that there are."""
        items = (getattr(request, each.asked) for each in self.errors.items)
        return any(each is None or len(each) > 0 for each in items)

    def can_refuse(self, request: Message, version: int) -> bool:
        """Whether an answer has a place for the error of a whole request: its own, or named items'."""
        if any(getattr(request, items.array) for items in self.named_items):
            return True
        code = ErrorCode.POLICY_VIOLATION
        response = self.error_response(request, version, code, "")
        return getattr(response, "error_code", ErrorCode.NONE) == code

    def supports(self, version: int) -> bool:
        """Whether requests of this version are served."""
        return self.min_version <= version <= self.max_version

    def handler(self) -> AnyHandler:
        """Return the handler. Its module is imported on the first call.

        Raises LookupError if the API has no handler.
        """
        if not self.module:
            raise LookupError(f"{self.name} is answered by {self.answered_by.value}, not by a handler")
        handler: AnyHandler = import_module(f"{CONTROLLER}.{self.module}").handle
        return handler

    def decide(self, state: ControllerState, request: Message, version: int, context: Context) -> Result:
        """Return the handler's decision. Raises ApiError if the whole request fails."""
        handler: Callable[..., Result] = self.handler()
        return handler(state, request, version, context)

    def error_response(
        self,
        request: Message,
        version: int,
        code: ErrorCode,
        message: str,
        *,
        most_items: int | None = None,
    ) -> Message:
        """Return the response that says that all of ``request`` failed with ``code``.

        It names ``most_items`` of its items at most; None is all.
        """
        own_versions = self.key, self.min_version, self.max_version
        served = min(max(version, self.min_version), self.max_version)
        return failed_response(
            response_class(self.key),
            request,
            served,
            code,
            message,
            form=self.errors,
            own=own_versions,
            most_items=most_items,
        )


class ApiTable:
    """The APIs that a node serves, in the order of their keys. Immutable."""

    def __init__(self, rows: Iterable[Api]) -> None:
        """Raise ValueError if an API has two rows."""
        self._rows: dict[int, Api] = {}
        for row in sorted(rows, key=lambda row: row.key):
            if row.key in self._rows:
                raise ValueError(f"{row.name} has two rows")
            self._rows[row.key] = row

    def __iter__(self) -> Iterator[Api]:
        return iter(self._rows.values())

    def __getitem__(self, key: int) -> Api:
        """Return the row of an API. Raises KeyError if the API is not served."""
        return self._rows[key]

    def find(self, key: int) -> Api | None:
        """Return the row of an API; None if the API is not served."""
        return self._rows.get(key)

    def served(self, key: int, version: int) -> Api | None:
        """Return the row of an API, or None if requests of this API and version are not served."""
        row = self._rows.get(key)
        return row if row is not None and row.supports(version) else None
