"""Tell brokers from controllers, by what all folders say together.

Every controller registers itself in the log when it starts, and every broker does (KIP-919, KIP-631); a node
of both roles does both. So a node that registered as a broker only is one, even if it is or was among the
voters: the leader adds any node as a voter that asks for it (KIP-853). Its log may tell what was committed,
but its folder is never a voter's. A voter that no log knows as a broker is a controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kraft_wire.raft.recovery.evidence import FolderEvidence

Role = Literal["controller", "broker", "broker,controller", "unknown"]
"""As in process.roles. Unknown is a node that no log names, in a folder without a broker's files."""


def role_of(node_id: int, found: Sequence[FolderEvidence]) -> Role:
    """Return the role of a node, whether or not its own folder was collected."""
    has_registered_broker = any(node_id in source.broker_ids for source in found)
    is_broker = has_registered_broker or any(
        source.node_id == node_id and source.has_broker_files for source in found
    )
    is_controller = _has_controller(node_id, found) or (
        not has_registered_broker and _was_voter(node_id, found)
    )
    if is_controller:
        return "broker,controller" if is_broker else "controller"
    return "broker" if is_broker else "unknown"


def is_broker_only(node_id: int, found: Sequence[FolderEvidence]) -> bool:
    """Whether the node is a broker, and no controller."""
    return role_of(node_id, found) == "broker"


def is_controller(node_id: int, found: Sequence[FolderEvidence]) -> bool:
    """Whether the node is a controller; it may be a broker, too."""
    return role_of(node_id, found) in ("controller", "broker,controller")


def _has_controller(node_id: int, found: Sequence[FolderEvidence]) -> bool:
    """Whether the node registered as a controller once, or is a static voter: before metadata.version 3.7
    controllers didn't register."""
    return any(
        node_id in source.controller_ids
        or node_id in source.registrations
        or node_id in source.static_voter_ids
        for source in found
    )


def _was_voter(node_id: int, found: Sequence[FolderEvidence]) -> bool:
    return any(
        voter.id == node_id for source in found for change in source.history for voter in change.voters
    )
