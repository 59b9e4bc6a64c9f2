"""Say in the report of ``quorum status`` that a cluster is split, and how it becomes one again. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.cli.quorum.status.report import LeaderRow, StatusReport
from kraft_wire.client.survey import NodeAnswer


def note_leaders(report: StatusReport, leaders: Sequence[NodeAnswer]) -> None:
    """Note the controllers that lead by their own account. Several make the cluster a split one."""
    report.leaders = [_leader_row(answer) for answer in leaders]
    if len(leaders) > 1:
        named = "; ".join(
            f"node {row.id} at {row.address} in epoch {row.epoch}, with the voters "
            + ", ".join(map(str, row.voters))
            for row in report.leaders
        )
        report.split = f"the cluster is split: {len(leaders)} controllers lead: {named}. " + end_of_split(
            report.kraft_version
        )


def end_of_split(kraft_version: int | None) -> str:
    """Say how a split cluster becomes one again. Epochs don't tell the sides apart: old voters that hear of
    the recovered one's epoch go beyond it."""
    back = (
        "Bring them back one at a time, as `kraft-wire quorum recover plan` says for static voters"
        if kraft_version == 0
        else "Format them with --no-initial-controllers, and add them to the side that is kept"
    )
    return (
        "Keep one side. After a recovery, keep the recovered one: its voters are those of the plan, and the "
        "folder has recovery-plan. Stop the controllers of the other side, and move their folders away; if a "
        f"node is also a broker, move only its folder __cluster_metadata-0. {back}. What only the stopped "
        "side has is lost then"
    )


def _leader_row(answer: NodeAnswer) -> LeaderRow:
    described = answer.description
    voters = [] if described is None else [voter.id for voter in described.voters]
    return LeaderRow(answer.leader_id, answer.epoch, str(answer.address), voters)
