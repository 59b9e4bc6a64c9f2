"""Ask a live quorum and its nodes for everything that a migration depends on. Nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kraft_wire.cli.quorum.changes.leader_client import LeaderClient
from kraft_wire.cli.quorum.changes.majorities import fetches
from kraft_wire.cli.quorum.changes.registrations import leaders_answer
from kraft_wire.cli.quorum.migrate.facts import (
    Broker,
    Controller,
    File,
    Node,
    Quorum,
    Software,
    Target,
    Usage,
)
from kraft_wire.cli.quorum.migrate.metadata import read_metadata
from kraft_wire.cli.quorum.migrate.properties import bootstrap_servers, sources
from kraft_wire.client.addresses import parse_addresses
from kraft_wire.client.connection import Connector
from kraft_wire.client.errors import QuorumError
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.client.survey import NodeAnswer, static_settings_of, survey
from kraft_wire.client.voter_changes import read_features, try_kraft_version
from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.registration import Listener
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.messages.produce_request import ProduceRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.security.errors import BadSetting
from kraft_wire.security.protocols import SECURITY_PROTOCOLS
from kraft_wire.wire.address import Address


class Options(NamedTuple):
    """The options of the command that the facts depend on."""

    target: Target
    bootstrap: str
    command_config: str
    files: Sequence[File]

    def file_of(self, node_id: int) -> File | None:
        return next((file for file in self.files if file.node_id == node_id), None)


class _Known(NamedTuple):
    """What the leader says. ``state`` is None if its log couldn't be read."""

    described: QuorumDescription
    leader: NodeAnswer
    state: MetadataState | None


def gather(settings: QuorumSettings, client: QuorumClient, options: Options) -> Quorum:
    """Return the facts. Raises what ``QuorumClient`` raises, and CommandError if the leader doesn't answer
    for itself."""
    cluster_id, described = client.cluster_id(), client.describe_quorum()
    leader = leaders_answer(LeaderClient(settings, client))
    metadata = read_metadata(settings)
    known = _Known(described, leader, metadata.state)
    controllers = _controllers(settings, known, options)
    brokers = _brokers(settings, known, options)
    quorum = Quorum(
        cluster_id=cluster_id,
        leader_id=described.leader_id,
        bootstrap=options.bootstrap,
        command_config=options.command_config,
        kraft_version=_kraft_version(described, leader),
        levels={name: level for name, level in leader.levels.items() if name != KRAFT_VERSION},
        controllers=controllers,
        brokers=brokers,
        usage=None if metadata.state is None else _usage(metadata.state),
        unreadable=metadata.unreadable,
        unread=metadata.unread,
        strangers=_strangers(options.files, (*controllers, *brokers)),
    )
    return quorum if options.target != "dynamic" else _with_answers(settings, client, quorum)


def _with_answers(settings: QuorumSettings, client: QuorumClient, quorum: Quorum) -> Quorum:
    """Add what only matters to dynamic voters."""
    if quorum.kraft_version == 0:
        return msgspec.structs.replace(quorum, refusal=_refusal(settings, client.answered_by))
    return msgspec.structs.replace(quorum, bootstrap_problems=_bootstrap_problems(settings, quorum))


def _kraft_version(described: QuorumDescription, leader: NodeAnswer) -> int:
    """Return the level of the log. Kafka 4.0.0 could finalize kraft.version 1 as a mere feature, without
    voters in the log (KAFKA-18979): the leader doesn't know their directory ids then."""
    has_voters = any(voter.directory_id for voter in described.voters)
    return (leader.kraft_version or 0) if has_voters else 0


def _strangers(files: Sequence[File], nodes: Sequence[Node]) -> tuple[File, ...]:
    known = {node.id for node in nodes}
    return tuple(file for file in files if file.node_id not in known)


def _usage(state: MetadataState) -> Usage:
    return Usage(acls=len(state.acls.by_id), tokens=len(state.tokens.by_id))


# Controllers.


def _controllers(settings: QuorumSettings, known: _Known, options: Options) -> tuple[Controller, ...]:
    """Ask every voter, and every controller that is registered."""
    registered = known.leader.registrations or {}
    addresses = registered | _voter_addresses(known, registered)
    voters = {replica.id for replica in known.described.voters}
    in_metadata = () if known.state is None else known.state.controllers
    return tuple(
        _asked(settings, addresses.get(id), registered.get(id), _controller(known, options, id))
        for id in sorted({*voters, *registered, *in_metadata})
    )


def _voter_addresses(known: _Known, registered: Mapping[int, Address]) -> dict[int, Address]:
    """Return the voters' addresses on the listener that was asked. A voter without that listener has
    registered another address, perhaps; otherwise it is its first one, which may speak KIP-853's draft."""
    points = {
        id: {each.listener: Address(each.host, each.port) for each in endpoints}
        for id, endpoints in known.described.endpoints.items()
        if endpoints
    }
    asked = {
        listener
        for id, by_listener in points.items()
        for listener, address in by_listener.items()
        if address in (known.leader.address, registered.get(id))
    }
    return {id: _voter_address(points[id], asked, registered.get(id)) for id in points}


def _voter_address(
    by_listener: Mapping[str, Address], asked: Collection[str], registered: Address | None
) -> Address:
    for listener, address in by_listener.items():
        if listener in asked:
            return address
    return registered if asked and registered is not None else next(iter(by_listener.values()))


