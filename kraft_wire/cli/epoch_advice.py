"""Tell about a node's epoch, and lower it: the part of ``kraft-wire fsck`` about used-up epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kraft_wire.cli.errors import complain
from kraft_wire.raft.door.epoch_limits import LAST_EPOCH
from kraft_wire.storage.epoch_lowering import lower_epoch
from kraft_wire.storage.inspection import Inspection

EXIT_LOWERED: Final = 0
EXIT_NOT_CONFIRMED: Final = 3

FAR: Final = 100_000
"""More than one failed election a second for a day: elections of a healthy quorum don't use up as many."""


def epoch_advice(found: Inspection) -> str | None:
    """Return what is wrong with the epoch, and what to do; None if it is usual."""
    left = max(0, LAST_EPOCH - found.known_epoch)
    if LAST_EPOCH - found.last_record_epoch <= FAR:
        return (
            f"The last record has epoch {found.last_record_epoch}, and {left:,} epochs are left for "
            "elections. This can't be lowered, because records keep their epochs: find out who raises it, "
            "and move to a new cluster before they are used up."
        )
    if found.known_epoch - found.last_record_epoch <= FAR:
        return None
    lowest = found.last_record_epoch + 1
    problem = (
        f"The node's epoch is {found.known_epoch}, far above that of its last record, "
        f"{found.last_record_epoch}: {left:,} epochs are left for elections. Nobody led in between; failed "
        "elections or a stranger's requests raised it. Nothing is lost."
    )
    if found.is_sole_voter:
        return (
            f"{problem} To lower it: stop this controller and all brokers, then run, for its folder and the "
            f"brokers' metadata folders: kraft-wire fsck {found.folder} --lower-epoch {lowest} --yes"
        )
    return (
        f"{problem} To lower it: stop all controllers and brokers. Run fsck on the metadata folder of each; "
        f"this one needs an epoch of at least {lowest}. Then run, with the highest of these epochs, for each "
        f"folder: kraft-wire fsck {found.folder} --lower-epoch EPOCH --yes"
    )


def lower(directory: Path, epoch: int, *, is_confirmed: bool) -> int:
    """Lower the epoch, and return the exit status. Raises StorageError, OSError."""
    if not is_confirmed:
        complain(
            f"{directory}: nothing was changed. The epoch may be lowered only while every controller and "
            "broker of the cluster is stopped, and to the same epoch in the metadata folder of each, before "
            "any is started. A node that isn't at hand must be formatted again. If so, add --yes"
        )
        return EXIT_NOT_CONFIRMED
    done = lower_epoch(directory, epoch)
    if done is None:
        print(f"The epoch isn't above {epoch}: nothing was changed.")
        return EXIT_LOWERED
    for path in done.kept:
        print(f"kept: {path}")
    print(f"The epoch was lowered from {done.old_epoch} to {epoch}.")
    return EXIT_LOWERED
