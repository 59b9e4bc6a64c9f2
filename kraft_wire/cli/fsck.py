"""``kraft-wire fsck``: what of a node's folder is whole, and what is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.log.files import META_PROPERTIES
from kraft_wire.storage.inspection import NOT_WHOLE, Finding, Inspection, Status, inspect, metadata_dir_of
from kraft_wire.storage.mending import mend
from kraft_wire.storage.opening import Recovery

EXIT_WHOLE: Final = 0
EXIT_DAMAGED: Final = 1
EXIT_CANNOT_LOOK: Final = 2

_COLOURS: Final[dict[Status, str]] = {
    "whole": "green",
    "torn": "yellow",
    "covered": "yellow",
    "incomplete": "yellow",
    "damaged": "red",
    "missing": "red",
}


class Report(msgspec.Struct):
    """What --json prints. ``repaired``: what --repair set aside, and where; None without it."""

    folder: str
    is_whole: bool
    inspection: Inspection
    repaired: list[str] | None = None


def fsck(directory: Path, /, *, repair: bool = False, json: bool = False) -> int:
    """Say of every file of a controller's folder whether it is whole; with --repair, cut out what is not.

    Without --repair nothing is changed, and the folder of a running controller may be looked into. Ends with
    exit code 0 where everything is whole, 1 where something is damaged, 2 where it can't be looked at.

    Parameters
    ----------
    directory
        The folder with meta.properties: metadata.log.dir, or the first of log.dirs.
    repair
        Set what is damaged aside, beside the log, and cut the log in front of it. No controller may run.
        Records that come after the damage are lost to this node, and committed ones may be among them: a
        controller that has peers fetches them from there, one that is alone has lost them.
    json
        Print one JSON object instead of text.
    """
    try:
        return _fsck(metadata_dir_of(directory.absolute()), repair, json)
    except (LogError, OSError) as error:
        print(f"kraft-wire: {_text(error)}", file=sys.stderr)
        return EXIT_CANNOT_LOOK


def _fsck(directory: Path, repair: bool, json: bool) -> int:
    before = inspect(directory)
    if not repair or not before.is_repairable:
        _show(Report(str(directory), before.is_whole, before, [] if repair else None), json)
        return EXIT_WHOLE if before.is_whole else EXIT_DAMAGED
    try:
        recovery = mend(directory)
    except (LogError, OSError) as error:
        _show(Report(str(directory), False, before, []), json)
        print(f"kraft-wire: {_text(error)}", file=sys.stderr)
        return EXIT_DAMAGED
    after = inspect(directory)
    after.lost_offsets, after.history_lost_below = before.lost_offsets, before.history_lost_below
    _show(Report(str(directory), after.is_whole, after, list(_repaired(recovery))), json)
    return EXIT_WHOLE if after.is_whole else EXIT_DAMAGED


def _repaired(recovery: Recovery) -> Iterator[str]:
    for path in (*recovery.log_set_aside, *recovery.snapshots_set_aside):
        yield f"set aside: {path}"
    if recovery.corrupt_history is not None and recovery.corrupt_history.rest is not None:
        yield f"the log begins at offset {recovery.corrupt_history.rest.offset}"
    for path in recovery.made_anew:
        yield f"made anew: {path}"
    if recovery.quorum_state_set_aside is not None:
        yield f"set aside: {recovery.quorum_state_set_aside}"
    if recovery.torn_tail is not None:
        torn = recovery.torn_tail
        yield f"cut off: {torn.size_bytes} bytes of {torn.path}, which a crash left incomplete"
    if recovery.log_reset_to is not None:
        yield f"the log begins anew at offset {recovery.log_reset_to}, the end of the newest whole snapshot"


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _show(report: Report, json: bool) -> None:
    if json:
        print(msgspec.json.encode(report).decode())
    elif sys.stdout.isatty():
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
        yield None, f"A controller is running on it, process {inspection.controller_pid}."
    for finding in inspection.findings:
        yield finding.status, _finding_line(finding)
    for problem in inspection.problems:
        yield "damaged", f"damaged    {problem}"
    for line in report.repaired or ():
        yield None, line
    if inspection.lost_offsets is not None:
        first, end = inspection.lost_offsets
        verb = "were" if report.repaired else "would be"
        lost = f"Offsets {first} to at most {end - 1} {verb} lost by cutting the damage out"
        yield "damaged", f"{lost}; committed records may be among them."
    if inspection.history_lost_below is not None:
        offset = inspection.history_lost_below
        yield (
            "covered",
            f"Nothing is lost but history below offset {offset}: a snapshot holds what it came to.",
        )
    yield None, _verdict(report)


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
    if report.is_whole:
        return "Everything is whole."
    if report.repaired:
        return "This is what could be repaired."
    statuses = {finding.status for finding in report.inspection.findings} & NOT_WHOLE
    if statuses == {"incomplete"} and not report.inspection.problems:
        return "Nothing is damaged; it is incomplete, and gets what it lacks from the leader."
    if statuses == {"torn"} and not report.inspection.problems:
        if report.inspection.is_floor_known:
            return "A crash tore off the log's end, which was never flushed: the next start cuts it."
        return (
            "The log's end is torn off, and the next start cuts it. Without durable-floor nobody knows "
            "whether it had been flushed and acknowledged."
        )
    if report.inspection.controller_pid is not None:
        return "Stop the controller before anything is repaired."
    if not report.inspection.is_identity_whole:
        first = f"First restore or correct {META_PROPERTIES}"
        return f"{first}: without it no controller starts, and nothing can be repaired."
    if statuses <= {"torn", "covered"} and not report.inspection.problems:
        return f"The next start sets the damage aside, and so does: kraft-wire fsck {report.folder} --repair"
    return f"To cut the damage out and keep it aside: kraft-wire fsck {report.folder} --repair"
