"""What properties say about a migration: those of a file, or those that a node was started with. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kraft_wire.cli.quorum.migrate.commands import BOOTSTRAP_KEY, VOTERS_KEY
from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Controller,
    Finding,
    Node,
    Quorum,
    in_the_way,
    not_known,
)
from kraft_wire.server.config.endpoints import parse_voters
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.config.server_config import server_config

Properties = Mapping[str, str]


class Source(NamedTuple):
    """Properties, and how they are called."""

    text: str
    properties: Properties


def sources(node: Node) -> list[Source]:
    """Return what is known of a node's properties: first what it will start with, then what it runs with."""
    found = []
    if node.file is not None:
        found.append(Source("its properties file", node.file.properties))
    if node.settings is not None:
        found.append(Source("the settings that it runs with", node.settings))
    return found


def items(properties: Properties, key: str) -> list[str]:
    """Return the entries of a list, none if the key isn't set."""
    return [entry.strip() for entry in properties.get(key, "").split(",") if entry.strip()]


def has_static_voters(properties: Properties) -> bool:
    return bool(items(properties, VOTERS_KEY))


def static_voter_ids(properties: Properties) -> set[int]:
    """Return the ids in controller.quorum.voters; what can't be read is left out."""
    return {voter.id for voter in parse_voters(items(properties, VOTERS_KEY)).values}


def bootstrap_servers(properties: Properties) -> list[str]:
    return items(properties, BOOTSTRAP_KEY)


def kraft_wire_says(source: Source) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the problems that keep kraft-wire from starting with these properties, and its warnings."""
    try:
        return (), server_config(source.properties, source.text).warnings
    except ConfigError as error:
        return error.problems, error.warnings


def identity_findings(quorum: Quorum) -> Iterator[Finding]:
    """Find files and folders that are another node's, another cluster's, or unreadable."""
    for file in quorum.strangers:
        whose = "has no node.id" if file.node_id is None else f"is of node {file.node_id}"
        yield in_the_way(
            CLUSTER,
            f"{file.path} {whose}, and no controller or broker of this quorum has that id",
            "give the files of its nodes only, or correct node.id",
        )
    for node in (*quorum.controllers, *quorum.brokers):
        if node.file is not None and node.file.folder is not None:
            yield from _folder_findings(quorum, node)


def _folder_findings(quorum: Quorum, node: Node) -> Iterator[Finding]:
    assert node.file is not None
    folder = node.file.folder
    if folder is None or not folder.is_here:
        return
    if folder.problem:
        yield in_the_way(
            node.name,
            f"{folder.path} can't be read: {folder.problem}",
            "run this command as the user who owns the folder; if it is damaged, see docs/recovery.md",
        )
        return
    if folder.cluster_id != quorum.cluster_id:
        text = f"{folder.path} is of cluster {folder.cluster_id}, the quorum of {quorum.cluster_id}"
        yield in_the_way(node.name, text, f"correct log.dirs or metadata.log.dir in {node.file.path}")
    elif folder.node_id != node.id:
        text = f"{folder.path} is of node {folder.node_id}, {node.file.path} of node {node.id}"
        yield in_the_way(node.name, text, f"correct log.dirs or metadata.log.dir in {node.file.path}")
    elif isinstance(node, Controller) and _is_another_directory(node, folder.directory_id):
        yield in_the_way(
            node.name,
            f"{folder.path} has directory id {folder.directory_id}, the voter has {node.directory_id}",
            "the node would not vote with this folder: name the voter's own folder in "
            f"{node.file.path}, or remove the voter and add it again (docs/quorum.md)",
        )


def _is_another_directory(controller: Controller, directory_id: str) -> bool:
    known = controller.is_voter and controller.directory_id and directory_id
    return bool(known) and controller.directory_id != directory_id


def unchecked_folder(node: Node, command: str) -> Iterator[Finding]:
    """Tell that a controller's folder couldn't be looked at, and what does it."""
    folder = node.file.folder if node.file is not None else None
    if folder is None:
        yield not_known(
            node.name,
            "its properties file wasn't given, so neither the file nor the folder was checked",
            "give it with --config, on the machine of the controller",
        )
    elif not folder.is_here:
        yield not_known(
            node.name,
            f"{folder.path} isn't on this machine",
            f"check it on the machine of {node.name}",
            command,
        )
