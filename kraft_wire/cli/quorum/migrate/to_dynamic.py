"""From controller.quorum.voters to voters in the log: kraft.version 0 to 1, then every node's file. No I/O.

After the upgrade the key does harm. Java wants the controllers that the leader's file names to support every
feature, also those that were removed (QuorumFeatures). A node that starts with an empty log looks for the
voters at the old addresses. And folders can't be formatted for dynamic voters while the file has the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_wire.cli.quorum.migrate import commands
from kraft_wire.cli.quorum.migrate.commands import BOOTSTRAP_KEY, VOTERS_KEY
from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Broker,
    Controller,
    Finding,
    Node,
    Quorum,
    Software,
    State,
    Step,
    Verdict,
    not_known,
    note,
)
from kraft_wire.cli.quorum.migrate.properties import (
    Properties,
    bootstrap_servers,
    has_static_voters,
    identity_findings,
    sources,
)
from kraft_wire.cli.quorum.migrate.upgrade import upgrade_findings
from kraft_wire.cli.quorum.migrate.voters import in_order, readiness, restart_note


def judge(quorum: Quorum) -> Verdict:
    """Judge a quorum that is to get dynamic voters."""
    common = [
        *readiness(quorum, lambda each: commands.start(each, each.software)),
        *identity_findings(quorum),
    ]
    return _upgrade(quorum, common) if quorum.kraft_version == 0 else _drop_static_voters(quorum, common)


def _upgrade(quorum: Quorum, found: list[Finding]) -> Verdict:
    found += upgrade_findings(quorum)
    found.append(note(CLUSTER, "there is no way back from kraft.version 1 to 0"))
    states: dict[str, State] = {node.name: "to do" for node in (*quorum.controllers, *quorum.brokers)}
    lines = (*commands.first_clear(found), commands.upgrade_kraft_version(quorum))
    return Verdict(
        tuple(found), states, Step(CLUSTER, "the voters go into the log; nothing is restarted", lines)
    )


def _drop_static_voters(quorum: Quorum, found: list[Finding]) -> Verdict:
    nodes: list[Node] = [*in_order(quorum), *quorum.brokers]
    states = {node.name: _state(quorum, node) for node in nodes}
    found += restart_note(quorum)
    found += _unread(quorum)
    for node in nodes:
        found += _bootstrap_findings(quorum, node)
        if states[node.name] == "not known":
            found.append(_unknown(node))
    return Verdict(tuple(found), states, _first_step(quorum, nodes, states))


def _first_step(quorum: Quorum, nodes: Sequence[Node], states: dict[str, State]) -> Step | None:
    for node in nodes:
        if states[node.name] == "to do":
            return Step(node.name, "it stops using static voters", tuple(_lines(quorum, node)))
    for node in nodes:
        if states[node.name] == "not known":
            return Step(node.name, "whether it uses static voters isn't known", (_look(node),))
    return None


def _state(quorum: Quorum, node: Node) -> State:
    """Return how far a node is. What it runs with and what it will start with must both be right."""
    known = sources(node)
    if any(_is_static(quorum, source.properties) for source in known):
        return "to do"
    if known:
        return "done"
    return "as it is" if _is_gone(node) else "not known"


def _is_static(quorum: Quorum, properties: Properties) -> bool:
    return has_static_voters(properties) or not _has_bootstrap_servers(quorum, properties)


def _has_bootstrap_servers(quorum: Quorum, properties: Properties) -> bool:
    """Whether at least one of the node's bootstrap servers is a controller."""
    return any(not quorum.bootstrap_problems.get(entry) for entry in bootstrap_servers(properties))


def _is_gone(node: Node) -> bool:
    if isinstance(node, Controller):
        return not node.is_voter and not node.fetches
    return isinstance(node, Broker) and node.is_fenced


def _lines(quorum: Quorum, node: Node) -> Iterator[str]:
    """Return the lines that take static voters from a node: those of its file, then a restart."""
    properties = sources(node)[0].properties
    if _is_static(quorum, properties):
        bootstrap = None
        if not _has_bootstrap_servers(quorum, properties):
            bootstrap = commands.addresses_of(quorum.voters)
        yield from commands.drop_static_voters(node, bootstrap)
    software: Software = node.software if isinstance(node, Controller) else "Java"
    yield commands.stop(node)
    yield commands.start(node, software)


def _look(node: Node) -> str:
    return f"# look for {VOTERS_KEY} in the properties file of {node.name}, or give it with --config"


def _unknown(node: Node) -> Finding:
    why = f"it doesn't tell its settings ({node.problem})" if node.problem else "it doesn't tell its settings"
    return not_known(
        node.name,
        f"whether it uses {VOTERS_KEY}: {why}",
        "look into its properties file, or give it with --config",
    )


def _bootstrap_findings(quorum: Quorum, node: Node) -> Iterator[Finding]:
    for source in sources(node)[:1]:
        for entry in bootstrap_servers(source.properties):
            problem = quorum.bootstrap_problems.get(entry)
            if problem:
                yield note(
                    node.name,
                    f"{source.text}: {BOOTSTRAP_KEY} names {entry}, where no controller of this cluster "
                    f"answers: {problem}",
                    f"name the voters: {BOOTSTRAP_KEY}={commands.addresses_of(quorum.voters)}",
                )


def _unread(quorum: Quorum) -> Iterator[Finding]:
    problem = quorum.unread or quorum.unreadable
    if problem:
        text = f"which brokers there are, because the metadata can't be read: {problem}"
        yield not_known(CLUSTER, text, f"remove {VOTERS_KEY} from the files of all brokers")
