"""``kraft-wire storage format``: prepare the folders of a node, as Kafka's StorageTool does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_OK, CommandError, UsageError, complain
from kraft_wire.cli.storage.formatting import format_node
from kraft_wire.cli.storage.scram_users import scram_records
from kraft_wire.cli.storage.versions import parse_feature_level
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features.metadata_version import LATEST_PRODUCTION, name_of, parse_release_version
from kraft_wire.metadata.features.supported import METADATA_VERSION, initial_levels
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.server.config.endpoints import BadAddress, InitialController, parse_initial_controllers
from kraft_wire.server.config.server_config import NodeConfig, load_node_config
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.storage.folder import read_meta_properties

STANDALONE = "--standalone"
INITIAL = "--initial-controllers"
NO_INITIAL = "--no-initial-controllers"
NEWEST_RELEASE = name_of(LATEST_PRODUCTION).partition("-")[0]
_CLUSTER_ID = re.compile("[!-~]+")


def storage_format(
    *,
    cluster_id: Annotated[str, Parameter(alias="-t")],
    config: Annotated[str, Parameter(alias="-c")],
    standalone: Annotated[bool, Parameter(alias="-s")] = False,
    initial_controllers: Annotated[str | None, Parameter(alias="-I")] = None,
    no_initial_controllers: Annotated[bool, Parameter(alias="-N")] = False,
    release_version: Annotated[str | None, Parameter(alias="-r", show_default=NEWEST_RELEASE)] = None,
    feature: Annotated[Sequence[str], Parameter(alias="-f")] = (),
    ignore_formatted: Annotated[bool, Parameter(alias="-g")] = False,
    add_scram: Annotated[Sequence[str], Parameter(alias="-S")] = (),
) -> int:
    """Format the folders of a controller or a broker, as Kafka's kafka-storage does.

    A controller of a dynamic quorum (without controller.quorum.voters) needs exactly one of --standalone,
    --initial-controllers and --no-initial-controllers.

    For example:

        id=$(kraft-wire storage random-uuid)
        kraft-wire storage format -t $id -c controller.properties --standalone

    Parameters
    ----------
    cluster_id
        The id of the cluster, the same for all of its nodes; `storage random-uuid` makes one.
    config
        The node's properties file.
    standalone
        This controller is the first and only voter of its quorum.
    initial_controllers
        The first voters: ID@HOST:PORT:DIRECTORY-ID, separated by commas, the same for each of them.
    no_initial_controllers
        This controller joins an existing quorum, or one that other controllers start.
    release_version
        The release whose features the cluster starts with, such as 4.0 or 4.0-IV3.
    feature
        A FEATURE=LEVEL to start with instead of the release's level. Can be given several times.
    ignore_formatted
        Skip folders that are already formatted, instead of failing. They keep what they have, also their
        directory ids.
    add_scram
        A user that the cluster starts with: SCRAM-SHA-512=[name=alice,password=a-secret]. Besides password
        there are iterations, salt and saltedpassword. Can be given several times. Give all controllers the
        same users: the first active one writes those that it was formatted with.
    """
    _check_cluster_id(cluster_id)
    node = load_node_config(config)
    voters = _initial_voters(node, standalone, initial_controllers, no_initial_controllers)
    _warn_if_it_is_no_voter(node, voters)
    levels = _levels(node, release_version, feature)
    _warn_of_an_odd_cluster_id(cluster_id)
    users = scram_records(add_scram, levels[METADATA_VERSION])
    formatted = format_node(node, cluster_id, levels, voters, users, ignore_formatted=ignore_formatted)
    _report(node, formatted, levels, voters)
    if initial_controllers is not None and Path(node.metadata_log_dir) not in formatted:
        _warn_of_another_directory_id(node, voters)
    return EXIT_OK


def _check_cluster_id(cluster_id: str) -> None:
    if not _CLUSTER_ID.fullmatch(cluster_id):
        raise UsageError(
            f"--cluster-id {cluster_id!r} is not an id; `kraft-wire storage random-uuid` makes one"
        )


def _warn_of_an_odd_cluster_id(cluster_id: str) -> None:
    if not _is_uuid(cluster_id):
        complain(
            f"warning: --cluster-id {cluster_id!r} is not an id as `kraft-wire storage random-uuid` makes; "
            "clusters that share it can't be told apart"
        )


def _warn_if_it_is_no_voter(node: NodeConfig, voters: Sequence[InitialController]) -> None:
    ids = [voter.id for voter in voters]
    if ids and node.is_controller and node.node_id not in ids:
        complain(
            f"warning: {INITIAL} names the voters {', '.join(map(str, ids))}, and not this node, "
            f"{node.node_id}: it observes until it is made a voter with `kraft-wire quorum promote`"
        )


def _is_uuid(text: str) -> bool:
    try:
        return str(Uuid.parse(text)) == text
    except ValueError:
        return False


def _levels(node: NodeConfig, release_version: str | None, features: Sequence[str]) -> dict[str, int]:
    unstable = node.unstable_feature_versions_enable
    overrides = dict(parse_feature_level(text) for text in features)
    try:
        release = (
            None if release_version is None else parse_release_version(release_version, unstable=unstable)
        )
        return initial_levels(release, overrides, dynamic_quorum=not node.voters, unstable=unstable)
    except FeatureError as error:
        raise UsageError(str(error)) from None


def _report(
    node: NodeConfig, formatted: list[Path], levels: Mapping[str, int], voters: Sequence[InitialController]
) -> None:
    if not formatted:
        print("All folders are already formatted.")
        return
    print("The cluster's features: " + ", ".join(f"{name}={level}" for name, level in levels.items()))
    for path in formatted:
        kind = "data directory"
        if str(path) == node.metadata_log_dir:
            is_voter = any(voter.id == node.node_id for voter in voters)
            dynamic = "dynamic " if voters else ""
            kind = f"{dynamic}metadata {'voter ' if is_voter else ''}directory"
        print(f"Formatted {kind} {path} with {METADATA_VERSION} {name_of(levels[METADATA_VERSION])}.")


def _warn_of_another_directory_id(node: NodeConfig, voters: Sequence[InitialController]) -> None:
    """Say that a metadata folder that was formatted before keeps its directory id, if the voters name another
    one. Kafka's tool says nothing; the node isn't that voter then."""
    kept = read_meta_properties(Path(node.metadata_log_dir)).directory_id
    for voter in voters:
        if voter.id == node.node_id and voter.directory_id != kept:
            complain(
                f"warning: {node.metadata_log_dir} was formatted before, and keeps its directory id, "
                f"{kept or 'none'}. {INITIAL} names {voter.directory_id} for node {node.node_id}: this node "
                "isn't that voter"
            )


def _initial_voters(
    node: NodeConfig, standalone: bool, initial_controllers: str | None, no_initial_controllers: bool
) -> tuple[InitialController, ...]:
    """Return the voters for the first checkpoint: none for a static quorum, a broker or a later joiner."""
    given = [
        option
        for option, is_given in (
            (STANDALONE, standalone),
            (INITIAL, initial_controllers is not None),
            (NO_INITIAL, no_initial_controllers),
        )
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other; give one of them")
    if node.voters and (standalone or initial_controllers is not None):
        raise UsageError(
            f"{given[0]} makes a dynamic quorum, and controller.quorum.voters a static one; remove "
            "controller.quorum.voters and set controller.quorum.bootstrap.servers"
        )
    if standalone:
        return (only_voter(node),)
    if initial_controllers is not None:
        return _parse_voters(initial_controllers)
    if node.is_controller and not node.voters and not no_initial_controllers:
        raise UsageError(
            "a controller without controller.quorum.voters needs one of "
            f"{STANDALONE}, {INITIAL} or {NO_INITIAL}"
        )
    return ()


def only_voter(node: NodeConfig) -> InitialController:
    """Return a controller as the only voter of its quorum, at its first advertised address."""
    if not node.is_controller:
        raise UsageError(f"{STANDALONE} is for controllers, but process.roles doesn't name that role")
    if not node.advertised_listeners:
        raise CommandError("listeners has none of controller.listener.names")
    endpoint = node.advertised_listeners[0]
    host = endpoint.host or "localhost"
    return InitialController(node.node_id, host, endpoint.port, SystemEntropy().uuid())


def _parse_voters(text: str) -> tuple[InitialController, ...]:
    try:
        return parse_initial_controllers(text)
    except BadAddress as error:
        raise UsageError(f"{INITIAL}: {error}") from None
