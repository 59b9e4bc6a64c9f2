"""``kraft-wire quorum recover verify``: read a folder again, and compare it with its plan."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.cli.quorum import NotAsPlanned, Unreadable
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.log.errors import LogError
from kraft_wire.raft.recovery.plan import RecoveryError
from kraft_wire.storage.inspection import metadata_dir_of
from kraft_wire.storage.planned_recovery import read_marker


def recover_verify(directory: Path, /) -> int:
    """Read a folder again, and say whether it holds what the plan says that was applied to it.

    Exit statuses: 0 it does, 2 wrong usage, 5 the folder can't be read, 9 it doesn't, or no plan was applied.

    For example:

        kraft-wire quorum recover verify /var/lib/kafka/metadata

    Parameters
    ----------
    directory
        The folder with meta.properties.
    """
    metadata_dir = metadata_dir_of(directory.absolute())
    found = evidence_of(metadata_dir)
    try:
        marker = read_marker(metadata_dir)
    except LogError as error:
        raise Unreadable(str(error)) from None
    if marker is None:
        raise NotAsPlanned(f"{metadata_dir}: no plan was applied to this folder")
    plan = marker.plan
    try:
        plan.check()
        stage = plan.stage_of(found)
    except RecoveryError as error:
        raise NotAsPlanned(str(error)) from None
    if marker.state == "begun" or stage in ("untouched", "other"):
        raise NotAsPlanned(
            f"{metadata_dir}: plan {plan.hash[:12]} was begun and isn't finished: run `kraft-wire quorum "
            "recover apply` again"
        )
    if found.problems:
        raise NotAsPlanned(f"{metadata_dir}: {found.problems[0]}")
    if found.quorum_epoch < plan.epoch:
        raise NotAsPlanned(
            f"{metadata_dir}: quorum-state has epoch {found.quorum_epoch}, and the plan {plan.epoch}"
        )
    voters = ", ".join(f"{voter.id} (directory {voter.directory_id})" for voter in found.voters)
    if stage == "written" and found.voters != plan.voters:
        raise NotAsPlanned(f"{metadata_dir}: its voters are {voters}, and not those of the plan")
    after = (
        ""
        if stage == "written"
        else f" The node has run since: the log ends at offset {found.log_end_offset}."
    )
    print(f"{metadata_dir}: plan {plan.hash[:12]} is applied. Voters: {voters}.{after}")
    return EXIT_OK
