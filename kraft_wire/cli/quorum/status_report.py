"""The report of ``quorum status``: values from the leader, from controllers or from folders. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Final

import msgspec

from kraft_wire.cli.quorum.changes.majorities import fetches, liveness_of, replicas_of
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.client.survey import NodeAnswer
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import (
    FolderEvidence,
    KnownVoter,
    QuorumHistory,
    VoterChange,
    changed_voters,
    url_of,
)
from kraft_wire.raft.recovery.ranking import committed_difference, first_difference
from kraft_wire.wire.address import Address

UNKNOWN: Final = "unknown"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"


class ReplicaRow(msgspec.Struct):
    """A replica. None where it isn't known.

    ``lag_ms`` is the time since it was last caught up, by the leader's clock. ``is_silent``: it hasn't
    fetched for a while. A folder has ``pid``, the process that works on it, and ``last_seen``, what
    quorum-state says of the last election.
    """

    id: int
    directory_id: str | None = None
    endpoints: list[str] = []
    role: str = UNKNOWN
    epoch: int | None = None
    log_end_offset: int | None = None
    lag: int | None = None
    lag_ms: int | None = None
    last_caught_up_ms: int | None = None
    registered: bool | None = None
    auto_join: bool | None = None
    is_silent: bool | None = None
    source: str | None = None
    pid: int | None = None
    last_seen: str | None = None


class VotersRow(msgspec.Struct):
    """A VotersRecord. Offset -1 is the checkpoint of format; ``change`` compares with the one before.

    In a snapshot, offset and time are those of the snapshot: the voters were set before.
    """

    offset: int
    epoch: int
    time: str
    voters: list[int]
    change: str
    is_in_snapshot: bool = False


class LeaderRow(msgspec.Struct):
    """A controller that leads by its own account, and the voters by its log."""

    id: int
    epoch: int
    address: str
    voters: list[int] = []


class StateRow(msgspec.Struct):
    """The state of a node below ``end_offset``: the digest of its records, and their number. ``problem`` says
    why there is none. ``id`` is None if the node at the address didn't say it, and no controller has it."""

    id: int | None
    address: str
    end_offset: int | None = None
    formula: int | None = None
    record_count: int | None = None
    digest: str | None = None
    problem: str = ""


class StatusReport(msgspec.Struct):
    """The output of --json. ``may_fail`` is how many more voters may fail, None if it can't be known.

    ``leader_id`` is the node that leads by its own account; ``last_known_leader_id`` may be gone. ``leaders``
    are all that lead, the one of the latest epoch first. ``split`` says why the cluster is split; it is empty
    if it isn't. ``states`` are what --digest asks for, and ``states_differ`` says which of them differ.
    """

    cluster_id: str | None = None
    leader_id: int | None = None
    last_known_leader_id: int | None = None
    leader_epoch: int | None = None
    leaders: list[LeaderRow] = []
    split: str = ""
    high_watermark: int | None = None
    kraft_version: int | None = None
    may_fail: int | None = None
    replicas: list[ReplicaRow] = []
    notes: list[str] = []
    history: list[VotersRow] = []
    states: list[StateRow] = []
    states_differ: str = ""


# --- from the leader


class KnownOfLog(msgspec.Struct, frozen=True):
    """What is known of the leader's log. ``registrations`` are the endpoints of controllers as texts by node
    id, None if it isn't known which controllers are registered; ``addresses`` are theirs. ``brokers`` are
    the endpoints of the brokers that are known."""

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
    cluster_id: str, described: QuorumDescription, known: KnownOfLog, auto_join: Mapping[int, bool]
) -> StatusReport:
    """Return the report of a quorum as its leader sees it."""
    report = StatusReport(
        cluster_id=cluster_id,
        leader_id=described.leader_id,
        last_known_leader_id=described.leader_id,
        leader_epoch=described.leader_epoch,
        high_watermark=described.high_watermark,
        kraft_version=known.kraft_version,
        may_fail=liveness_of(described).may_fail,
    )
    leader, registrations = described.leader, known.registrations
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
            if role == "observer" and replica.id in known.brokers and replica.id not in (registrations or ()):
                row.role, row.registered = BROKER, True
                row.endpoints = list(known.brokers[replica.id])
    if registrations is None:
        report.notes = ["the leader doesn't say which controllers are registered"]
    else:
        listed = {replica.id for replica in (*described.voters, *described.observers)}
        voter_ids = [voter.id for voter in described.voters]
        report.notes = list(_registration_notes(voter_ids, registrations, listed))
    return report


def is_replaced(described: QuorumDescription, replica: ReplicaDescription) -> bool:
    """Whether a replica is a directory that its node doesn't have any more: it is silent, and the node
    fetches with another one, which the registration, the setting and the address belong to."""
    others = replicas_of((*described.voters, *described.observers), replica.id)
    return not fetches(described, replica) and any(fetches(described, other) for other in others)


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
    row.log_end_offset = _known(replica.log_end_offset)
    row.last_caught_up_ms = _known(replica.last_caught_up_ms)
    if leader is not None and row.log_end_offset is not None:
        row.lag = leader.log_end_offset - row.log_end_offset
    if leader is not None and row.last_caught_up_ms is not None:
        row.lag_ms = leader.last_caught_up_ms - row.last_caught_up_ms
    return row


