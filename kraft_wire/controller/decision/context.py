"""Define the inputs and results of decisions: ControllerState and Context in, Result or Round out.

A handler decides on one request, a periodic task on one run. Both are pure functions: they change nothing,
and return records, changes of broker sessions and, for a request, the response. The node appends and applies
the records, then applies the session changes. Time and randomness are arguments, so that the simulator can
repeat a run exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from kraft_wire.configs.layers import ConfigLayers
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import SliceLimits, Work, WorkKey, WorkKind
from kraft_wire.controller.policies import Policies
from kraft_wire.controller.quotas.mutations import MutationQuota, MutationQuotas
from kraft_wire.metadata.features.supported import KRAFT_VERSION
from kraft_wire.protocol.errors import ApiError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.principal import Principal

if TYPE_CHECKING:
    from kraft_wire.controller.decision.api_table import ApiTable
    from kraft_wire.controller.decision.sessions import BrokerSessions, SessionChange
    from kraft_wire.controller.settings import Settings
    from kraft_wire.metadata.state import MetadataState
    from kraft_wire.security.authorization import AclOperation, Resource


class Entropy(Protocol):
    """A source of randomness."""

    def uuid(self) -> Uuid:
        """Return a random version 4 id that Kafka does not reserve and whose text does not begin with "-"."""

    def below(self, bound: int) -> int:
        """Return a uniformly distributed integer in [0, bound)."""


class Authorizer(Protocol):
    """The decision about permissions (org.apache.kafka.server.authorizer.Authorizer)."""

    def authorize(self, context: Context, operation: AclOperation, resource: Resource) -> bool:
        """Whether the principal of ``context`` may do ``operation`` on ``resource``."""


class Context(msgspec.Struct, frozen=True):
    """The circumstances of one request.

    ``monotonic_ms`` is for intervals; ``wall_ms`` is the time since the Unix epoch, for records. ``apis`` are
    the APIs that this node serves. ``listener`` is the name of the request's listener in upper case.
    A request ``is_forwarded`` if it came in a broker's Envelope: the broker has checked it, and the
    principal, client id and address are those of the broker's client. Without an ``authorizer`` everything
    is permitted.
    """

    monotonic_ms: int
    wall_ms: int
    entropy: Entropy
    apis: ApiTable
    principal: Principal = Principal()
    listener: str = ""
    client_id: str = ""
    client_address: str = ""
    is_forwarded: bool = False
    authorizer: Authorizer | None = None

    @property
    def may_do_everything(self) -> bool:
        """Whether nothing is forbidden to anybody."""
        return self.authorizer is None

    def may(self, operation: AclOperation, resource: Resource) -> bool:
        """Whether the principal may do ``operation`` on ``resource``."""
        return self.authorizer is None or self.authorizer.authorize(self, operation, resource)

    def check_permission(self, operation: AclOperation, resource: Resource) -> None:
        """Raise ApiError if the principal may not do ``operation`` on ``resource``.

        The code is Kafka's for the type of resource, such as TOPIC_AUTHORIZATION_FAILED.
        """
        if not self.may(operation, resource):
            raise refused(operation, resource)


def refused(operation: AclOperation, resource: Resource) -> ApiError:
    """Return the error for a client that may not do ``operation`` on ``resource``."""
    return ApiError(resource.refusal, f"{operation.name} on {resource} is not permitted")


def _no_problem(level: int) -> str | None:
    return None


class ExporterRow(msgspec.Struct, frozen=True):
    """What a node knows of one of its exporters: the offset after the last record that its sink has, None if
    there is none; the text of its last reset; how many attempts have failed in a row."""

    name: str
    position: int | None = None
    reset: str = ""
    failures_in_a_row: int = 0


class ControllerState(msgspec.Struct):
    """The state that handlers read.

    ``next_offset`` is the offset of the next record to be written; it becomes the broker epoch of a new
    registration. ``cluster_id`` is the id of the cluster; ``leader_id``, ``epoch`` and ``kraft_version`` are
    copies of raft's. ``voter_ids`` are the ids of the current voters; ``silent_voter_ids`` are those from
    which this node, as the leader, hears nothing. ``in_work`` are the works in progress that write, and
    ``slice_limits`` say how much of a work is done in one step. ``kraft_version_problem`` is raft's answer to
    whether kraft.version can get a level: None, or why not. ``read_here`` are the addresses of a node that
    only observes, by listener: consumers are to read from it. It is empty on a controller.
    ``list_exporters`` returns the exporters that this node is configured with, ``log_levels`` the level of
    each logger of this process, in Kafka's words. ``policies`` forbid what operators don't want. Handlers
    spend ``mutation_quotas`` as they decide: nothing else here is changed by handlers.
    """

    metadata: MetadataState
    sessions: BrokerSessions
    settings: Settings
    cluster_id: str
    node_id: int
    next_offset: int = 0
    leader_id: int = -1
    epoch: int = 0
    kraft_version: int = 0
    voter_ids: tuple[int, ...] = ()
    silent_voter_ids: tuple[int, ...] = ()
    in_work: Collection[WorkKey] = ()
    slice_limits: SliceLimits = SliceLimits()
    read_here: Mapping[str, tuple[str, int]] = {}
    kraft_version_problem: Callable[[int], str | None] = _no_problem
    list_exporters: Callable[[], Sequence[ExporterRow]] = tuple
    log_levels: Callable[[], Mapping[str, str]] = dict
    policies: Policies = Policies()
    mutation_quotas: MutationQuotas = msgspec.field(default_factory=MutationQuotas)

    def mutation_quota(self, context: Context, *, is_strict: bool) -> MutationQuota:
        """Return the client's quota of partitions that a request creates or deletes."""
        return self.mutation_quotas.of(
            self.metadata.quotas.by_entity,
            context.principal.name,
            context.client_id,
            context.monotonic_ms,
            is_strict=is_strict,
        )

    @property
    def leaving_broker_ids(self) -> set[int]:
        """The brokers that are being taken out of the ISRs: they can't lead or join an ISR."""
        return {key.broker_id for key in self.in_work if key.kind.broker_leaves}

    def is_being_fenced(self, broker_id: int) -> bool:
        """Whether work is in progress after which the broker will be fenced, replaced or unregistered."""
        return any(key.broker_id == broker_id and key.kind.fences for key in self.in_work)

    def is_in_work(self, kind: WorkKind, broker_id: int) -> bool:
        """Whether this work is in progress."""
        return WorkKey(kind, broker_id) in self.in_work

    @property
    def config_layers(self) -> ConfigLayers:
        """The configurations that topics of this cluster fall back on, as this node has them."""
        return ConfigLayers(self.metadata.configs, self.node_id, self.settings.static_configs)

    def finalized_levels(self) -> dict[str, int]:
        """Return the levels of all finalized features: those in the log, and raft's kraft.version."""
        levels = dict(self.metadata.features.levels)
        if self.kraft_version:
            levels[KRAFT_VERSION] = self.kraft_version
        return levels


