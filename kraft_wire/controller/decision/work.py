"""Define works: decisions about so many partitions that they take several steps.

The node runs one piece of a work in a step. Raft's timers, heartbeats and other requests come in between, so
each piece decides on the state that it finds, and what it finds may have changed since the last piece. If
leadership is lost, the rest of a work is dropped. Java's controller loses the same: it writes such a decision
in several batches too, and its successor decides again.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.protocol.message import Message

if TYPE_CHECKING:
    from kraft_wire.controller.decision.context import Context, ControllerState
    from kraft_wire.controller.decision.sessions import SessionChange


class WorkKind(Enum):
    """The kinds of works."""

    SHUT_DOWN = "shut down"
    FENCE = "fence"
    REGISTER = "register"
    UNREGISTER = "unregister"
    DIRECTORIES = "take directories offline"
    UNFENCE = "unfence"
    BALANCE = "balance leaders"
    ELECT_UNCLEANLY = "elect unclean leaders"
    ELECT = "elect leaders"
    ALTER = "alter partitions"
    ASSIGN = "assign replicas to directories"
    REASSIGN = "reassign partitions"
    LIST_REASSIGNMENTS = "list reassignments"
    CREATE_TOPICS = "create topics"
    DELETE_TOPICS = "delete topics"
    CREATE_PARTITIONS = "create partitions"
    ALTER_CONFIGS = "alter configurations"
    ALTER_QUOTAS = "alter client quotas"
    ALTER_CREDENTIALS = "alter SCRAM credentials"
    DESCRIBE_CONFIGS = "describe configurations"
    DESCRIBE_CREDENTIALS = "describe SCRAM credentials"
    CHANGE_TOKEN = "change a delegation token"
    DESCRIBE_TOKENS = "describe delegation tokens"
    EXPIRE_TOKENS = "remove expired delegation tokens"
    DESCRIBE_TOPICS = "describe topics"
    READ = "read again"

    @property
    def broker_leaves(self) -> bool:
        """Whether the broker leaves all ISRs."""
        return self.fences or self is WorkKind.SHUT_DOWN

    @property
    def fences(self) -> bool:
        """Whether the broker doesn't count as unfenced while the work is in progress."""
        return self in (WorkKind.FENCE, WorkKind.REGISTER, WorkKind.UNREGISTER)


ALL_BROKERS: Final = -1


class WorkKey(NamedTuple):
    """A work: what it does, for which broker, or for ALL_BROKERS."""

    kind: WorkKind
    broker_id: int = ALL_BROKERS


class SliceLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How many partitions one step of a work is about, so that the step keeps nobody waiting.

    A slice passes over windows of ``window_rows`` partitions; 10,000 records fit into a batch. It takes
    another window only while it has at most ``few_changes``, and has looked at fewer than ``most_considered``
    affected partitions, even if nothing changes in them. It decides at most ``most_unusual`` partitions one
    by one, at some 20 µs each.
    """

    window_rows: int = 8192
    few_changes: int = 1400
    most_considered: int = 2 * 8192
    most_unusual: int = 400


class Piece(msgspec.Struct, frozen=True):
    """The decision of one step of a work.

    ``atomic`` records must be in one batch; other records may be split. Those of a trial are checked, but not
    written.

    The last piece has the response of the request that the work is for, if that is still to come. It has a
    ``shown_end`` as a ``Result`` has.
    """

    records: Sequence[VersionedRecord]
    is_last: bool
    session_changes: Sequence[SessionChange] = ()
    response: Message | None = None
    atomic: bool = False
    is_trial: bool = False
    shown_end: int | None = None

    def rest_of(self, work: Work) -> tuple[Work, ...]:
        """Return the work that this is a piece of, unless this is its last piece."""
        return () if self.is_last else (work,)


class Work(Protocol):
    """A decision that takes several steps."""

    @property
    def key(self) -> WorkKey:
        """Return the kind of this work, and its broker."""

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide the next piece. Raises ApiError if the work has become impossible; it has ended then."""
