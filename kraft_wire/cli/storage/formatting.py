"""Format a node's folders, for ``storage format`` and ``dev``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kraft_wire.metadata.features.supported import KRAFT_VERSION, level_records
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, VoterSet, endpoints_of, voter_set
from kraft_wire.server.config.endpoints import InitialController
from kraft_wire.server.config.server_config import NodeConfig
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.storage.format import Checkpoint, FormatPlan, format_folders


def format_node(
    node: NodeConfig,
    cluster_id: str,
    levels: Mapping[str, int],
    voters: Sequence[InitialController] = (),
    users: Sequence[UserScramCredentialRecord] = (),
    *,
    ignore_formatted: bool = False,
) -> list[Path]:
    """Format the node's folders and return those that weren't formatted. Raises StorageError and OSError.

    ``levels`` holds the level of every feature, ``voters`` the first voters of a dynamic quorum, if known.
    The cluster starts with these ``users``.
    """
    own = next((voter for voter in voters if voter.id == node.node_id), None)
    plan = FormatPlan(
        cluster_id=cluster_id,
        node_id=node.node_id,
        directories=[Path(directory) for directory in node.directories],
        metadata_dir=Path(node.metadata_log_dir),
        new_directory_id=SystemEntropy().uuid,
        directory_id=own.directory_id if own is not None else None,
        checkpoint=_checkpoint(node, levels, voters, users) if node.is_controller else None,
        ignore_formatted=ignore_formatted,
    )
    return format_folders(plan)


def _checkpoint(
    node: NodeConfig,
    levels: Mapping[str, int],
    voters: Sequence[InitialController],
    users: Sequence[UserScramCredentialRecord],
) -> Checkpoint:
    control: list[Message] = []
    if levels[KRAFT_VERSION] > 0:
        control.append(KRaftVersionRecord(kraft_version=levels[KRAFT_VERSION]))
    if voters:
        control.append(_voter_set(node.controller_listener_names[0], voters).to_record())
    records: list[tuple[Message, int]] = [*level_records(levels), *((user, 0) for user in users)]
    return Checkpoint(
        control=control,
        values=[encode_metadata_record(record, version) for record, version in records],
        now_ms=time.time_ns() // 1_000_000,
    )


def _voter_set(listener: str, voters: Sequence[InitialController]) -> VoterSet:
    return voter_set(
        Voter(ReplicaKey(voter.id, voter.directory_id), endpoints_of([(listener, voter.host, voter.port)]))
        for voter in voters
    )
