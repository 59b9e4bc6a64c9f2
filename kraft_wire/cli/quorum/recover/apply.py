"""``kraft-wire quorum recover apply``: write what a plan says into a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from kraft_wire.cli.errors import EXIT_OK, CommandError, Interrupted, complain
from kraft_wire.cli.quorum import AtWork, Unfit, Unreadable
from kraft_wire.cli.quorum.confirming import NOTHING_CHANGED, confirm, interruption_says
from kraft_wire.cli.quorum.connecting import client_errors, settings_of
from kraft_wire.cli.quorum.recover.files import read_plan
from kraft_wire.cli.quorum.recover.plan import plan_lines
from kraft_wire.client.survey import NodeAnswer, survey, with_named_leaders
from kraft_wire.log.errors import LogError
from kraft_wire.raft.recovery.plan import Plan, RecoveryError
from kraft_wire.storage.errors import DiskFailed, FolderLocked
from kraft_wire.storage.folder import holder_of_lock, read_meta_properties
from kraft_wire.storage.folder_copy import FolderCopy
from kraft_wire.storage.inspection import metadata_dir_of
from kraft_wire.storage.planned_recovery import apply_plan, backup_path, finish_marker, is_applied
from kraft_wire.storage.recovery_marker import read_marker
from kraft_wire.wire.address import Address

DEFAULT_TIMEOUT_MS: Final = 3000


def recover_apply(
    plan: Path,
    directory: Path,
    /,
    *,
    cluster_id: str,
    yes: bool = False,
    backup: Path | None = None,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Write what a plan says into a folder, so that its node can lead again. Shows what it does, and asks.

    It asks every address of the old and the new voters first, and refuses if a leader answers; if voters move
    to other addresses, it refuses if any controller answers. It keeps a copy of the folder. After an
    interruption, run it again.

    Exit statuses: 0 applied, now or before; 2 wrong usage; 5 the plan, the folder or the file of
    --command-config can't be read; 6 the plan isn't for this cluster or folder, or was changed, or something
    else has the copy's place; 7 a leader answers (for other addresses: any controller), or something that
    can't be asked, or a process works on the folder; 8 not confirmed; 130 interrupted; 1 anything else.

    For example:

        kraft-wire quorum recover apply plan.json /var/lib/kafka/metadata --cluster-id 4L6g3nShT-eMCtK--X86sw

    Parameters
    ----------
    plan
        The file of `recover plan`.
    directory
        The folder of a node that the plan names.
    cluster_id
        The cluster's id, as a check that this is the right cluster.
    yes
        Don't ask.
    backup
        Where to keep a copy of the folder; by default beside it, under its name with ".before-recovery-" and
        the beginning of the plan's hash. It must not exist, unless an earlier attempt made it.
    command_config
        A properties file with security settings, to ask the voters' addresses with.
    timeout_ms
        How long to wait for each of the voters' addresses.
    """
    wanted = read_plan(plan)
    if cluster_id != wanted.cluster_id:
        raise Unfit(f"--cluster-id {cluster_id}: the plan is for cluster {wanted.cluster_id}")
    metadata_dir = metadata_dir_of(directory.absolute())
    with _command_errors(), interruption_says(NOTHING_CHANGED):
        _apply(wanted, metadata_dir, yes, backup, command_config, timeout_ms)
    print(f"Check it with `kraft-wire quorum recover verify {metadata_dir} --plan {plan}`.")
    return EXIT_OK


@contextmanager
def _command_errors() -> Iterator[None]:
    """Turn the errors of a folder and of a plan into those of a command."""
    try:
        yield
    except RecoveryError as error:
        raise Unfit(str(error)) from None
    except FolderLocked as error:
        raise AtWork(str(error)) from None
    except DiskFailed as error:
        raise CommandError(
            f"{error}. The plan isn't applied to the end. Run the command again when the cause is gone"
        ) from None
    except LogError as error:
        raise Unreadable(str(error)) from None


