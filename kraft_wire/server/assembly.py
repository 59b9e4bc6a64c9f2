"""Build a node from its configuration and its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from kraft_wire.controller.decision.api_table import ApiTable
from kraft_wire.controller.decision.context import ControllerState, ExporterRow
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.sessions import BrokerSessions
from kraft_wire.controller.node.node import Node
from kraft_wire.controller.policies import Policies
from kraft_wire.log.batch import Batch
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.errors import RecordTooNew
from kraft_wire.metadata.features.supported import bootstrap_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState, RaftConfig, SnapshotInfo
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Now
from kraft_wire.raft.membership.voters import endpoints_of, static_voters
from kraft_wire.security.protocols import SECURITY_PROTOCOLS
from kraft_wire.server.config.endpoints import Endpoint
from kraft_wire.server.config.policies import make_policies
from kraft_wire.server.config.server_config import ServerConfig
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.server.log_levels import log_levels
from kraft_wire.server.logging import get_logger
from kraft_wire.server.reports.files import report_loaded
from kraft_wire.storage.errors import CorruptLog
from kraft_wire.storage.folder import check_role
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.snapshots.state_loading import load_state
from kraft_wire.storage.store import Store

log = get_logger(__name__)


def open_store(config: ServerConfig) -> Store:
    """Lock, check and recover the node's folders. Log what was wrong and how it was repaired."""
    check_role(Path(config.metadata_log_dir), is_observer=config.is_observer)
    store = Store.open(
        Path(config.metadata_log_dir),
        node_id=config.node_id,
        log_dirs=[Path(directory) for directory in config.log_dirs],
        static_voter_ids=[voter.id for voter in config.voters],
        bootstrap_server_count=len(set(config.quorum.bootstrap_servers)),
        config=LogConfig(
            segment_bytes=config.metadata_log.segment_bytes,
            segment_ms=config.metadata_log.metadata_log_segment_ms,
        ),
    )
    _report_recovery(store)
    return store


def build_node(
    config: ServerConfig,
    store: Store,
    apis: ApiTable,
    advertised: Sequence[Endpoint],
    now: Now,
    list_exporters: Callable[[], Sequence[ExporterRow]],
) -> Node:
    """Return the node in the state that its folder holds: the newest snapshot is loaded, and the part of the
    log after it that is known to be committed is applied."""
    entropy = SystemEntropy()
    snapshot_id = _snapshot_to_load(store)
    metadata, too_new = _load_snapshot(store, snapshot_id)
    state = ControllerState(
        metadata=metadata,
        sessions=BrokerSessions(config.settings.broker_session_timeout_ms),
        settings=config.settings,
        cluster_id=store.properties.cluster_id,
        node_id=config.node_id,
        read_here={each.name: (each.host, each.port) for each in advertised} if config.is_observer else {},
        list_exporters=list_exporters,
        log_levels=log_levels,
        policies=Policies() if config.is_observer else make_policies(config.settings.static_configs),
    )
    core = RaftCore(_raft_config(config, store, advertised), durable_state(store), entropy)
    if config.voters and core.kraft_version > 0:
        log.warning(
            "controller.quorum.voters ignored", reason="the voters are in the log", voters=str(core.voters)
        )
    node = Node(
        core,
        state,
        entropy,
        apis,
        start_offset=snapshot_id.end_offset,
        bootstrap=bootstrap_of(store),
        registration=_registration(config, advertised, entropy),
    )
    committed_offset = store.log.committed_offset
    if too_new is not None:
        node.stop_replay(too_new)
    elif committed_offset > snapshot_id.end_offset:
        node.catch_up(store.log.batches(snapshot_id.end_offset, committed_offset), now)
        log.info("committed log applied", from_offset=snapshot_id.end_offset, to_offset=committed_offset)
    return node


def durable_state(store: Store) -> DurableState:
    """Return the facts about the folder that raft needs."""
    snapshot_id = _snapshot_to_load(store)
    return DurableState(
        election=store.election,
        log_start_offset=store.log.start_offset,
        log_end_offset=store.log.end_offset,
        log_size_bytes=store.log.size_bytes,
        epochs=store.log.epochs,
        snapshots=[
            SnapshotInfo(
                id, store.snapshots.size_bytes(id), store.snapshots.last_contained_log_timestamp_ms(id)
            )
            for id in store.snapshots.ids
        ],
        control_records=[
            *_voter_records(snapshot_id.end_offset - 1, _snapshot_control(store, snapshot_id)),
            *_voter_records_of_log(store.log.batches(snapshot_id.end_offset)),
        ],
        committed_offset=store.log.committed_offset,
        lost_below_offset=store.lost_below_offset,
        no_vote_up_to_epoch=store.no_vote_up_to_epoch,
    )


def _snapshot_control(store: Store, snapshot_id: SnapshotId) -> list[Message]:
    return store.snapshots.control(snapshot_id) if snapshot_id in store.snapshots.ids else []


def _snapshot_to_load(store: Store) -> SnapshotId:
    return store.snapshots.latest or BOOTSTRAP_SNAPSHOT_ID


def _load_snapshot(store: Store, snapshot_id: SnapshotId) -> tuple[MetadataState, RecordTooNew | None]:
    """Return the state of a snapshot; an empty one, and the record, if it has one of a newer release."""
    try:
        state = load_state(store.snapshots, snapshot_id)
    except RecordTooNew as record:
        return MetadataState(), record
    if snapshot_id != BOOTSTRAP_SNAPSHOT_ID:
        report_loaded(snapshot_id)
    return state, None


