"""The report of ``quorum status --from-dir``: what folders say of their quorum. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from kraft_wire.cli.quorum.status.report import ReplicaRow, StatusReport, history_rows, known, latest_leader
from kraft_wire.cli.quorum.status.split import end_of_split
from kraft_wire.raft.recovery.evidence import FolderEvidence, KnownVoter, url_of
from kraft_wire.raft.recovery.ranking import committed_difference, first_difference


def report_of_folders(found: Sequence[FolderEvidence]) -> StatusReport:
    """Return the report of folders of one cluster. The voters are those of the folder with the latest log."""
    latest = max(found, key=lambda folder: (folder.last_epoch, folder.log_end_offset))
    voters = {voter.id: voter for voter in latest.voters}
    report = StatusReport(
        cluster_id=latest.cluster_id,
        last_known_leader_id=latest_leader((folder.quorum_epoch, folder.leader_id) for folder in found),
        leader_epoch=max(folder.highest_epoch for folder in found),
        kraft_version=latest.kraft_version,
        high_watermark=max(folder.committed_offset for folder in found) or None,
        history=history_rows(latest.history),
    )
    report.notes = list(_copies(found))
    report.split = _split_between(found)
    if report.split:
        report.high_watermark = None
    for folder in found:
        report.replicas.append(_folder_row(folder, latest, voters.get(folder.node_id)))
        problems = [*folder.problems, *filter(None, (folder.newer,))]
        report.notes += [f"{folder.folder}: {problem}" for problem in problems]
    asked = {folder.node_id for folder in found}
    for voter in latest.voters:
        if voter.id not in asked:
            row = ReplicaRow(
                voter.id, voter.directory_id, [url_of(point) for point in voter.endpoints], "voter"
            )
            row.registered = voter.id in latest.registrations
            report.replicas.append(row)
    if not latest.voters:
        named = ", ".join(map(str, latest.static_voter_ids)) or "unknown"
        report.notes.append(f"the log names no voters: controller.quorum.voters does ({named})")
    for node_id, endpoints in sorted(latest.registrations.items()):
        if node_id not in voters and latest.voters:
            urls = ",".join(url_of(point) for point in endpoints)
            report.notes.append(f"controller {node_id} is registered and is no voter ({urls})")
    return report


def _split_between(found: Sequence[FolderEvidence]) -> str:
    """Return how the committed records of two folders differ; empty if they don't."""
    for one, other in combinations(found, 2):
        offset = committed_difference(one, other)
        if offset is not None:
            return (
                f"the committed records in {one.folder} and {other.folder} differ from offset {offset} on: "
                "two quorums went on, each without the other. "
                + end_of_split(max(one.kraft_version, other.kraft_version))
            )
    return ""


def _copies(found: Sequence[FolderEvidence]) -> Iterator[str]:
    """Warn of folders of one replica."""
    for one, other in combinations(found, 2):
        if one.directory_id and (one.node_id, one.directory_id) == (other.node_id, other.directory_id):
            yield (
                f"{one.folder} and {other.folder} are copies: both are node {one.node_id} with directory "
                f"{one.directory_id}. Run a controller on one of them only, or both vote as one"
            )


def _folder_row(folder: FolderEvidence, latest: FolderEvidence, voter: KnownVoter | None) -> ReplicaRow:
    row = ReplicaRow(folder.node_id, folder.directory_id or None, source=folder.folder)
    points = latest.registrations.get(folder.node_id, ()) if voter is None else voter.endpoints
    row.endpoints = [url_of(point) for point in points]
    is_voter = folder.node_id in folder.static_voter_ids or voter is not None
    row.role = "voter" if is_voter else "no voter"
    if voter is not None and folder.directory_id and voter.directory_id != folder.directory_id:
        row.role = "voter with another directory"
    row.pid, row.last_seen = folder.controller_pid, _last_seen(folder)
    row.epoch = known(folder.quorum_epoch)
    row.log_end_offset = folder.log_end_offset
    if first_difference(latest, folder) is None:
        row.lag = latest.log_end_offset - folder.log_end_offset
    row.registered = folder.node_id in latest.registrations
    return row


def _last_seen(folder: FolderEvidence) -> str | None:
    if folder.leader_id == folder.node_id:
        return "led"
    if folder.leader_id >= 0:
        return f"followed {folder.leader_id}"
    return f"voted for {folder.voted_id}" if folder.voted_id >= 0 else None
