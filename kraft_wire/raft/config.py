"""The configuration of a raft node, and the state that storage recovered for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from kraft_wire.log.batch import MAX_BATCH_SIZE_BYTES
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, Voter, VoterSet

MAX_RETENTION_BYTES: Final = 100 * 1024 * 1024
MAX_RETENTION_MS: Final = 604_800_000
MAX_WANTED_BYTES: Final = 1024 * 1024 * 1024
MAX_WANTED_MS: Final = 14 * 24 * 3600 * 1000


class Randomness(Protocol):
    """A source of randomness, passed in as an argument."""

    def below(self, bound: int) -> int:
        """Return a uniformly distributed integer in [0, bound)."""


class QuorumTimings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings controller.quorum.* that time elections and bound fetches, with Kafka's defaults
    (QuorumConfig)."""

    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024


class RaftConfig(QuorumTimings, frozen=True, kw_only=True):
    """The settings of a raft node, with Kafka's defaults (QuorumConfig, MetadataLogConfig).

    ``endpoints`` are the controller listeners that this node advertises (``voters.endpoints_of``). Peers are
    reached on ``listener``, the first of controller.listener.names. ``static_voters`` come from
    controller.quorum.voters and are used while the log names no voters. ``bootstrap_servers`` are the (host,
    port) of nodes that may know the leader. ``max_fetch_bytes`` limits one answer to Fetch or FetchSnapshot,
    whatever the peer asks for; Kafka has no such limit. When a leader is gone, ``failover_step_ms`` is the
    time for which each voter waits for the one whose turn is before its own; ``failover_spread_ms`` is the
    range of the random delay after an election that nobody won. Negative retention settings mean no limit.
    Records that exporters want are kept until the log has ``max_wanted_bytes``, or until their snapshot is
    ``max_wanted_ms`` old.
    With ``auto_join`` this node makes itself a voter (KIP-1186). With ``is_observer_only`` it never votes or
    stands for election, whatever the log says of it, and readers of the log read from it (``serving``).
    Requests on ``drafted_listeners`` get the answers of KIP-853's draft.
    """

    node_id: int
    directory_id: Uuid
    cluster_id: str
    endpoints: Endpoints
    listener: str = "CONTROLLER"
    static_voters: VoterSet = VoterSet()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    failover_step_ms: int = 10
    failover_spread_ms: int = 10
    max_fetch_bytes: int = MAX_BATCH_SIZE_BYTES
    max_retention_bytes: int = MAX_RETENTION_BYTES
    max_retention_ms: int = MAX_RETENTION_MS
    max_wanted_bytes: int = MAX_WANTED_BYTES
    max_wanted_ms: int = MAX_WANTED_MS
    cleaning_interval_ms: int = 60_000
    observer_session_timeout_ms: int = 300_000
    auto_join: bool = False
    is_observer_only: bool = False
    drafted_listeners: tuple[str, ...] = ()

    @property
    def replica_key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def voter(self) -> Voter:
        """This node as the voter that it is or wants to be."""
        return Voter(self.replica_key, self.endpoints)


class SnapshotInfo(msgspec.Struct, frozen=True, gc=False):
    """A complete snapshot on disk.

    ``last_contained_log_timestamp_ms`` is from the snapshot's header; retention measures the snapshot's age
    from it.
    """

    id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int


class DurableState(msgspec.Struct):
    """The state that storage recovered. All of it is on stable storage: storage flushes what it finds before
    it reports it.

    - ``election``: the contents of quorum-state, None if the file does not exist.
    - ``epochs``: the epochs of the batches in [log_start_offset, log_end_offset).
    - ``log_size_bytes``: the total size of the segments.
    - ``snapshots``: every complete snapshot, including the 0-0 checkpoint of format.
    - ``committed_offset``: everything in the log below this offset is committed. It may be far below the high
      watermark.
    - ``lost_below_offset``: damaged records were cut out of a log that had been durable up to this offset.
      Until ``LossMadeGood`` this node doesn't vote and starts no election. None if nothing was lost.
    - ``no_vote_up_to_epoch``: quorum-state was lost, and this node may have voted in or led any epoch up to
      this one. It doesn't vote in any of them and doesn't lead any of them. -1 if quorum-state was not lost.
    - ``control_records``: the KRaftVersionRecord and VotersRecord of the newest snapshot, at the offset of
      the last record that it covers (-1 for 0-0), then those of the log from the snapshot's end on,
      ascending.
    """

    election: ElectionState | None = None
    log_start_offset: int = 0
    log_end_offset: int = 0
    log_size_bytes: int = 0
    epochs: EpochCache = msgspec.field(default_factory=EpochCache)
    snapshots: Sequence[SnapshotInfo] = ()
    control_records: Sequence[tuple[int, Message]] = ()
    committed_offset: int = 0
    lost_below_offset: int | None = None
    no_vote_up_to_epoch: int = -1
