"""What a node is told before it starts, and what it finds on its disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.voters import Endpoints, ReplicaKey, Voter, VoterSet


class Randomness(Protocol):
    """Randomness as an argument."""

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound)."""


class RaftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings with Kafka's defaults (QuorumConfig, MetadataLogConfig).

    ``endpoints`` are the controller listeners that this node advertises (``voters.endpoints_of``); peers are
    reached on ``listener``, the first of controller.listener.names. ``static_voters`` come from
    controller.quorum.voters and count while the log names no voters. ``bootstrap_servers`` are the (host,
    port) of nodes that may know the leader. ``max_fetch_bytes`` bounds one answer to Fetch or FetchSnapshot
    whatever the peer asks for; Kafka has no such bound. ``failover_spread_ms`` is how far apart, at random,
    followers stand that saw their leader go. Negative retention settings mean no limit.
    """

    node_id: int
    directory_id: Uuid
    cluster_id: str
    endpoints: Endpoints
    listener: str = "CONTROLLER"
    static_voters: VoterSet = VoterSet()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    failover_spread_ms: int = 10
    max_fetch_bytes: int = 8 * 1024 * 1024
    max_retention_bytes: int = 100 * 1024 * 1024
    max_retention_ms: int = 604_800_000
    cleaning_interval_ms: int = 60_000
    observer_session_timeout_ms: int = 300_000

    @property
    def replica_key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def voter(self) -> Voter:
        """This node as the voter that it is or wants to be."""
        return Voter(self.replica_key, self.endpoints)


class SnapshotInfo(msgspec.Struct, frozen=True, gc=False):
    """A complete snapshot on disk. ``last_contained_log_timestamp_ms`` stands in its header; retention counts
    its age from there."""

    id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int


class DurableState(msgspec.Struct):
    """What storage recovered. All of it is on stable storage: storage flushes what it found before it says
    so.

    - ``election``: quorum-state, None where the file does not exist.
    - ``epochs``: the epochs of the batches in [log_start_offset, log_end_offset).
    - ``log_size_bytes``: the segments' total size.
    - ``snapshots``: every complete one, the 0-0 checkpoint of format included.
    - ``committed_offset``: what the log has below it is committed. It may lag far behind.
    - ``lost_below_offset``: damage was cut out of a log that had been durable up to here. Until
      ``LossMadeGood`` this node neither votes nor stands. None where nothing was lost.
    - ``no_vote_up_to_epoch``: quorum-state was lost, and this node may have voted in, or led, any epoch up to
      here: it votes in none of them, and leads none of them. -1 where nothing was forgotten.
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
