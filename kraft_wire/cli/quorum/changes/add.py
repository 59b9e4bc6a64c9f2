"""``kraft-wire quorum add``: make the controller of a properties file a voter."""

from __future__ import annotations

import socket
from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.quorum import Unfit, Unreadable
from kraft_wire.cli.quorum.changes.kraft_version import check_voters_can_change
from kraft_wire.cli.quorum.changes.leader_client import leader_for_change
from kraft_wire.cli.quorum.changes.newcomer import (
    DEFAULT_MAX_LAG,
    DEFAULT_STEADY_MS,
    DEFAULT_WAIT_MS,
    KeepsUp,
    check_no_other_directory_votes,
    is_committed_voter,
    make_voter,
    observers_of,
)
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, OPTION, settings_of
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, endpoints_of
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.config.server_config import NodeConfig, load_node_config
from kraft_wire.storage.errors import NotFormatted, StorageError
from kraft_wire.storage.folder import read_meta_properties


def quorum_add(
    config: Path,
    /,
    *,
    bootstrap_controller: str,
    max_lag: int = DEFAULT_MAX_LAG,
    steady_ms: int = DEFAULT_STEADY_MS,
    wait_ms: int = DEFAULT_WAIT_MS,
    yes: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Make a new controller a voter, once it has kept up with the log for a while. Shows what changes, and
    asks.

    Run it on the new controller's machine. Its folder must be formatted with --no-initial-controllers, and
    the controller must run; this command waits for it. From elsewhere, use `quorum promote`.

    Exit statuses: 0 it is a voter, now or before; 2 wrong usage; 3 no controller answers; 4 none of them
    leads; 5 a file or the folder can't be read; 6 the node is a voter with another directory or has the
    address of another voter, its folder is of another cluster or a quorum of its own, kraft.version is 0, or
    the controllers are of several clusters; 8 not confirmed; 10 it doesn't fetch or keep up; 12 it isn't
    known whether the change was made; 14 the leader refuses; 130 interrupted; 1 anything else.

    For example:

        kraft-wire quorum add controller-4.properties --bootstrap-controller c1:9093

    Parameters
    ----------
    config
        The new controller's properties file: its node.id, its listeners, and its folder.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    max_lag
        How many records it may lag behind the leader.
    steady_ms
        For how many milliseconds it must not lag by more.
    wait_ms
        How many milliseconds to wait for that.
    yes
        Don't ask.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    keeps_up = KeepsUp(max_lag, steady_ms, wait_ms)
    keeps_up.check()
    node = _controller_of(config)
    endpoints = _endpoints(node)
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        check_voters_can_change(leader)
        key = _key(node, leader.cluster_id)
        if is_committed_voter(leader, key):
            print(f"Node {key.id} is a voter already. Nothing was changed.")
            return EXIT_OK
        _check_can_join(leader.describe(), Path(node.metadata_log_dir), key)
        make_voter(leader, key, endpoints, keeps_up, yes=yes)
    return EXIT_OK


def _controller_of(config: Path) -> NodeConfig:
    """Read the properties file of a controller. Raises UsageError for that of another node, Unreadable."""
    try:
        node = load_node_config(str(config))
    except ConfigError as error:
        raise Unreadable(str(error)) from None
    if not node.is_controller:
        raise UsageError(f"{config}: process.roles has no controller")
    return node


def _key(node: NodeConfig, cluster_id: str) -> ReplicaKey:
    """Return the id and directory id that the controller votes with. Raises Unfit if its folder is of another
    cluster or node, or has no directory id; Unreadable."""
    try:
        properties = read_meta_properties(Path(node.metadata_log_dir))
    except NotFormatted as error:
        raise Unreadable(f"{error} with --no-initial-controllers") from None
    except StorageError as error:
        raise Unreadable(str(error)) from None
    if not properties.directory_id:
        raise Unfit(f"{node.metadata_log_dir}/meta.properties has no directory.id: format the folder again")
    if properties.cluster_id != cluster_id:
        raise Unfit(
            f"{node.metadata_log_dir} belongs to cluster {properties.cluster_id}, and the quorum that "
            f"{OPTION} names to {cluster_id}: check both. To use the folder for this quorum, move it "
            "away, and format it again"
        )
    if properties.node_id != node.node_id:
        raise Unfit(
            f"{node.metadata_log_dir} is the folder of node {properties.node_id}, and the file says node.id="
            f"{node.node_id}: correct the file"
        )
    return ReplicaKey(node.node_id, properties.directory_id)


def _check_can_join(described: QuorumDescription, folder: Path, key: ReplicaKey) -> None:
    """Raise Unfit if the controller can't become a voter with this folder. Raises Unreadable."""
    check_no_other_directory_votes(described, key.id, key.directory_id)
    if not observers_of(described, key.id, key.directory_id):
        _check_is_no_quorum_of_its_own(folder, key)


def _check_is_no_quorum_of_its_own(folder: Path, key: ReplicaKey) -> None:
    """Raise Unfit if the folder's log names the controller as its only voter: then it elects itself, and
    fetches from nobody. Raises Unreadable."""
    voters = [(voter.id, voter.directory_id) for voter in evidence_of(folder).voters]
    if voters == [(key.id, str(key.directory_id))]:
        raise Unfit(
            f"{folder} was formatted with --standalone: its controller is a quorum of its own, and never "
            "fetches from this one. Stop it, move the folder away, and format it again with "
            "--no-initial-controllers"
        )


def _endpoints(node: NodeConfig) -> Endpoints:
    """Return the addresses that the controller advertises. Raises Unfit for one that is chosen at its
    start."""
    for endpoint in node.advertised_listeners:
        if not endpoint.port:
            raise Unfit(
                f"listener {endpoint.name} has port 0, so only the running controller knows its address: use "
                f"`kraft-wire quorum promote {node.node_id}`"
            )
    return endpoints_of(
        (endpoint.name, endpoint.host or socket.getfqdn(), endpoint.port)
        for endpoint in node.advertised_listeners
    )
