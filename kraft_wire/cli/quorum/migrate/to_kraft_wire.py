"""From Java's controllers to kraft-wire's. No I/O. What kraft-wire doesn't have yet: docs/differences.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraft_wire.cli.quorum.migrate.commands import fsck, unregister_broker
from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Broker,
    Controller,
    Finding,
    Quorum,
    Verdict,
    in_the_way,
    not_known,
    note,
)
from kraft_wire.cli.quorum.migrate.properties import kraft_wire_says, sources, unchecked_folder
from kraft_wire.cli.quorum.migrate.releases import (
    FIRST_BESIDE_KRAFT_WIRE,
    FIRST_TESTED,
    highest_metadata_version,
    release_text,
)
from kraft_wire.cli.quorum.migrate.replacing import replacement
from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.metadata.features.supported import supported_ranges
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kraft_wire.protocol.registry import API_KEYS, api_name

PLAINTEXT: Final = "PLAINTEXT"
AUTHENTICATION: Final = {SaslHandshakeRequest.API_KEY, SaslAuthenticateRequest.API_KEY}
"""The APIs by which a client authenticates: the protocol of the listener matters, not they."""


def judge(quorum: Quorum) -> Verdict:
    """Judge a quorum whose controllers are all to be kraft-wire's."""
    of_cluster = [
        *_level_findings(quorum),
        *_metadata_findings(quorum),
        *_broker_findings(quorum),
        *_lost_apis(quorum),
    ]
    return replacement(quorum, "kraft-wire", of_cluster, lambda each: _controller_findings(quorum, each))


# The cluster.


def _level_findings(quorum: Quorum) -> Iterator[Finding]:
    ranges = supported_ranges()
    for name, level in sorted({**quorum.levels, KRAFT_VERSION: quorum.kraft_version}.items()):
        lowest, highest = ranges.get(name, (0, 0))
        if not lowest <= level <= highest:
            known = f"supports {lowest} to {highest}" if name in ranges else "doesn't know this feature"
            yield in_the_way(
                CLUSTER,
                f"{name} is at level {level}, and kraft-wire {known}",
                "wait for a release of kraft-wire that supports it, or downgrade the feature if Kafka can",
            )


def _metadata_findings(quorum: Quorum) -> Iterator[Finding]:
    if quorum.unreadable:
        text = f"kraft-wire can't read this cluster's metadata: {quorum.unreadable}"
        yield in_the_way(CLUSTER, text, "stay with Java, and report this")
    if quorum.unread:
        text = f"whether kraft-wire can read this cluster's metadata: {quorum.unread}"
        yield not_known(CLUSTER, text, "ask again")
    used = quorum.usage
    if used is None:
        return
    if used.tokens:
        text = "set delegation.token.secret.key as on the brokers, or they can't be renewed"
        yield note(CLUSTER, f"delegation tokens: {used.tokens}; {text}")
    if used.acls:
        text = "the brokers go on enforcing them, but while kraft-wire leads, they can't be changed"
        yield note(CLUSTER, f"ACLs: {used.acls}; {text}")


def _broker_findings(quorum: Quorum) -> Iterator[Finding]:
    for broker in quorum.brokers:
        highest = highest_metadata_version(broker.features)
        if broker.is_from_zookeeper:
            text = "a migration from ZooKeeper registered it, and isn't complete"
            yield in_the_way(broker.name, text, "complete that migration with Kafka 3.9 first")
        elif highest is not None and highest < FIRST_BESIDE_KRAFT_WIRE:
            text = f"it is {release_text(broker.features)}; kraft-wire serves brokers from Kafka 4.0 on"
            yield in_the_way(broker.name, text, *_without_broker(quorum, broker))


def _without_broker(quorum: Quorum, broker: Broker) -> tuple[str, str]:
    upgrade = "upgrade it to Kafka 4.0 or newer"
    if not broker.is_fenced:
        return upgrade, ""
    return f"{upgrade}, or unregister it if it is gone for good", unregister_broker(quorum, broker)


def _lost_apis(quorum: Quorum) -> Iterator[Finding]:
    ours = {api.key for api in CONTROLLER_APIS}
    served = set().union(*(each.apis for each in quorum.controllers if each.software == "Java"))
    lost = [api_name(key) for key in sorted(served - ours - AUTHENTICATION) if key in API_KEYS]
    if lost:
        yield note(CLUSTER, f"while kraft-wire leads, these requests aren't served: {', '.join(lost)}")


# A controller.


def _controller_findings(quorum: Quorum, controller: Controller) -> Iterator[Finding]:
    highest = highest_metadata_version(controller.features)
    if highest is not None and highest < FIRST_BESIDE_KRAFT_WIRE:
        release = release_text(controller.features)
        text = f"it is {release}; kraft-wire works beside controllers from Kafka 4.0 on"
        yield in_the_way(controller.name, text, "upgrade it to Kafka 4.0 or newer first")
    elif highest is not None and highest < FIRST_TESTED:
        text = f"it is {release_text(controller.features)}; the change is tested with Kafka 4.4 only"
        yield note(controller.name, text, "try it on a copy of the folder first")
    yield from _property_findings(quorum, controller)
    yield from _folder_findings(controller)


def _property_findings(quorum: Quorum, controller: Controller) -> Iterator[Finding]:
    known = sources(controller)
    for source in known[:1]:
        problems, warnings = kraft_wire_says(source)
        for problem in problems:
            yield in_the_way(
                controller.name,
                f"kraft-wire doesn't start with {source.text}: {problem}",
                "change the file if the cluster can do without, or stay with Java",
            )
        if warnings:
            yield note(controller.name, f"{source.text}: {'; '.join(warnings)}")
    others = sorted({protocol for protocol in controller.protocols if protocol != PLAINTEXT})
    if not known and others:
        text = f"its listeners use {', '.join(others)}; kraft-wire's can only be PLAINTEXT"
        yield in_the_way(controller.name, text, "stay with Java until kraft-wire has TLS and SASL")
    if any(broker.id == controller.id for broker in quorum.brokers) and not known:
        yield in_the_way(
            controller.name,
            "it is a broker, too; kraft-wire is a controller only",
            "let brokers and controllers be nodes of their own",
        )


def _folder_findings(controller: Controller) -> Iterator[Finding]:
    folder = controller.file.folder if controller.file is not None else None
    yield from unchecked_folder(controller, fsck(folder.path) if folder is not None else "")
    if folder is None:
        return
    for damage in folder.damage:
        yield in_the_way(
            controller.name, f"{folder.path}: {damage}", "see docs/recovery.md", fsck(folder.path)
        )
