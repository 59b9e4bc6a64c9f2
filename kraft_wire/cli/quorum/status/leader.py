"""The report of ``quorum status`` as the leader sees its quorum. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kraft_wire.cli.quorum.changes.majorities import (
    LIVE_WITHIN_MS,
    directory_ids_text,
    fetches,
    key_of,
    liveness_of,
    replicas_of,
)
from kraft_wire.cli.quorum.status.report import BROKER, ReplicaRow, StatusReport, known
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.client.survey import NodeAnswer
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import QuorumHistory, url_of
from kraft_wire.wire.address import Address


class KnownOfLog(msgspec.Struct, frozen=True):
    """The level of kraft.version, the controllers and the brokers in the leader's log.

    ``registrations`` has the endpoints of each registered controller, as texts, by node id. It is None if
    nobody says which controllers are registered. ``addresses`` has the addresses of these controllers.
    ``brokers`` has the endpoints of the known brokers.
    """

    kraft_version: int | None = None
    registrations: Mapping[int, Sequence[str]] | None = None
    addresses: Mapping[int, Address] = {}
    brokers: Mapping[int, Sequence[str]] = {}


def known_of(leader: NodeAnswer, history: QuorumHistory | None) -> KnownOfLog:
    """Return what the leader says of its log, and what the whole log itself says: None if it wasn't read to
    its end. A part of it would show registrations that have changed since."""
    kraft_version = leader.kraft_version
    if kraft_version is None and not leader.problem:
        kraft_version = 0  # Kafka names a feature from level 1 on
    addresses = leader.registrations or {}
    brokers = {} if history is None else _urls(history.brokers)
    if history is not None and (history.registrations or leader.registrations is None):
        kraft_version = history.kraft_version if kraft_version is None else kraft_version
        points = {id: endpoints[0] for id, endpoints in history.registrations.items() if endpoints}
        addresses = {**addresses, **{id: Address(point.host, point.port) for id, point in points.items()}}
        return KnownOfLog(kraft_version, _urls(history.registrations), addresses, brokers)
    if leader.registrations is None:
        return KnownOfLog(kraft_version, brokers=brokers)
    return KnownOfLog(kraft_version, {id: [str(at)] for id, at in addresses.items()}, addresses, brokers)


def _urls(registered: Mapping[int, Iterable[Endpoint]]) -> dict[int, list[str]]:
    return {id: [url_of(point) for point in points] for id, points in registered.items()}


def report_of_leader(
    cluster_id: str, described: QuorumDescription, of_log: KnownOfLog, auto_join: Mapping[int, bool]
) -> StatusReport:
    """Return the report of a quorum as its leader sees it."""
    report = StatusReport(
        cluster_id=cluster_id,
        leader_id=described.leader_id,
        last_known_leader_id=described.leader_id,
        leader_epoch=described.leader_epoch,
        high_watermark=described.high_watermark,
        kraft_version=of_log.kraft_version,
        may_fail=liveness_of(described).may_fail,
    )
    leader, registrations = described.leader, of_log.registrations
    for role, replicas in (("follower", described.voters), ("observer", described.observers)):
        for replica in replicas:
            row = _row(described, replica, role)
            report.replicas.append(row)
            row.endpoints = _own_endpoints(described, replica)
            if is_replaced(described, replica):
                row.registered = None if registrations is None else False
                continue
            if registrations is not None:
                row.endpoints = row.endpoints or list(registrations.get(replica.id, ()))
                row.registered = replica.id in registrations
            row.auto_join = auto_join.get(replica.id)
            row.epoch = described.leader_epoch if replica is leader else None
            if (
                role == "observer"
                and replica.id in of_log.brokers
                and replica.id not in (registrations or ())
            ):
                row.role, row.registered = BROKER, True
                row.endpoints = list(of_log.brokers[replica.id])
    if registrations is None:
        report.notes = ["the leader doesn't say which controllers are registered"]
    else:
        listed = {replica.id for replica in (*described.voters, *described.observers)}
        voter_ids = [voter.id for voter in described.voters]
        report.notes = list(_registration_notes(voter_ids, registrations, listed))
    report.notes += _twin_notes(described)
    return report


def note_silent(
    report: StatusReport,
    described: QuorumDescription,
    answers: Iterable[NodeAnswer],
    ids: Mapping[Address, int],
) -> None:
    """Note the controllers that can't be asked. ``ids`` are those that are known."""
    for answer in answers:
        if not answer.problem:
            continue
        id = ids.get(answer.address)
        who = str(answer.address) if id is None else f"node {id}, {answer.address},"
        counts = answer.is_unheard and any(
            fetches(described, voter) for voter in described.voters if voter.id == id
        )
        still = (
            f': it has fetched in the last {LIVE_WITHIN_MS // 1000} seconds, so "May fail" still counts it'
            if counts
            else ""
        )
        report.notes.append(f"{who} can't be asked from here: {answer.problem}{still}")


def is_replaced(described: QuorumDescription, replica: ReplicaDescription) -> bool:
    """Whether a replica is a directory that its node doesn't have any more: the node has fetched later with
    another one, which the registration, the setting and the address belong to."""
    others = replicas_of((*described.voters, *described.observers), replica.id)
    return any(other.last_fetch_ms > replica.last_fetch_ms for other in others)


def _twin_notes(described: QuorumDescription) -> Iterator[str]:
    """Warn of nodes that fetch with several directories."""
    replicas = (*described.voters, *described.observers)
    for node_id in sorted({replica.id for replica in replicas}):
        fetching = [each for each in replicas_of(replicas, node_id) if fetches(described, each)]
        if len(fetching) > 1:
            ids = directory_ids_text(map(key_of, fetching))
            yield (
                f"node {node_id} fetches with {len(fetching)} directories: {ids}. Unless its disk was "
                f"replaced in the last {LIVE_WITHIN_MS // 1000} seconds, two processes have this node.id: "
                "stop one"
            )


def _own_endpoints(described: QuorumDescription, replica: ReplicaDescription) -> list[str]:
    """Return the endpoints in a voter's own entry: those of its node id are another replica's if this one is
    no voter."""
    points = described.endpoints.get(replica.id, ()) if replica in described.voters else ()
    return [url_of(point) for point in points]


def _row(described: QuorumDescription, replica: ReplicaDescription, role: str) -> ReplicaRow:
    leader = described.leader
    row = ReplicaRow(replica.id, str(replica.directory_id) if replica.directory_id else None)
    row.role = ("leader" if role == "follower" else "leader, not a voter") if replica is leader else role
    row.is_silent = not fetches(described, replica)
    row.log_end_offset = known(replica.log_end_offset)
    row.last_caught_up_ms = known(replica.last_caught_up_ms)
    if leader is not None and row.log_end_offset is not None:
        row.lag = leader.log_end_offset - row.log_end_offset
    if leader is not None and row.last_caught_up_ms is not None:
        row.lag_ms = leader.last_caught_up_ms - row.last_caught_up_ms
    return row


def _registration_notes(
    voter_ids: Sequence[int], registrations: Mapping[int, Sequence[str]], fetching: Iterable[int]
) -> Iterator[str]:
    for voter_id in voter_ids:
        if voter_id not in registrations:
            yield f"voter {voter_id} is not registered: the metadata doesn't know its features yet"
    silent = set(registrations) - set(fetching)
    for node_id in sorted(set(registrations) - set(voter_ids)):
        what = "and doesn't fetch" if node_id in silent else "and observes"
        where = ",".join(registrations[node_id])
        yield f"controller {node_id} is registered and is no voter, {what} ({where})"