def _apply(
    plan: Plan,
    metadata_dir: Path,
    yes: bool,
    backup: Path | None,
    command_config: Path | None,
    timeout_ms: int,
) -> None:
    if not metadata_dir.is_dir():
        raise Unreadable(f"{metadata_dir}: no such folder; give the one with meta.properties")
    if not plan.targets:
        raise Unfit("this plan changes no folder: " + plan.steps[0])
    pid = holder_of_lock(metadata_dir)
    if is_applied(plan, metadata_dir):
        is_finished = pid is None and finish_marker(plan, metadata_dir)
        changed = "Only its marker was finished" if is_finished else "Nothing was changed"
        print(f"{metadata_dir}: the plan was applied before. {changed}.")
        return
    if pid is not None:
        raise AtWork(f"{metadata_dir}: process {pid} works on it; stop it")
    _refuse_if_led(plan, command_config, timeout_ms)
    kept = backup_path(metadata_dir, plan) if backup is None else backup.absolute()
    copy = FolderCopy(metadata_dir, kept, plan)
    copy.check()
    node_id = read_meta_properties(metadata_dir).node_id
    for line in (*plan_lines(plan), "", *_actions(plan, metadata_dir, node_id, copy)):
        print(line)
    if not yes:
        confirm()
    try:
        apply_plan(plan, metadata_dir, kept)
    except KeyboardInterrupt:
        raise Interrupted(_interrupted(plan, metadata_dir)) from None
    print("The plan is applied.")


def _interrupted(plan: Plan, metadata_dir: Path) -> str:
    """Say what an interruption left: the marker is the first file of the folder that changes."""
    marker = read_marker(metadata_dir)
    if marker is None or marker.plan != plan:
        return f"interrupted: nothing of the plan was written to {metadata_dir}; run the command again"
    return f"interrupted: the plan may be written in part to {metadata_dir}; run the command again"


def _actions(plan: Plan, metadata_dir: Path, node_id: int, copy: FolderCopy) -> Iterator[str]:
    yield f"In {metadata_dir}:"
    made = "the copy of the first attempt stays" if copy.is_there else "a copy is kept"
    yield f"  {made} in {copy.path}"
    if plan.kind == "static":
        ids = ", ".join(map(str, plan.voter_ids))
        yield f"  quorum-state gets epoch {plan.epoch}, and names the voters {ids}"
        yield f"  the log gets the beginning of this epoch at offset {plan.base_offset}"
    else:
        yield f"  quorum-state gets epoch {plan.epoch}"
        yield f"  the log gets the new voters at offset {plan.end_offset - 1}"
    for survivor in plan.survivors:
        if survivor.node_id == node_id and survivor.is_cut:
            lost = f"offsets {survivor.log_end_offset} to {survivor.lost_below - 1}"
            yield f"  lost-below is removed: the node votes again, without what it lost, {lost}"


def _refuse_if_led(plan: Plan, command_config: Path | None, timeout_ms: int) -> None:
    """Ask all voters, old and new, and the leaders that they name: the voters may have changed since the
    folders were collected. Raises AtWork if one leads, or if one can't be asked and is there."""
    voters = (*plan.old_voters, *plan.voters)
    addresses = {Address(point.host, point.port) for voter in voters for point in voter.endpoints}
    settings = settings_of("localhost:1", command_config, timeout_ms)
    with client_errors():
        answers = with_named_leaders(partial(survey, settings), addresses)
    for answer in answers:
        _check_answer(plan, answer)


def _check_answer(plan: Plan, answer: NodeAnswer) -> None:
    if answer.is_silent:
        return
    if answer.leads:
        raise AtWork(f"a leader answers at {answer.address}, epoch {answer.epoch}: no majority is lost")
    if answer.problem:
        raise AtWork(
            f"something answers at {answer.address}, and doesn't say whether it leads: {answer.problem}. "
            "Stop it, or give --command-config"
        )
    if plan.kind == "endpoints":
        raise AtWork(f"a controller runs at {answer.address}: stop all voters first")
    complain(f"warning: a controller runs at {answer.address} as a voter of the lost quorum; stop it")