def _known(number: int) -> int | None:
    return None if number < 0 else number


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


# --- from single controllers


def report_of_answers(answers: Sequence[NodeAnswer]) -> StatusReport:
    """Return the report of what controllers say of themselves, whether they lead or not."""
    known = [answer for answer in answers if not answer.problem]
    latest = max(known, key=lambda answer: (answer.epoch, answer.leads), default=None)
    report = StatusReport()
    if latest is not None:
        report.leader_epoch = latest.epoch
        report.leader_id = latest.leader_id if latest.leads else None
        report.last_known_leader_id = _latest_leader((a.epoch, a.leader_id) for a in known)
        report.kraft_version = latest.kraft_version
        report.cluster_id = next((a.cluster_id for a in known if a.cluster_id is not None), None)
    for answer in answers:
        if answer.problem:
            report.notes.append(f"{answer.address} can't be asked: {answer.problem}")
        else:
            report.notes.append(f"{answer.address} {_says(answer)}")
    if report.leader_id is None:
        report.replicas = list(_rows_of_registered(answers))
        report.notes += _moved_notes(known)
    return report


def _rows_of_registered(answers: Sequence[NodeAnswer]) -> Iterator[ReplicaRow]:
    """Yield a row for each controller that the latest answer names. Without a leader nobody says who
    votes."""
    named = [answer for answer in answers if answer.registrations is not None]
    latest = max(named, key=lambda answer: answer.epoch, default=None)
    asked = {answer.address: answer for answer in answers}
    for id, address in sorted((latest.registrations or {}).items() if latest is not None else ()):
        row = ReplicaRow(id, endpoints=[str(address)], role=CONTROLLER, registered=True)
        answer = asked.get(address)
        if answer is not None:
            row.epoch, row.is_silent = _known(answer.epoch), bool(answer.problem)
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


def note_leaders(report: StatusReport, leaders: Sequence[NodeAnswer]) -> None:
    """Note the controllers that lead by their own account. Several make the cluster a split one."""
    report.leaders = [_leader_row(answer) for answer in leaders]
    if len(leaders) > 1:
        named = "; ".join(
            f"node {row.id} at {row.address} in epoch {row.epoch}, with the voters "
            + ", ".join(map(str, row.voters))
            for row in report.leaders
        )
        report.split = f"the cluster is split: {len(leaders)} controllers lead: {named}. " + _end_of_split(
            report.kraft_version
        )


def _end_of_split(kraft_version: int | None) -> str:
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


def _latest_leader(remembered: Iterable[tuple[int, int]]) -> int | None:
    """Return the leader of the latest epoch that has one, of pairs of an epoch and its leader's id."""
    _, leader_id = max((each for each in remembered if each[1] >= 0), default=(-1, -1))
    return _known(leader_id)


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


# --- from folders


def report_of_folders(found: Sequence[FolderEvidence]) -> StatusReport:
    """Return the report of folders of one cluster. The voters are those of the folder with the latest log."""
    latest = max(found, key=lambda folder: (folder.last_epoch, folder.log_end_offset))
    voters = {voter.id: voter for voter in latest.voters}
    report = StatusReport(
        cluster_id=latest.cluster_id,
        last_known_leader_id=_latest_leader((folder.quorum_epoch, folder.leader_id) for folder in found),
        leader_epoch=max(folder.highest_epoch for folder in found),
        kraft_version=latest.kraft_version,
        high_watermark=max(folder.committed_offset for folder in found) or None,
        history=history_rows(latest.history),
    )
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
                + _end_of_split(max(one.kraft_version, other.kraft_version))
            )
    return ""


def _folder_row(folder: FolderEvidence, latest: FolderEvidence, voter: KnownVoter | None) -> ReplicaRow:
    row = ReplicaRow(folder.node_id, folder.directory_id or None, source=folder.folder)
    points = latest.registrations.get(folder.node_id, ()) if voter is None else voter.endpoints
    row.endpoints = [url_of(point) for point in points]
    is_voter = folder.node_id in folder.static_voter_ids or voter is not None
    row.role = "voter" if is_voter else "no voter"
    if voter is not None and folder.directory_id and voter.directory_id != folder.directory_id:
        row.role = "voter with another directory"
    row.pid, row.last_seen = folder.controller_pid, _last_seen(folder)
    row.epoch = _known(folder.quorum_epoch)
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


def history_rows(changes: Sequence[VoterChange]) -> list[VotersRow]:
    """Return a row for every VotersRecord."""
    rows: list[VotersRow] = []
    before: Sequence[KnownVoter] = ()
    for change in changes:
        ids = [voter.id for voter in change.voters]
        text = changed_voters(before, change.voters) if rows else ""
        when = time_text(change.timestamp_ms)
        rows.append(VotersRow(change.offset, change.epoch, when, ids, text, change.is_in_snapshot))
        before = change.voters
    return rows


def time_text(time_ms: int) -> str:
    """Return a time in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
