"""Send requests to the leader of a quorum: connections, deadlines and retries around ``leader_search``."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from kraft_wire.client import questions
from kraft_wire.client.connection import Connection, Connector
from kraft_wire.client.errors import NotAuthorized, QuorumUnreachable, WrongServer, reason_of
from kraft_wire.client.leader_search import LeaderSearch
from kraft_wire.client.questions import Answer, FetchAnswer, SnapshotAnswer
from kraft_wire.client.quorum_description import QuorumDescription, describe_quorum, read_describe_quorum
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.wire.address import Address

SILENT_SHARE: Final = 6
"""A controller that sends nothing for this share of the request timeout (5 s by default) is abandoned. No
request lets the controller wait before it answers, so it is frozen or cut off, and another one may lead by
now. A large answer over a slow line may take the whole request timeout."""

SLOW_AFTER_S: Final = 1.0
"""After this time the caller hears that a request has no answer yet."""

_WRONG_SERVER: Final = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "it belongs to another cluster than option cluster.id says, or than "
    "the first controller that answered",
    ErrorCode.INVALID_REQUEST: "it doesn't understand the request; check that it is a controller",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "it is a broker; give the controllers' own listeners",
    ErrorCode.UNKNOWN_TOPIC_ID: "it has no metadata log; give the controllers' own listeners",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "it has no metadata log; give the controllers' own listeners",
}

R = TypeVar("R", bound=Message)
A = TypeVar("A", bound=Answer)

Waiting = Callable[[Mapping[Address, str]], None]
"""Is called with the last problem of each controller."""


class KnownLeader(NamedTuple):
    """The findings of one process, for others to start with. They may be out of date."""

    cluster_id: str
    address: Address
    epoch: int


class QuorumClient:
    """A client of the leader. Each request is repeated until it is answered or ``api_timeout_ms`` are over.

    Every method raises AuthenticationFailed, NotAuthorized and WrongServer at once, and QuorumUnreachable
    after ``api_timeout_ms``. A request that has no answer after a second calls ``waiting``, once.
    """

    def __init__(
        self,
        settings: QuorumSettings,
        known: KnownLeader | None = None,
        waiting: Waiting = lambda problems: None,
    ) -> None:
        self._settings = settings
        self._waiting = waiting
        self._connector = Connector(settings.security, settings.request_timeout_ms / 1000 / SILENT_SHARE)
        self._search = LeaderSearch(settings.bootstrap)
        self._connections: dict[Address, Connection] = {}
        self._cluster_id = settings.cluster_id
        self.answered_by = settings.bootstrap[0]
        """The controller that answered last."""
        if known is not None:
            self._cluster_id, self.answered_by = known.cluster_id, known.address
            self._search.begin_with(known.address, known.epoch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        while self._connections:
            self._connections.popitem()[1].close()

    @property
    def epoch(self) -> int:
        """The newest epoch that any controller named."""
        return self._search.epoch

    def known(self) -> KnownLeader:
        """Return what another client may start with."""
        return KnownLeader(self.cluster_id(), self.answered_by, self.epoch)

    def cluster_id(self) -> str:
        """Return the cluster's id. It is asked for once; Java's controllers first need a metadata.version."""
        if self._cluster_id is None:
            answer = self._ask(
                "the cluster's id (or set option cluster.id)",
                questions.describe_cluster,
                DescribeClusterResponse,
                questions.read_describe_cluster,
            )
            self._search.learn_controllers(answer.controllers)
            self._cluster_id = answer.cluster_id
        return self._cluster_id

    def fetch(
        self,
        offset: int,
        last_fetched_epoch: int | None,
        max_bytes: int,
        *,
        unfit: Callable[[FetchAnswer], str | None] = lambda answer: None,
        final: Collection[ErrorCode] = (),
    ) -> FetchAnswer:
        """Return the leader's answer to Fetch.

        A ``last_fetched_epoch`` of None is the leader's own epoch, which is in any log. The request is
        repeated while ``unfit`` returns why the answer is of no use. An answer with one of the ``final``
        errors is returned; other errors that may pass lead to another attempt.
        """
        cluster_id = self.cluster_id()

        def request() -> Message:
            epoch = self.epoch
            last_epoch = epoch if last_fetched_epoch is None else last_fetched_epoch
            return questions.fetch(cluster_id, epoch, offset, min(last_epoch, epoch), max_bytes)

        return self._ask(
            f"the log at offset {offset}", request, FetchResponse, questions.read_fetch, unfit, final
        )

    def fetch_snapshot(
        self, snapshot_id: SnapshotId, position: int, max_bytes: int, *, final: Collection[ErrorCode] = ()
    ) -> SnapshotAnswer:
        """Return a piece of a snapshot from the leader; ``final`` as for ``fetch``."""
        cluster_id = self.cluster_id()

        def request() -> Message:
            return questions.fetch_snapshot(cluster_id, self.epoch, snapshot_id, position, max_bytes)

        wanted = f"snapshot {snapshot_id.end_offset}-{snapshot_id.epoch} at byte {position}"
        read = questions.read_fetch_snapshot
        return self._ask(wanted, request, FetchSnapshotResponse, read, final=final)

    def describe_quorum(self) -> QuorumDescription:
        """Return the leader's description of all replicas.

        A Fetch comes first: only its refusals say who leads.
        """
        self.fetch(0, 0, 1)
        return self._ask(
            "the replicas of the quorum", describe_quorum, DescribeQuorumResponse, read_describe_quorum
        )

    # Attempts until there is an answer.

    def _ask(
        self,
        wanted: str,
        request: Callable[[], Message],
        response_class: type[R],
        read: Callable[[R], A],
        unfit: Callable[[A], str | None] = lambda answer: None,
        final: Collection[ErrorCode] = (),
    ) -> A:
        began_s = time.monotonic()
        deadline_s = began_s + self._settings.api_timeout_ms / 1000
        is_said = False
        while True:
            address, pause_ms = self._search.next_step()
            asks_at_s = time.monotonic() + pause_ms / 1000
            if asks_at_s >= deadline_s:
                raise self._unreachable(wanted)
            if not is_said and asks_at_s - began_s >= SLOW_AFTER_S:
                is_said = True
                self._waiting(self._search.problems)
            time.sleep(pause_ms / 1000)
            try:
                answer = read(self._call(address, request(), response_class, deadline_s))
            except UnsupportedVersion as error:
                raise WrongServer(f"{address}: {error}") from None
            except (OSError, ProtocolError) as error:
                self._search.failed(address, reason_of(error))
                continue
            problem = None if answer.error in final else _problem(answer, address) or unfit(answer)
            if problem is None:
                self._search.succeeded(address)
                self.answered_by = address
                return answer
            self._search.failed(address, problem)
            self._search.learn_leader(*answer.hint)

    def _call(self, address: Address, request: Message, response_class: type[R], deadline_s: float) -> R:
        """Send a request on a kept connection, or on a new one.

        A kept connection may have been closed while it was idle. That says nothing about the controller: it
        is followed by one attempt on a new connection.
        """
        kept = self._connections.pop(address, None)
        if kept is not None:
            try:
                return self._call_on(kept, request, response_class, deadline_s)
            except ConnectionError:
                pass
        fresh = self._connector.open(address, self._timeout_s(deadline_s))
        return self._call_on(fresh, request, response_class, deadline_s)

    def _call_on(
        self, connection: Connection, request: Message, response_class: type[R], deadline_s: float
    ) -> R:
        try:
            response = connection.call(request, response_class, self._timeout_s(deadline_s))
        except BaseException:
            connection.close()
            raise
        self._connections[connection.address] = connection
        return response

    def _timeout_s(self, deadline_s: float) -> float:
        return max(0.001, min(self._settings.request_timeout_ms / 1000, deadline_s - time.monotonic()))

    def _unreachable(self, wanted: str) -> QuorumUnreachable:
        problems = {str(address): problem for address, problem in self._search.problems.items()}
        protocol = self._settings.security.protocol
        hint = (
            "Check that a majority of the controllers is running, that bootstrap.controllers lists them, "
            f"and that their listeners use {protocol} (kafka.security.protocol)."
        )
        return QuorumUnreachable(wanted, self._settings.api_timeout_ms, problems, hint)


def _problem(answer: Answer, address: Address) -> str | None:
    """Return the text of an error that may pass, None without an error. Raises the errors that won't pass."""
    error = answer.error
    if error == ErrorCode.NONE:
        return None
    if error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise NotAuthorized(
            f"{address}: {error.name}: this client's principal needs ClusterAction on the cluster, and Alter "
            "to ask for the cluster's id (or set option cluster.id)"
        )
    if error in _WRONG_SERVER:
        raise WrongServer(f"{address}: {error.name}: {_WRONG_SERVER[error]}")
    return f"{error.name}: {answer.message}" if answer.message else error.name
