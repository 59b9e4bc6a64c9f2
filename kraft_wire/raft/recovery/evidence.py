"""The evidence of a folder: identity, election state, log, voters at every offset, registrations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kraft_wire.log.batch import Batch, iter_records
from kraft_wire.log.control import CONTROL_RECORD_VERSION, decode_control_record
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import DecodeError, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import read_uvarint
from kraft_wire.raft.membership.voters import (
    Endpoint,
    ReplicaKey,
    VersionRange,
    Voter,
    endpoints_of,
    voters_of_record,
)

BEFORE_THE_LOG: Final = -1
"""The offset of the voters in the 0-0 checkpoint, which format writes."""
_REGISTRATIONS: Final[frozenset[int]] = frozenset(
    message.API_KEY
    for message in (
        RegisterBrokerRecord,
        RegisterControllerRecord,
        UnregisterBrokerRecord,
        UnregisterControllerRecord,
    )
)
_TYPE_AT: Final = 1
"""The byte of a metadata record's type: both prefixes before the version take one byte each."""
_ID_SIZE_BYTES: Final = 4


class NewerRegistration(ProtocolError):
    """A registration has a version that this release doesn't know. It can't be passed over: registrations
    say which nodes are brokers, and which are controllers, and where these are."""

    def __init__(self, offset: int, cause: UnsupportedVersion) -> None:
        super().__init__(f"offset {offset} holds a {cause.message} that can't be decoded: {cause}")


class KnownVoter(msgspec.Struct, frozen=True):
    """A voter in a form that JSON can hold."""

    id: int
    directory_id: str
    endpoints: tuple[Endpoint, ...] = ()
    min_kraft_version: int = 0
    max_kraft_version: int = 1

    @classmethod
    def of(cls, voter: Voter) -> KnownVoter:
        return cls(voter.key.id, str(voter.key.directory_id), voter.endpoints, *voter.kraft_versions)

    def to_voter(self) -> Voter:
        """Return the raft core's value. Raises ValueError for a directory id that isn't one."""
        key = ReplicaKey(self.id, Uuid.parse(self.directory_id))
        versions = VersionRange(self.min_kraft_version, self.max_kraft_version)
        return Voter(key, endpoints_of(self.endpoints), versions)


class VoterChange(msgspec.Struct, frozen=True):
    """A VotersRecord: its offset (``BEFORE_THE_LOG`` for the 0-0 checkpoint), epoch and time.

    A snapshot doesn't say when its voters were set: it has ``is_in_snapshot``, the offset of its last record,
    and the time when it was written.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    voters: tuple[KnownVoter, ...]
    is_in_snapshot: bool = False


class SnapshotEvidence(msgspec.Struct, frozen=True):
    """A snapshot of a folder."""

    end_offset: int
    epoch: int
    is_whole: bool


class PastRecovery(msgspec.Struct, frozen=True):
    """The recovery of a lost majority that a folder remembers: the plan's records are at ``base_offset``, in
    ``epoch``."""

    plan_hash: str
    epoch: int
    base_offset: int


class EpochEvidence(msgspec.Struct, frozen=True):
    """The part of a log that one epoch wrote, and the SHA-256 of its batches' bytes in hexadecimal."""

    epoch: int
    start_offset: int
    end_offset: int
    digest: str


