"""Read the properties files of --config, and the metadata folders that they name. Nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import javaproperties

from kraft_wire.cli.errors import UsageError
from kraft_wire.cli.quorum import Unreadable
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.cli.quorum.migrate.commands import VOTERS_KEY
from kraft_wire.cli.quorum.migrate.facts import File, Folder
from kraft_wire.cli.quorum.migrate.properties import items
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.config.server_config import load_properties
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, LOST_BELOW_UNLESS_ALONE, NO_VOTE_UP_TO

KAFKA_S_FOLDER: Final = "/tmp/kafka-logs"
"""The default of log.dir."""
_VOTERS_LINE: Final = re.compile(rf"^[ \t\f]*{re.escape(VOTERS_KEY)}[ \t\f]*[=:].*\n?", re.MULTILINE)


def read_files(paths: Iterable[Path]) -> list[File]:
    """Read properties files of different nodes. Raises UsageError if two are of one node; Unreadable."""
    files = [_read_file(path) for path in paths]
    by_id: dict[int, File] = {}
    for file in files:
        if file.node_id is not None:
            first = by_id.setdefault(file.node_id, file)
            if first is not file:
                raise UsageError(
                    f"{first.path} and {file.path} are both of node {file.node_id}: give one of them"
                )
    return files


def _read_file(path: Path) -> File:
    try:
        properties = load_properties(str(path))
        text = path.read_text(encoding="latin-1")
    except ConfigError as error:
        raise Unreadable(str(error)) from None
    return File(
        path=str(path.absolute()),
        properties=properties,
        can_be_edited=_can_be_edited(text),
        folder=_read_folder(properties) if "controller" in items(properties, "process.roles") else None,
    )


def _can_be_edited(text: str) -> bool:
    """Whether the file says the same about everything else without the lines that sed would remove."""
    without = javaproperties.loads(_VOTERS_LINE.sub("", text))
    return without == {key: value for key, value in javaproperties.loads(text).items() if key != VOTERS_KEY}


def _read_folder(properties: dict[str, str]) -> Folder:
    named = [properties.get("metadata.log.dir", "").strip(), *items(properties, "log.dirs")]
    named += [*items(properties, "log.dir"), KAFKA_S_FOLDER]
    path = Path(next(filter(None, named)))
    try:
        if not path.is_dir():
            return Folder(path=str(path), is_here=False)
        found = evidence_of(path)
        guards = (LOST_BELOW, LOST_BELOW_UNLESS_ALONE, NO_VOTE_UP_TO)
        present = tuple(name for name in guards if (path / PARTITION_FOLDER / name).exists())
    except Unreadable as error:
        return Folder(path=str(path), problem=str(error))
    except OSError as error:
        return Folder(path=str(path), problem=error.strerror or str(error))
    return Folder(
        path=str(path),
        cluster_id=found.cluster_id,
        node_id=found.node_id,
        directory_id=found.directory_id,
        pid=found.controller_pid,
        quorum_epoch=found.quorum_epoch,
        no_vote_up_to=found.no_vote_up_to,
        guards=present,
        damage=found.problems,
    )
