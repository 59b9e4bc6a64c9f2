"""The report of ``quorum status`` without a leader: what controllers say of themselves. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kraft_wire.cli.quorum.status.report import CONTROLLER, ReplicaRow, StatusReport, known, latest_leader
from kraft_wire.client.survey import NodeAnswer
from kraft_wire.wire.address import Address


def report_of_answers(answers: Sequence[NodeAnswer], auto_join: Mapping[int, bool] = {}) -> StatusReport:
    """Return the report of what controllers say of themselves, whether they lead or not."""
    able = [answer for answer in answers if not answer.problem]
    latest = max(able, key=lambda answer: (answer.epoch, answer.leads), default=None)
    report = StatusReport()
    if latest is not None:
        report.leader_epoch = latest.epoch
        report.leader_id = latest.leader_id if latest.leads else None
        report.last_known_leader_id = latest_leader((a.epoch, a.leader_id) for a in able)
        report.kraft_version = latest.kraft_version
        report.cluster_id = next((a.cluster_id for a in able if a.cluster_id is not None), None)
    for answer in answers:
        if answer.problem:
            report.notes.append(f"{answer.address} can't be asked: {answer.problem}")
        else:
            report.notes.append(f"{answer.address} {_says(answer)}")
    if report.leader_id is None:
        report.replicas = list(_rows_of_registered(answers, auto_join))
        report.notes += _moved_notes(able)
    return report


def registered_among(answers: Sequence[NodeAnswer]) -> Mapping[int, Address]:
    """Return the controllers that the latest of these answers names."""
    named = [answer for answer in answers if answer.registrations is not None]
    latest = max(named, key=lambda answer: answer.epoch, default=None)
    return {} if latest is None else latest.registrations or {}


def _rows_of_registered(answers: Sequence[NodeAnswer], auto_join: Mapping[int, bool]) -> Iterator[ReplicaRow]:
    """Yield a row for each registered controller. Without a leader nobody says who votes."""
    asked = {answer.address: answer for answer in answers}
    for id, address in sorted(registered_among(answers).items()):
        row = ReplicaRow(id, endpoints=[str(address)], role=CONTROLLER, registered=True)
        row.auto_join = auto_join.get(id)
        answer = asked.get(address)
        if answer is not None:
            row.epoch, row.is_silent = known(answer.epoch), bool(answer.problem)
        yield row


def _moved_notes(answers: Sequence[NodeAnswer]) -> Iterator[str]:
    """Say what to do if all voters have moved: their log names addresses where nobody is any more."""
    asked = {answer.address for answer in answers}
    named = {address for answer in answers for address in (answer.registrations or {}).values()}
    named |= {answer.leader_address for answer in answers if answer.leader_address is not None}
    if named and not named & asked:
        yield (
            "no controller answered at an address that these controllers have for each other: if the "
            "addresses of all voters have changed, see `kraft-wire quorum recover plan --endpoints`"
        )


def _says(answer: NodeAnswer) -> str:
    if answer.leads:
        leader = f"leads as node {answer.leader_id}, epoch {answer.epoch}"
    elif answer.leader_id < 0:
        leader = "knows no leader" if answer.epoch < 0 else f"knows no leader, epoch {answer.epoch}"
    else:
        where = "" if answer.leader_address is None else f", at {answer.leader_address}"
        leader = f"remembers node {answer.leader_id} as leader of epoch {answer.epoch}{where}"
    level = (
        "kraft.version unknown" if answer.kraft_version is None else f"kraft.version {answer.kraft_version}"
    )
    if answer.registrations is None:
        registered = "registrations unknown"
    else:
        found = (f"{node_id} at {address}" for node_id, address in sorted(answer.registrations.items()))
        registered = f"registered controllers: {', '.join(found) or 'none'}"
    return f"{leader}; {level}; {registered}"
