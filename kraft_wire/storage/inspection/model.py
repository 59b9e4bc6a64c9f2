"""Hold what an inspection of a folder found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from kraft_wire.log.files import LOG_SUFFIX, META_PROPERTIES, QUORUM_STATE
from kraft_wire.log.snapshot import SUFFIX as SNAPSHOT_SUFFIX
from kraft_wire.storage.log.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.recovery.vote_guards import NO_VOTE_UP_TO

Status = Literal[
    "whole",
    "torn",
    "covered",
    "incomplete",
    "damaged",
    "missing",
    "unchecked",
    "newer",
    "aside",
    "leftover",
    "unknown",
]
"""The state of a file. covered: damaged, and a whole snapshot holds the state that its records led to.
incomplete: the log lacks records that it had once, and gets them from the leader. newer: it holds what this
release doesn't know, which is no damage."""
Contents = dict[str, int | str | None]
NOT_WHOLE: Final = frozenset({"torn", "covered", "incomplete", "damaged", "missing", "newer"})


_EPOCH_OF_RECORDS: Final = {LOG_SUFFIX: "last_epoch", SNAPSHOT_SUFFIX: "epoch"}
_EPOCH_OF_ELECTIONS: Final = {QUORUM_STATE: "epoch", DURABLE_FLOOR: "quorum_epoch", NO_VOTE_UP_TO: "number"}
"""By suffix or name of a file: what it holds that is an epoch."""


class Finding(msgspec.Struct, omit_defaults=True):
    """The state of one file. ``position`` and ``offset`` are those of the first damage."""

    file: str
    status: Status
    problem: str = ""
    position: int | None = None
    offset: int | None = None
    holds: Contents = {}


class Inspection(msgspec.Struct):
    """The state of a folder.

    ``lost_offsets``: the offsets that cutting the damage out would lose, from the first up to, but not
    including, the second. ``history_lost_below``: cutting the damage out loses only the records below this
    offset, whose outcome a snapshot holds. ``is_floor_known``: durable-floor tells records that were never
    flushed from those that were. ``problems`` are those of the folder as a whole. ``voter_ids`` are the last
    voters that a file names, none if no file does. ``last_record_epoch`` is the highest epoch of the log's
    records and of the snapshots, ``known_epoch`` the highest that any file names; 0 if there is none.
    """

    folder: str
    controller_pid: int | None
    findings: list[Finding] = []
    problems: list[str] = []
    lost_offsets: tuple[int, int] | None = None
    history_lost_below: int | None = None
    is_floor_known: bool = False
    voter_ids: list[int] = []
    last_record_epoch: int = 0
    known_epoch: int = 0

    @property
    def is_whole(self) -> bool:
        return not self.problems and not any(finding.status in NOT_WHOLE for finding in self.findings)

    def note_epochs(self) -> None:
        """Find the highest epochs in the findings."""
        names = _EPOCH_OF_RECORDS | _EPOCH_OF_ELECTIONS
        found = [(Path(f.file), f.holds) for f in self.findings]
        self.last_record_epoch = _highest(found, _EPOCH_OF_RECORDS)
        self.known_epoch = _highest(found, names)

    @property
    def is_sole_voter(self) -> bool:
        """Whether this node is the only voter that the files name."""
        node_ids = [f.holds.get("node_id") for f in self.findings if f.file == META_PROPERTIES]
        return self.voter_ids == node_ids

    @property
    def is_identity_whole(self) -> bool:
        """Whether meta.properties is whole: no other file says whose folder this is."""
        return not any(f.file == META_PROPERTIES and f.status in NOT_WHOLE for f in self.findings)

    @property
    def is_repairable(self) -> bool:
        """Whether a repair could change anything."""
        statuses = {finding.status for finding in self.findings}
        return bool(self.problems or statuses & (NOT_WHOLE - {"incomplete", "newer"}))


def _highest(found: Sequence[tuple[Path, Contents]], names: Mapping[str, str]) -> int:
    epochs = (holds.get(names.get(path.suffix) or names.get(path.name) or "") for path, holds in found)
    return max((epoch for epoch in epochs if isinstance(epoch, int)), default=0)


class FindingList:
    """The findings of one folder, in the order in which they are made. Paths are shown relative to
    ``root``."""

    def __init__(self, root: Path, findings: list[Finding]) -> None:
        self._root = root
        self._findings = findings

    def add(self, path: Path, status: Status, problem: str = "", **holds: int | str | None) -> Finding:
        finding = Finding(self._name(path), status, problem, holds=holds)
        self._findings.append(finding)
        return finding

    def change(self, path: Path, problem: str, status: Status = "damaged") -> None:
        """Correct the finding of a file that was reported as whole."""
        for finding in self._findings:
            if finding.file == self._name(path):
                finding.status, finding.problem = status, problem

    def status_of(self, path: Path) -> Status | None:
        name = self._name(path)
        return next((finding.status for finding in self._findings if finding.file == name), None)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._root))