def _controller(known: _Known, options: Options, id: int) -> Controller:
    """Return what the leader and the metadata say of a controller."""
    described = known.described
    replicas = (*described.voters, *described.observers)
    replica = next((each for each in replicas if each.id == id), None)
    leader = described.leader
    registration = None if known.state is None else known.state.controllers.get(id)
    registered = known.leader.registrations if known.state is None else known.state.controllers
    lag = None
    if replica is not None and leader is not None and replica.log_end_offset >= 0:
        lag = leader.log_end_offset - replica.log_end_offset
    return Controller(
        id=id,
        is_voter=any(voter.id == id for voter in described.voters),
        is_leader=id == described.leader_id,
        fetches=replica is not None and fetches(described, replica),
        lag=lag,
        directory_id=str(replica.directory_id) if replica is not None and replica.directory_id else "",
        features={} if registration is None else dict(registration.features),
        is_registered=None if registered is None else id in registered,
        registered_features={} if registration is None else dict(registration.features),
        protocols=() if registration is None else _protocols(registration.listeners),
        file=options.file_of(id),
        problem="its address isn't known",
    )


def _protocols(listeners: Sequence[Listener]) -> tuple[str, ...]:
    return tuple(SECURITY_PROTOCOLS[listener.security_protocol] for listener in listeners)


def _asked(
    settings: QuorumSettings, address: Address | None, registered: Address | None, controller: Controller
) -> Controller:
    """Add what a controller says of itself, and whether it answers at the address that it has registered."""
    if address is None:
        return controller
    if registered not in (None, address):
        (elsewhere,) = survey(settings, [registered])
        controller = msgspec.structs.replace(
            controller, advertised=str(registered), advertised_problem=elsewhere.problem
        )
    (answer,) = survey(settings, [address])
    found = msgspec.structs.replace(controller, address=str(address), problem=answer.problem)
    if answer.problem:
        return found
    return msgspec.structs.replace(
        found,
        software=_software(answer.apis),
        apis=answer.apis,
        features=answer.features,
        settings=static_settings_of(settings, address, controller.id),
    )


def _software(apis: frozenset[int]) -> Software:
    """Return the software of a controller. Only kraft-wire's advertise Produce, for librdkafka's sake; only
    controllers serve Vote."""
    if VoteRequest.API_KEY not in apis:
        return "unknown"
    return "kraft-wire" if ProduceRequest.API_KEY in apis else "Java"


# Brokers.


def _brokers(settings: QuorumSettings, known: _Known, options: Options) -> tuple[Broker, ...]:
    """Return the registered brokers. Only dynamic voters depend on their settings."""
    registered = {} if known.state is None else known.state.brokers
    asked = options.target == "dynamic"
    return tuple(_broker(settings if asked else None, options, registered[id]) for id in sorted(registered))


def _broker(settings: QuorumSettings | None, options: Options, registration: BrokerRegistration) -> Broker:
    broker = Broker(
        id=registration.id,
        features=dict(registration.features),
        is_fenced=registration.fenced,
        is_from_zookeeper=registration.is_migrating_zk_broker,
        file=options.file_of(registration.id),
    )
    if settings is None or broker.is_fenced:
        return broker
    protocol = settings.security.protocol
    for listener in registration.listeners:
        if SECURITY_PROTOCOLS[listener.security_protocol] == protocol:
            address = Address(listener.host, listener.port)
            said = static_settings_of(settings, address, broker.id)
            problem = "" if said is not None else f"{address} doesn't answer, or refuses DescribeConfigs"
            return msgspec.structs.replace(broker, address=str(address), settings=said, problem=problem)
    return msgspec.structs.replace(broker, problem=f"none of its listeners uses {protocol}")


# For dynamic voters.


def _refusal(settings: QuorumSettings, leader: Address) -> str | None:
    """Return why the leader refuses kraft.version 1, "" if it doesn't; None if it can't be asked."""
    timeout_s = settings.request_timeout_ms / 1000
    connector = Connector(settings.security, timeout_s)
    try:
        connection = connector.open(leader, timeout_s)
    except (OSError, ProtocolError, QuorumError):
        return None
    try:
        request = try_kraft_version(1, settings.request_timeout_ms)
        answer = read_features(connection.call(request, UpdateFeaturesResponse, timeout_s))
    except (OSError, ProtocolError, QuorumError):
        return None
    finally:
        connection.close()
    return "" if answer.error == ErrorCode.NONE else answer.message or answer.error.name


def _bootstrap_problems(settings: QuorumSettings, quorum: Quorum) -> dict[str, str]:
    """Ask every bootstrap server of the nodes that isn't the address of a controller."""
    nodes: Sequence[Node] = (*quorum.controllers, *quorum.brokers)
    entries = {
        entry for node in nodes for source in sources(node) for entry in bootstrap_servers(source.properties)
    }
    known = {controller.address for controller in quorum.controllers}
    return {
        entry: _bootstrap_problem(settings, quorum.cluster_id, entry) for entry in sorted(entries - known)
    }


def _bootstrap_problem(settings: QuorumSettings, cluster_id: str, entry: str) -> str:
    try:
        (answer,) = survey(settings, parse_addresses(entry))
    except BadSetting:
        return "it is not host:port"
    if answer.problem:
        return answer.problem
    if answer.cluster_id not in (None, cluster_id):
        return f"it is of cluster {answer.cluster_id}"
    return "" if VoteRequest.API_KEY in answer.apis else "it is no controller"
