"""``kraft-wire quorum recover verify``: read a folder again, and compare it with its plan."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.cli.quorum import NotAsPlanned, Unreadable
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.cli.quorum.recover.files import read_plan
from kraft_wire.cli.quorum.status.report import time_text
from kraft_wire.log.errors import LogError
from kraft_wire.raft.recovery.applying import deviation, voters_in
from kraft_wire.raft.recovery.plan import Plan, RecoveryError
from kraft_wire.storage.inspection import metadata_dir_of
from kraft_wire.storage.recovery_marker import read_marker


def recover_verify(directory: Path, /, *, plan: Path | None = None) -> int:
    """Check whether a folder holds what a plan wrote to it.

    It shows the folder's voters with their addresses, and when the plan was made. Give the plan that you
    mean: without it, the plan that the folder remembers is checked, which may be an earlier one.

    Exit statuses: 0 it does; 2 wrong usage; 5 the folder or the plan can't be read; 6 the plan was changed; 9
    it doesn't, or no plan was applied, or another one; 130 interrupted; 1 anything else.

    For example:

        kraft-wire quorum recover verify /var/lib/kafka/metadata --plan plan.json

    Parameters
    ----------
    directory
        The folder with meta.properties.
    plan
        The file of `recover plan`. By default the plan that the folder itself remembers.
    """
    wanted = None if plan is None else read_plan(plan)
    metadata_dir = metadata_dir_of(directory.absolute())
    found = evidence_of(metadata_dir)
    try:
        marker = read_marker(metadata_dir)
    except LogError as error:
        raise Unreadable(str(error)) from None
    if marker is None:
        raise NotAsPlanned(f"{metadata_dir}: no plan was applied to this folder")
    if wanted is not None and wanted.hash != marker.plan.hash:
        raise NotAsPlanned(
            f"{metadata_dir}: plan {wanted.hash[:12]} isn't applied. The folder remembers "
            f"plan {_named(marker.plan)}"
        )
    try:
        differs = deviation(marker, found)
    except RecoveryError as error:
        raise NotAsPlanned(str(error)) from None
    if differs:
        raise NotAsPlanned(f"{metadata_dir}: {differs}")
    has_run = found.log_end_offset != marker.plan.end_offset
    after = f" The node has run since: the log ends at offset {found.log_end_offset}." if has_run else ""
    voters = voters_in(found)
    print(f"{metadata_dir}: plan {_named(marker.plan)} is applied. Voters: {voters}.{after}")
    return EXIT_OK


def _named(plan: Plan) -> str:
    return f"{plan.hash[:12]} (made {time_text(plan.made_at_ms)})"
