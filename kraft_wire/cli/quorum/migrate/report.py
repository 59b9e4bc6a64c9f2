"""The report of ``quorum migrate --check``, as JSON and as text. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Controller,
    Finding,
    Node,
    Quorum,
    State,
    Step,
    Target,
    Verdict,
)
from kraft_wire.cli.quorum.migrate.releases import release_text

TARGETS: dict[Target, str] = {
    "dynamic": "voters in the log, without controller.quorum.voters",
    "kraft-wire": "kraft-wire on all controllers",
    "java": "Java on all controllers",
}


class NodeReport(msgspec.Struct):
    """A controller or a broker. ``software`` is "unknown" if it doesn't answer."""

    name: str
    state: State
    software: str
    role: str
    address: str | None
    lag: int | None
    file: str | None
    findings: list[Finding]


class MigrationReport(msgspec.Struct):
    """The output of --json. ``next`` is None if nothing is left to do. ``again`` is this command's line."""

    cluster_id: str
    leader_id: int
    kraft_version: int
    target: Target
    is_blocked: bool
    is_reached: bool
    nodes: list[NodeReport]
    findings: list[Finding]
    next: Step | None
    again: str


def report_of(quorum: Quorum, target: Target, verdict: Verdict, again: str) -> MigrationReport:
    """Return the report. While something is in the way, the next step is to clear it."""
    nodes: Sequence[Node] = (*quorum.controllers, *quorum.brokers)
    names = {node.name for node in nodes if node.name in verdict.states}
    return MigrationReport(
        cluster_id=quorum.cluster_id,
        leader_id=quorum.leader_id,
        kraft_version=quorum.kraft_version,
        target=target,
        is_blocked=verdict.is_blocked,
        is_reached=verdict.is_reached,
        nodes=[_node_report(node, verdict) for node in nodes if node.name in names],
        findings=[finding for finding in verdict.findings if finding.node not in names],
        next=next_step(verdict),
        again=again,
    )


def next_step(verdict: Verdict) -> Step | None:
    """Return what to do now: what is in the way comes first."""
    for finding in verdict.findings:
        if finding.kind == "in the way":
            commands = (finding.command,) if finding.command else ()
            return Step(finding.node, f"{finding.what}. {_sentence(finding.do)}", commands)
    return verdict.step


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _node_report(node: Node, verdict: Verdict) -> NodeReport:
    return NodeReport(
        name=node.name,
        state=verdict.states[node.name],
        software=_software(node),
        role=_role(node),
        address=node.address or None,
        lag=node.lag if isinstance(node, Controller) else None,
        file=node.file.path if node.file is not None else None,
        findings=[finding for finding in verdict.findings if finding.node == node.name],
    )


def _software(node: Node) -> str:
    if not isinstance(node, Controller):
        return release_text(node.features)
    return release_text(node.features) if node.software == "Java" else node.software


def _role(node: Node) -> str:
    if not isinstance(node, Controller):
        return "broker"
    if node.is_leader:
        return "leader"
    if node.is_voter:
        return "voter"
    return "observer" if node.fetches else "registered, doesn't run"


# Text.


def text_of(report: MigrationReport) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"Cluster        {report.cluster_id}"
    yield f"Leader         {report.leader_id}"
    yield f"kraft.version  {report.kraft_version}"
    yield f"Wanted         {TARGETS[report.target]}"
    for node in report.nodes:
        yield ""
        yield f"{node.name}: {node.state}"
        yield f"  {', '.join(_details(node))}"
        for finding in node.findings:
            yield from _finding_lines(finding, "")
    if report.findings:
        yield ""
        yield "the cluster"
        for finding in report.findings:
            yield from _finding_lines(finding, f"{finding.node}: " if finding.node else "")
    yield ""
    yield from _conclusion(report)


def _details(node: NodeReport) -> Iterator[str]:
    yield node.software if node.software != "unknown" else "unknown software"
    if node.role != "broker":
        yield node.role
    if node.lag is not None:
        yield f"lags by {node.lag}"
    yield f"at {node.address}" if node.address else "address unknown"
    if node.file:
        yield node.file


def _finding_lines(finding: Finding, whose: str) -> Iterator[str]:
    yield f"  {whose}{finding.kind}: {finding.what}"
    if finding.do:
        yield f"    {finding.do}"
    if finding.command:
        yield f"    {finding.command}"


def _conclusion(report: MigrationReport) -> Iterator[str]:
    if report.next is None:
        yield "Nothing is left to do."
        return
    counts = _counts(report)
    yield counts
    where = "" if report.next.node == CLUSTER else f" on the machine of {report.next.node}"
    yield f"{'First' if report.is_blocked else 'Next'}{where}: {report.next.why}"
    for command in report.next.commands:
        yield f"  {command}"
    yield "Then ask again:"
    yield f"  {report.again}"


def _counts(report: MigrationReport) -> str:
    found = [*report.findings, *(finding for node in report.nodes for finding in node.findings)]
    blocking = sum(finding.kind == "in the way" for finding in found)
    unknown = sum(finding.kind == "not known" for finding in found)
    text = f"In the way: {blocking}." if blocking else "Nothing is in the way."
    return f"{text} Not known: {unknown}." if unknown else text