class Result(msgspec.Struct):
    """The decision on one request: records to commit, and the response to send when they are committed.

    ``atomic`` records must be in one batch; other records may be split. With ``validate_only`` the records
    are checked, but not written: the answer is what it would be otherwise. ``session_changes`` are applied
    in order after the records are appended. ``works`` are what is left to decide in later steps. If the
    response is None, the last piece of the only work has it.

    Raft raises kraft.version to ``kraft_version`` before the records are appended. Loggers of this process
    get ``log_levels`` at once; None unsets a level.

    The response waits for the commit of all records before ``shown_end``; None means all that there are. A
    response that shows little of the state need not wait for what others write.
    """

    response: Message | None
    records: Sequence[VersionedRecord] = ()
    atomic: bool = True
    session_changes: Sequence[SessionChange] = ()
    works: Sequence[Work] = ()
    shown_end: int | None = None
    validate_only: bool = False
    kraft_version: int | None = None
    log_levels: Mapping[str, str | None] = {}

    @classmethod
    def of_work(cls, work: Work, state: ControllerState, context: Context) -> Result:
        """Return the first piece of a work that answers a request, and what is left of it."""
        piece = work.decide(state, context)
        return cls(
            piece.response,
            piece.records,
            piece.atomic,
            piece.session_changes,
            piece.rest_of(work),
            shown_end=piece.shown_end,
            validate_only=piece.is_trial,
        )


class Round(msgspec.Struct, frozen=True):
    """The decision of one run of a periodic task.

    ``more`` is set when another run is needed soon. The records may be split into batches. ``works`` are what
    is left to decide in later steps.
    """

    records: Sequence[VersionedRecord] = ()
    more: bool = False
    session_changes: Sequence[SessionChange] = ()
    works: Sequence[Work] = ()