class FolderEvidence(msgspec.Struct, frozen=True):
    """What a folder says.

    ``quorum_epoch`` and what follows it are those of quorum-state, -1 without that file. Records below
    ``committed_offset`` were committed once; the log may end before it. It had the records below
    ``lost_below`` once, until damage took the end of the log; -1 if nothing is known to be missing.
    ``no_vote_up_to`` is the guard of that name, -1 without it: the node votes in later epochs only.
    ``broker_ids`` and ``controller_ids`` are the nodes that registered as such, ever: a combined node is in
    both. ``has_broker_files`` says that the folder holds a broker's files, maybe beside a controller's.
    ``controller_pid`` is the process that works on the folder, a broker or a controller. ``problems`` are
    those that keep the log from being used as it is. ``is_unreadable``: the first of them is no damage, but a
    whole batch that this release can't read. ``recovery`` is the last one that was applied to the folder, or
    begun; its records are in the log if that has its epoch. ``newer`` names the first registration of a
    version that this release doesn't know: of these only the nodes' ids are known.
    """

    folder: str
    cluster_id: str
    node_id: int
    directory_id: str
    quorum_epoch: int = -1
    leader_id: int = -1
    voted_id: int = -1
    log_start_offset: int = 0
    log_end_offset: int = 0
    last_timestamp_ms: int = -1
    epochs: tuple[EpochEvidence, ...] = ()
    committed_offset: int = 0
    lost_below: int = -1
    no_vote_up_to: int = -1
    kraft_version: int = 0
    history: tuple[VoterChange, ...] = ()
    static_voter_ids: tuple[int, ...] = ()
    registrations: dict[int, tuple[Endpoint, ...]] = {}
    broker_ids: tuple[int, ...] = ()
    controller_ids: tuple[int, ...] = ()
    has_broker_files: bool = False
    snapshots: tuple[SnapshotEvidence, ...] = ()
    controller_pid: int | None = None
    problems: tuple[str, ...] = ()
    is_unreadable: bool = False
    recovery: PastRecovery | None = None
    newer: str = ""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in a snapshot before it; 0 without records."""
        whole = (snapshot.epoch for snapshot in self.snapshots if snapshot.is_whole)
        return max((*(part.epoch for part in self.epochs[-1:]), *whole), default=0)

    @property
    def highest_epoch(self) -> int:
        """The highest epoch that the node can have taken part in."""
        return max(self.quorum_epoch, self.last_epoch, self.no_vote_up_to)

    @property
    def is_cut(self) -> bool:
        """Whether the log lacks records that it had once: until a leader sends them, the node doesn't
        vote."""
        return self.lost_below > self.log_end_offset

    @property
    def voters(self) -> tuple[KnownVoter, ...]:
        """The voters in effect: those of the last VotersRecord, none for a static quorum."""
        return self.history[-1].voters if self.history else ()


class QuorumHistory:
    """Collects voters, kraft.version and registrations from batches, in the order of the log.

    ``registrations`` are those of controllers, ``brokers`` those of brokers. ``controller_ids`` and
    ``broker_ids`` are all that were registered once.

    With ``takes_newer`` a registration of a version that this release doesn't know has no endpoints, and
    ``newer`` names the first such one. Otherwise it raises NewerRegistration.
    """

    def __init__(self, *, takes_newer: bool = False) -> None:
        self._takes_newer = takes_newer
        self.newer = ""
        self.changes: list[VoterChange] = []
        self.kraft_version = 0
        self.registrations: dict[int, tuple[Endpoint, ...]] = {}
        self.broker_ids: set[int] = set()
        self.controller_ids: set[int] = set()
        self.brokers: dict[int, tuple[Endpoint, ...]] = {}
        self.features: dict[int, dict[str, tuple[int, int]]] = {}
        """The lowest and the highest level of each feature that a registered controller supports."""

    def take(self, batch: Batch) -> None:
        """Add a batch of the log. Raises CorruptBatch, DecodeError, NewerRegistration."""
        if not batch.header.is_control:
            self._take_records(batch)
            return
        for record in iter_records(batch):
            self._take_control(
                record.offset,
                batch.header.leader_epoch,
                batch.header.max_timestamp,
                decode_control_record(record),
            )

    def take_snapshot(self, snapshot_id: SnapshotId, batches: Iterable[Batch]) -> None:
        """Add a snapshot: its voters take effect with its last record, and it has all registrations. Raises
        CorruptBatch, DecodeError, NewerRegistration, and what ``batches`` raises."""
        self.registrations, self.brokers, self.features = {}, {}, {}
        offset = snapshot_id.end_offset - 1
        for batch in batches:
            if batch.header.is_control:
                for record in iter_records(batch):
                    message = decode_control_record(record)
                    timestamp_ms = batch.header.max_timestamp
                    self._take_control(offset, snapshot_id.epoch, timestamp_ms, message, is_in_snapshot=True)
            else:
                self._take_records(batch)

    def _take_control(
        self, offset: int, epoch: int, timestamp_ms: int, message: Message, *, is_in_snapshot: bool = False
    ) -> None:
        if (
            isinstance(message, (KRaftVersionRecord, VotersRecord))
            and message.version > CONTROL_RECORD_VERSION
        ):
            known = f"known is {CONTROL_RECORD_VERSION}"
            raise CorruptBatch(-1, offset, f"{message.NAME} has version {message.version}, {known}")
        if isinstance(message, KRaftVersionRecord):
            self.kraft_version = message.kraft_version
        elif isinstance(message, VotersRecord):
            voters = tuple(KnownVoter.of(voter) for voter in voters_of_record(message).voters)
            self.changes.append(VoterChange(offset, epoch, timestamp_ms, voters, is_in_snapshot))

    def _take_records(self, batch: Batch) -> None:
        for record in iter_records(batch):
            if len(record.value) > _TYPE_AT and record.value[_TYPE_AT] in _REGISTRATIONS:
                try:
                    message = decode_metadata_record(record.value)[0]
                except UnsupportedVersion as error:
                    newer = NewerRegistration(record.offset, error)
                    if not self._takes_newer:
                        raise newer from error
                    self.newer = self.newer or str(newer)
                    message = _with_node_alone(record.value, error.message)
                self._take_registration(message)

    def _take_registration(self, message: Message) -> None:
        if isinstance(message, RegisterControllerRecord):
            listeners = ((point.name, point.host, point.port) for point in message.end_points)
            self.registrations[message.controller_id] = endpoints_of(listeners)
            self.controller_ids.add(message.controller_id)
            self.features[message.controller_id] = {
                each.name: (each.min_supported_version, each.max_supported_version)
                for each in message.features
            }
        elif isinstance(message, UnregisterControllerRecord):
            self.registrations.pop(message.controller_id, None)
            self.features.pop(message.controller_id, None)
        elif isinstance(message, RegisterBrokerRecord):
            listeners = ((point.name, point.host, point.port) for point in message.end_points)
            self.brokers[message.broker_id] = endpoints_of(listeners)
            self.broker_ids.add(message.broker_id)
        elif isinstance(message, UnregisterBrokerRecord):
            self.brokers.pop(message.broker_id, None)


def _with_node_alone(value: bytes, name: str) -> Message:
    """Return a registration with its node's id alone. That is the first field in every version so far, and
    the record would have no use without it. Raises DecodeError if the value ends before."""
    kind = value[_TYPE_AT]
    _, start = read_uvarint(value, _TYPE_AT + 1)
    end = start + _ID_SIZE_BYTES
    if len(value) < end:
        raise DecodeError(name, "", len(value), "the record ends in its node's id")
    node_id = int.from_bytes(value[start:end], "big", signed=True)
    if kind == RegisterControllerRecord.API_KEY:
        return RegisterControllerRecord(controller_id=node_id)
    if kind == UnregisterControllerRecord.API_KEY:
        return UnregisterControllerRecord(controller_id=node_id)
    if kind == RegisterBrokerRecord.API_KEY:
        return RegisterBrokerRecord(broker_id=node_id)
    return UnregisterBrokerRecord(broker_id=node_id)


def url_of(endpoint: Endpoint) -> str:
    """Return the endpoint as LISTENER://HOST:PORT, or HOST:PORT if the listener isn't known. An IPv6 address
    is in brackets (RaftVoterEndpoint)."""
    listener, host, port = endpoint
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"{listener}://{address}" if listener else address


def changed_voters(before: Sequence[KnownVoter], after: Sequence[KnownVoter]) -> str:
    """Say in a few words how a voter set differs from the one before it."""
    old, new = {voter.id: voter for voter in before}, {voter.id: voter for voter in after}
    both = [(old[voter_id], new[voter_id]) for voter_id in new if voter_id in old]
    parts = (
        ("added", [voter_id for voter_id in new if voter_id not in old]),
        ("removed", [voter_id for voter_id in old if voter_id not in new]),
        ("new directory", [now.id for was, now in both if now.directory_id != was.directory_id]),
        ("new endpoints", [now.id for was, now in both if now.endpoints != was.endpoints]),
    )
    return "; ".join(f"{what} {', '.join(map(str, ids))}" for what, ids in parts if ids)
