"""``kraft-wire fsck``: check every file of a node's metadata folder, and repair damage."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.cli.epoch_advice import epoch_advice, lower
from kraft_wire.cli.errors import UsageError, complain, stop_writing
from kraft_wire.log.errors import LogError
from kraft_wire.log.files import META_PROPERTIES, PARTITION_FOLDER
from kraft_wire.storage.errors import NotFormatted
from kraft_wire.storage.inspection import NOT_WHOLE, Finding, Inspection, Status, inspect, metadata_dir_of
from kraft_wire.storage.recovery.offline_repair import repair_folder
from kraft_wire.storage.recovery.startup import Recovery

EXIT_WHOLE: Final = 0
EXIT_DAMAGED: Final = 1
EXIT_CANNOT_LOOK: Final = 2

_TOPIC_PARTITION: Final = re.compile(r"(?!__cluster_metadata-).+-[0-9]+")
_COLOURS: Final[dict[Status, str]] = {
    "whole": "green",
    "torn": "yellow",
    "covered": "yellow",
    "incomplete": "yellow",
    "newer": "yellow",
    "damaged": "red",
    "missing": "red",
}


class Report(msgspec.Struct):
    """The output of --json. ``repaired`` lists what --repair did, None without it. ``topic_partitions`` is
    the number of a broker's partitions in the folder, which aren't checked."""

    folder: str
    is_whole: bool
    inspection: Inspection
    repaired: list[str] | None = None
    topic_partitions: int = 0


def fsck(
    directory: Path,
    /,
    *,
    repair: bool = False,
    json: bool = False,
    lower_epoch: int | None = None,
    yes: bool = False,
) -> int:
    """Check every file of a controller's folder; with --repair, cut out the damage.

    Changes nothing without --repair and --lower-epoch. The folder of a running controller can be checked. The
    exit status is 0 if everything is whole, 1 if something is damaged, 2 if the folder can't be checked or
    changed, 3 if --yes is missing.

    For example:

        kraft-wire fsck /var/lib/kafka/metadata
        kraft-wire fsck /var/lib/kafka/metadata --json

    Parameters
    ----------
    directory
        The folder with meta.properties: metadata.log.dir, or the first of log.dirs.
    repair
        Move damaged bytes into files next to the log, and cut the log before them. No controller may be
        running. The node loses the records after the damage, committed ones possibly among them. A controller
        with peers needs no repair: it fetches them when it starts. One without peers loses them for good.
    json
        Print one JSON object instead of text.
    lower_epoch
        Lower the node's epoch to this one, after strangers or failed elections have raised it far. It must be
        above the epoch of every record. All controllers and brokers must be stopped, and all must get the
        same epoch. The files as they were are kept.
    yes
        Confirm that all this is so.
    """
    if lower_epoch is not None and (repair or json):
        raise UsageError("--lower-epoch goes without --repair and --json")
    if yes and lower_epoch is None:
        raise UsageError("--yes goes with --lower-epoch")
    problem = _why_no_folder(directory)
    if problem is not None:
        complain(f"{directory}: {problem}")
        return EXIT_CANNOT_LOOK
    try:
        metadata_dir = metadata_dir_of(directory.absolute())
        if lower_epoch is not None:
            return lower(metadata_dir, lower_epoch, is_confirmed=yes)
        return _fsck(metadata_dir, repair, json)
    except NotFormatted as error:
        complain(
            f"{error.path.parent}: neither {META_PROPERTIES} nor {PARTITION_FOLDER} is there: the folder is "
            "not formatted, or it is not a node's metadata folder"
        )
    except (LogError, OSError) as error:
        complain(_text(error))
    return EXIT_CANNOT_LOOK


def _why_no_folder(path: Path) -> str | None:
    if not path.exists():
        return "No such file or directory"
    return None if path.is_dir() else f"is a file; give the folder with {META_PROPERTIES}"


def _fsck(directory: Path, repair: bool, json: bool) -> int:
    before = inspect(directory)
    topic_partitions = sum(1 for path in directory.iterdir() if _TOPIC_PARTITION.fullmatch(path.name))
    report = Report(str(directory), before.is_whole, before, [] if repair else None, topic_partitions)
    if not repair or not before.is_repairable:
        _show(report, json)
        return EXIT_WHOLE if before.is_whole else EXIT_DAMAGED
    try:
        recovery = repair_folder(directory)
    except (LogError, OSError) as error:
        _show(report, json)
        complain(_text(error))
        return EXIT_DAMAGED
    after = inspect(directory)
    after.lost_offsets, after.history_lost_below = before.lost_offsets, before.history_lost_below
    repaired = list(_repaired(recovery))
    _show(Report(str(directory), after.is_whole, after, repaired, topic_partitions), json)
    return EXIT_WHOLE if after.is_whole else EXIT_DAMAGED


def _repaired(recovery: Recovery) -> Iterator[str]:
    for path in (*recovery.log_set_aside, *recovery.snapshots_set_aside):
        yield f"set aside: {path}"
    if recovery.corrupt_history is not None and recovery.corrupt_history.readable_tail is not None:
        yield f"the log now starts at offset {recovery.corrupt_history.readable_tail.offset}"
    for path in recovery.rebuilt:
        yield f"rebuilt: {path}"
    if recovery.quorum_state_set_aside is not None:
        yield f"set aside: {recovery.quorum_state_set_aside}"
    if recovery.torn_tail is not None:
        torn = recovery.torn_tail
        yield f"cut off: {torn.size_bytes} bytes of {torn.path}, which a crash left incomplete"
    if recovery.log_reset_to is not None:
        yield f"the log starts again at offset {recovery.log_reset_to}, the end of the newest whole snapshot"


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _show(report: Report, json: bool) -> None:
    """Print the report. What was found decides the exit status, also if nobody reads the output."""
    try:
        _print(report, json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        stop_writing()


def _print(report: Report, json: bool) -> None:
    if json:
        print(msgspec.json.encode(report).decode())
    elif sys.stdout is not None and sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False)
        for status, line in _lines(report):
            console.print(
                line, style=_COLOURS.get(status, "") if status else "", markup=False, soft_wrap=True
            )
    else:
        for _, line in _lines(report):
            print(line)


def _lines(report: Report) -> Iterator[tuple[Status | None, str]]:
    inspection = report.inspection
    yield None, inspection.folder
    if inspection.controller_pid is not None:
        yield None, f"Process {inspection.controller_pid} is working on it."
    if report.topic_partitions:
        yield (
            None,
            f"It is a broker's folder: only the cluster metadata is checked, not the "
            f"{report.topic_partitions} topic partitions.",
        )
    for finding in inspection.findings:
        yield finding.status, _finding_line(finding)
    for problem in inspection.problems:
        yield "damaged", f"damaged    {problem}"
    for line in report.repaired or ():
        yield None, line
    if inspection.lost_offsets is not None and (report.repaired or not _peer_count(inspection)):
        yield "damaged", _loss(inspection, *inspection.lost_offsets, is_cut=bool(report.repaired))
    if inspection.history_lost_below is not None:
        offset = inspection.history_lost_below
        yield (
            "covered",
            f"Only history below offset {offset} is lost: a snapshot holds the state at that offset.",
        )
    yield None, _verdict(report)
    advice = epoch_advice(inspection)
    if advice is not None:
        yield "damaged", advice


def _loss(inspection: Inspection, first: int, end: int, *, is_cut: bool) -> str:
    offsets = f"Offsets {first} to at most {end - 1}"
    if is_cut and _peer_count(inspection):
        return f"{offsets} were cut out; this node fetches them from the leader when it starts."
    verb = "were" if is_cut else "would be"
    return f"{offsets} {verb} lost by cutting the damage out; committed records may be among them."


def _finding_line(finding: Finding) -> str:
    holds = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in finding.holds.items() if value is not None
    )
    where = []
    if finding.position is not None:
        where.append(f"at byte {finding.position}")
    if finding.offset is not None:
        where.append(f"where offset {finding.offset} should be")
    problem = f"{', '.join(where)}: {finding.problem}" if where else finding.problem
    return f"{finding.status:<10} {finding.file}" + "".join(f"  {part}" for part in (holds, problem) if part)


def _verdict(report: Report) -> str:
    inspection = report.inspection
    if report.is_whole:
        return "Everything is whole."
    if report.repaired:
        return "Nothing else can be repaired."
    statuses = {finding.status for finding in inspection.findings} & NOT_WHOLE
    if "newer" in statuses:
        return "Use a newer release of kraft-wire, here and for the node: this one can't read all files."
    if statuses == {"incomplete"} and not inspection.problems:
        return "Nothing is damaged. The log is incomplete: the node fetches the rest from the leader."
    if statuses == {"torn"} and not inspection.problems:
        if inspection.is_floor_known:
            return "A crash tore off the end of the log, which was never flushed: the next start cuts it."
        return (
            "The end of the log is torn off: the next start cuts it. Without durable-floor it isn't known "
            "whether it had been flushed and acknowledged."
        )
    if not inspection.is_identity_whole:
        first = f"First restore or correct {META_PROPERTIES}"
        return f"{first}: without it no controller starts, and nothing can be repaired."
    if peers := _peer_count(inspection):
        return _peers_repair(inspection, peers)
    if inspection.controller_pid is not None:
        return f"Stop process {inspection.controller_pid} before you repair anything."
    if statuses <= {"torn", "covered"} and not inspection.problems:
        return f"The next start sets the damage aside, and so does: kraft-wire fsck {report.folder} --repair"
    return f"To cut the damage out and keep it aside: kraft-wire fsck {report.folder} --repair"


def _peer_count(inspection: Inspection) -> int:
    """Return the number of the voters other than this node; 0 if the folder doesn't name them."""
    node_id = next((f.holds.get("node_id") for f in inspection.findings if f.file == META_PROPERTIES), None)
    return len(set(inspection.voter_ids) - {node_id})


def _peers_repair(inspection: Inspection, peers: int) -> str:
    """Describe what the node does by itself: its peers have what it lost."""
    what = "repairs the damage by itself"
    if inspection.lost_offsets is not None:
        first, end = inspection.lost_offsets
        what = f"fetches offsets {first}–{end - 1} from the leader" if first < end else what
    elif inspection.problems:
        what = "fetches what it lacks from the leader"
    verb = "start" if inspection.controller_pid is None else "restart"
    lost = "If most voters are gone for good, don't: see `kraft-wire quorum recover`."
    return f"This node has {peers} peer{'s' if peers > 1 else ''}: {verb} it, it {what}. {lost}"