def _voter_records(offset: int, messages: Iterable[Message]) -> Iterator[tuple[int, Message]]:
    for message in messages:
        if isinstance(message, KRaftVersionRecord | VotersRecord):
            yield offset, message


def _voter_records_of_log(batches: Iterable[Batch]) -> Iterator[tuple[int, Message]]:
    for batch in batches:
        if batch.header.is_control:
            for offset, message in enumerate(decode_control_batch(batch), batch.header.base_offset):
                yield from _voter_records(offset, [message])


def bootstrap_of(store: Store) -> list[VersionedRecord]:
    """Return the records that the first leader of an empty log writes: those of the bootstrap file, or
    Kafka's default if ``format`` wrote none.

    The list is empty if there is a snapshot. The bootstrap file isn't needed then, so damage to it doesn't
    stop the node from starting."""
    if _snapshot_to_load(store) != BOOTSTRAP_SNAPSHOT_ID:
        return []
    values = store.bootstrap_values()
    if values is None:
        return list(bootstrap_records())
    return [decode_metadata_record(value) for value in values]


def _raft_config(config: ServerConfig, store: Store, advertised: Sequence[Endpoint]) -> RaftConfig:
    quorum, settings = config.quorum, config.settings
    return RaftConfig(
        node_id=config.node_id,
        directory_id=store.properties.directory_id or Uuid.ZERO,
        cluster_id=store.properties.cluster_id,
        endpoints=endpoints_of((endpoint.name, endpoint.host, endpoint.port) for endpoint in advertised),
        listener=config.controller_listener_names[0],
        bootstrap_servers=quorum.bootstrap_servers,
        static_voters=static_voters(
            config.controller_listener_names[0],
            {voter.id: (voter.host, voter.port) for voter in config.voters},
        ),
        election_timeout_ms=quorum.election_timeout_ms,
        election_backoff_max_ms=quorum.election_backoff_max_ms,
        fetch_timeout_ms=quorum.fetch_timeout_ms,
        request_timeout_ms=quorum.request_timeout_ms,
        retry_backoff_ms=quorum.retry_backoff_ms,
        fetch_max_bytes=quorum.fetch_max_bytes,
        fetch_snapshot_max_bytes=quorum.fetch_snapshot_max_bytes,
        max_retention_bytes=settings.metadata_max_retention_bytes,
        max_retention_ms=settings.metadata_max_retention_ms,
        max_wanted_bytes=config.metadata_log.kraft_wire_exporters_max_log_bytes,
        max_wanted_ms=config.metadata_log.kraft_wire_exporters_max_log_ms,
        auto_join=quorum.auto_join_enable,
        is_observer_only=config.is_observer,
        drafted_listeners=config.drafted_listeners,
    )


def _registration(
    config: ServerConfig, advertised: Sequence[Endpoint], entropy: SystemEntropy
) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=entropy.uuid(),
        zk_migration_ready=False,
        listeners=[
            Listener(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=SECURITY_PROTOCOLS.index(endpoint.security_protocol),
            )
            for endpoint in advertised
        ],
        features=[
            Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in config.settings.feature_ranges.items()
        ],
    )


def _report_recovery(store: Store) -> None:
    recovery = store.recovery
    if recovery.torn_tail is not None:
        log.warning("torn log tail truncated", found=recovery.torn_tail)
    for path in recovery.rebuilt:
        log.warning("damaged file rebuilt", file=str(path))
    for error, aside in zip(recovery.corrupt_snapshots, recovery.snapshots_set_aside, strict=True):
        log.error("corrupt snapshot set aside", file=str(aside), error=str(error))
    if recovery.log_reset_to is not None:
        log.warning("log reset", end_offset=recovery.log_reset_to, reason="the newest snapshot ends there")
    if recovery.election_state_missing:
        log.warning("quorum-state missing", log_end_offset=store.log.end_offset)
    if recovery.corrupt_quorum_state is not None:
        kept = str(recovery.quorum_state_set_aside)
        log.error("corrupt quorum-state set aside", file=kept, error=str(recovery.corrupt_quorum_state))
    files = [str(path) for path in recovery.log_set_aside]
    if recovery.corrupt_history is not None:
        log.warning(
            "corrupt old segments set aside",
            effect="only records that a snapshot covers are lost",
            file=str(recovery.corrupt_history.path),
            error=recovery.corrupt_history.summary,
            log_start_offset=store.log.start_offset,
            set_aside=files,
        )
    elif recovery.log_set_aside:
        found = recovery.corrupt_log or recovery.missing_records or recovery.corrupt_snapshots[0]
        problem = found.summary if isinstance(found, CorruptLog) else found.problem
        log.error("corrupt log set aside", file=str(found.path), error=problem, set_aside=files)
    if store.lost_below_offset is not None:
        log.warning(
            "elections suspended",
            reason="this node lost records; it fetches them from the leader first",
            log_end_offset=store.log.end_offset,
            lost_below_offset=store.lost_below_offset,
        )
    if store.no_vote_up_to_epoch >= 0:
        log.warning(
            "votes suspended",
            up_to_epoch=store.no_vote_up_to_epoch,
            reason="this node may have voted in these epochs",
        )
