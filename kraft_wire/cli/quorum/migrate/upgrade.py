"""The conditions of raising kraft.version from 0 to 1 (KIP-853). No I/O.

They are those of Kafka's FeatureControlManager.reasonNotSupported and
LeaderState.maybeAppendUpgradedKRaftVersion, and of our ``controller/cluster/update_features.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraft_wire.cli.quorum.migrate import commands
from kraft_wire.cli.quorum.migrate.commands import VOTERS_KEY
from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Broker,
    Controller,
    Finding,
    Quorum,
    in_the_way,
    not_known,
    note,
)
from kraft_wire.cli.quorum.migrate.properties import sources, static_voter_ids
from kraft_wire.cli.quorum.migrate.releases import (
    FIRST_TO_UPGRADE_KRAFT_VERSION,
    highest_metadata_version,
    release_text,
    supports,
)
from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.metadata.features.metadata_version import (
    FEATURE_NAME,
    controller_registration_supported,
    unregister_controller_supported,
)

ASK_AGAIN: Final = (
    "start the voters that don't run, and ask again in some seconds: voters describe themselves after an "
    "election"
)


def upgrade_findings(quorum: Quorum) -> list[Finding]:
    """Find what keeps kraft.version at 0. The leader's own refusal counts if nothing else explains it."""
    found = [*_feature_findings(quorum), *_voter_list_findings(quorum), *_unread(quorum)]
    if quorum.refusal and not any(finding.kind == "in the way" for finding in found):
        text = f"the leader refuses kraft.version 1: {quorum.refusal}"
        found.append(in_the_way(CLUSTER, text, ASK_AGAIN))
    if quorum.refusal is None:
        text = "whether the leader accepts kraft.version 1: it didn't answer when it was asked as a trial"
        found.append(not_known(CLUSTER, text, "run this command again"))
    return found


def _feature_findings(quorum: Quorum) -> Iterator[Finding]:
    for controller in quorum.controllers:
        yield from _controller_findings(quorum, controller)
        yield from _directory_findings(controller)
        yield from _address_findings(controller)
    for broker in quorum.brokers:
        if not supports(broker.features, KRAFT_VERSION, 1):
            yield _broker_finding(quorum, broker)


def _controller_findings(quorum: Quorum, controller: Controller) -> Iterator[Finding]:
    registered = controller.registered_features
    if registered and not supports(registered, KRAFT_VERSION, 1):
        text = "it is registered with features that don't have kraft.version 1"
        yield in_the_way(controller.name, text, *_without_veto(quorum, controller))
    if not controller.is_voter:
        return
    can_register = controller_registration_supported(quorum.levels.get(FEATURE_NAME, 0))
    if controller.is_registered is False and can_register:
        text = "it has not registered, so the metadata doesn't know whether it supports kraft.version 1"
        yield in_the_way(controller.name, text, "wait some seconds after its start; then see its log")
    highest = highest_metadata_version(controller.features)
    if highest is None:
        text = "its release isn't known: it didn't answer, and hasn't registered"
        yield not_known(controller.name, text, "it must run, and be Kafka 4.1 or newer, or kraft-wire")
    elif highest < FIRST_TO_UPGRADE_KRAFT_VERSION:
        yield in_the_way(
            controller.name,
            f"it is {release_text(controller.features)}: before 4.1 a voter doesn't tell its directory id "
            "while kraft.version is 0, and a leader accepts the upgrade without carrying it out",
            "upgrade it to Kafka 4.1 or newer, or replace it by kraft-wire",
        )


def _without_veto(quorum: Quorum, controller: Controller) -> tuple[str, str]:
    """Return what ends the veto of a controller's registration."""
    if controller.is_voter or controller.fetches:
        return "upgrade it to Kafka 4.1 or newer", ""
    if unregister_controller_supported(quorum.levels.get(FEATURE_NAME, 0)):
        line = commands.our_tool(quorum, "quorum", "remove", str(controller.id))
        return "it doesn't run: remove its registration", line
    line = commands.our_tool(quorum, "registrations", "refresh", "--id", str(controller.id))
    return "it doesn't run: register for it the features that the leader supports", line


def _directory_findings(controller: Controller) -> Iterator[Finding]:
    folder = controller.file.folder if controller.file is not None else None
    is_known = folder is not None and folder.is_here and not folder.problem
    if folder is not None and is_known and controller.is_voter and not folder.directory_id:
        yield in_the_way(
            controller.name,
            f"{folder.path}/meta.properties has no directory.id: it was formatted before Kafka 3.7",
            "start it once with Kafka 3.7 or newer, which adds the id",
        )


def _address_findings(controller: Controller) -> Iterator[Finding]:
    """Compare the address in controller.quorum.voters with the one that a voter advertises, which the upgrade
    writes to the log."""
    if not controller.is_voter or not controller.advertised:
        return
    text = f"after the upgrade it is reached at {controller.advertised}, which it advertises"
    if controller.advertised_problem:
        yield in_the_way(
            controller.name,
            f"{text}, not at {controller.address}; there it doesn't answer: {controller.advertised_problem}",
            "set advertised.listeners in its properties file to what all nodes reach, and restart it",
        )
    else:
        yield note(controller.name, f"{text}, not at {controller.address}; here it answers there")


def _broker_finding(quorum: Quorum, broker: Broker) -> Finding:
    text = f"it is {release_text(broker.features)}, and doesn't support kraft.version 1"
    if broker.is_fenced:
        line = commands.unregister_broker(quorum, broker)
        return in_the_way(broker.name, f"{text}; it is fenced", "if it is gone for good, unregister it", line)
    return in_the_way(broker.name, text, "upgrade it to Kafka 3.9 or newer")


def _voter_list_findings(quorum: Quorum) -> Iterator[Finding]:
    ids = {voter.id for voter in quorum.voters}
    for node in (*quorum.controllers, *quorum.brokers):
        for source in sources(node):
            named = static_voter_ids(source.properties)
            if named and named != ids:
                yield in_the_way(
                    node.name,
                    f"{source.text}: {VOTERS_KEY} names {_ids(named)}, the leader's voters are {_ids(ids)}",
                    f"make {VOTERS_KEY} the same on all nodes, and restart this one",
                )


def _ids(ids: set[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or "none"


def _unread(quorum: Quorum) -> Iterator[Finding]:
    problem = quorum.unread or quorum.unreadable
    if problem:
        text = f"the brokers' features aren't known, because the metadata can't be read: {problem}"
        yield not_known(CLUSTER, text, "every broker must be Kafka 3.9 or newer")
