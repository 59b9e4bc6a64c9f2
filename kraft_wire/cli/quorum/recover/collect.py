"""``kraft-wire quorum recover collect``: write down what the folders say that are left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK, UsageError, complain
from kraft_wire.cli.quorum import AtWork
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.cli.quorum.recover.files import COLLECTION_VERSION, Collection, write_new
from kraft_wire.raft.recovery.evidence import FolderEvidence
from kraft_wire.raft.recovery.node_role import Role, role_of


def recover_collect(*directories: Path, output: Path) -> int:
    """Read the folders that are left of a quorum, and write what they say to a file. Changes no folder.

    Run it on each machine that has folders left, then bring the files together for `recover plan`. Stop the
    controllers first: a log that still changes is no evidence. Brokers' folders may be among them, and
    brokers may run: they tell how far the lost controllers had come.

    Exit statuses: 0 written; 2 wrong usage; 5 a folder can't be read; 7 a controller runs on a folder; 130
    interrupted; 1 anything else.

    For example:

        kraft-wire quorum recover collect /var/lib/kafka/metadata --output node1.json

    Parameters
    ----------
    directories
        The folders with meta.properties: metadata.log.dir, or the first of log.dirs.
    output
        The file to write. It must not exist.
    """
    if not directories:
        raise UsageError("name one folder or more: metadata.log.dir, or the first of log.dirs")
    seen: set[Path] = set()
    for directory in directories:
        if directory.resolve() in seen:
            raise UsageError(f"{directory} is given twice")
        seen.add(directory.resolve())
    found = [evidence_of(directory) for directory in directories]
    roles = {folder.node_id: role_of(folder.node_id, found) for folder in found}
    _refuse_if_one_runs(found, roles)
    write_new(output, Collection(COLLECTION_VERSION, time.time_ns() // 1_000_000, found, roles))
    for folder in found:
        print(
            f"{folder.folder}: node {folder.node_id} ({roles[folder.node_id]}), "
            f"last epoch {folder.last_epoch}, log {folder.log_start_offset} to {folder.log_end_offset}, "
            f"committed up to {folder.committed_offset} or later"
        )
        for problem in folder.problems:
            complain(f"warning: {folder.folder}: {problem}")
        if folder.newer:
            complain(f"warning: {folder.folder}: {folder.newer}. Only the node's id was read")
    print(f"Written: {output}")
    return EXIT_OK


def _refuse_if_one_runs(found: Sequence[FolderEvidence], roles: Mapping[int, Role]) -> None:
    """Raise AtWork if a process works on a folder that isn't a broker's: its log may change at any time, and
    `recover plan` refuses it."""
    for folder in found:
        if folder.controller_pid is not None and roles[folder.node_id] != "broker":
            raise AtWork(
                f"{folder.folder}: process {folder.controller_pid} works on it, so its log may still change: "
                "stop it, and collect again. Nothing was written"
            )
