"""What a handler sees beside its request: the state, who asks, what time it is, and where randomness comes
from.

Handlers are pure: they read the state, and return records for replay and a response. Time and randomness are
arguments, so that the simulator replays a run bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.controller.sessions import BrokerSessions
    from kraft_wire.controller.settings import Settings
    from kraft_wire.metadata.state import MetadataState

VersionedRecord = tuple[Message, int]
"""A metadata record and the version it is written at."""


class Entropy(Protocol):
    """Randomness as an argument."""

    def uuid(self) -> Uuid:
        """A random version 4 id, never one that Kafka reserves and never one whose text begins with "-"."""

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound)."""


class Principal(msgspec.Struct, frozen=True, gc=False):
    """Who asks, as Kafka's KafkaPrincipal: a type ("User") and a name."""

    kind: str = "User"
    name: str = "ANONYMOUS"
    token_authenticated: bool = False


class Context(msgspec.Struct, frozen=True):
    """The circumstances of one request.

    ``monotonic_ms`` orders and measures; ``wall_ms`` is the time since the Unix epoch that records carry.
    ``listener`` is the name of the listener that the request came through, upper case.
    """

    monotonic_ms: int
    wall_ms: int
    entropy: Entropy
    principal: Principal = Principal()
    listener: str = ""
    client_id: str = ""
    client_address: str = ""


class ControllerState(msgspec.Struct):
    """All that handlers read.

    ``next_offset`` is the offset at which the next record will be written (it becomes the broker epoch of a
    new registration); ``cluster_id`` is the quorum's; ``leader_id``, ``epoch`` and ``kraft_version`` mirror
    raft's. ``voter_ids`` are the ids of the current voter set.
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


class Result(msgspec.Struct):
    """What a handler decided: records to commit, in order, and the response to send once they are committed.

    ``atomic`` records must land in one batch; others may be split.
    """

    response: Message
    records: Sequence[VersionedRecord] = ()
    atomic: bool = True
