"""``kraft-wire quorum remove``: remove a voter, and the registration of a controller that is gone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kraft_wire.cli.errors import EXIT_OK, CommandError, Interrupted, complain
from kraft_wire.cli.quorum import (
    JoinsAgain,
    NoAnswer,
    Refused,
    StillRegistered,
    Uncertain,
    Unfit,
    UnknownNode,
)
from kraft_wire.cli.quorum.changes.kraft_version import check_voters_can_change
from kraft_wire.cli.quorum.changes.leader_client import LeaderClient, leader_for_change
from kraft_wire.cli.quorum.changes.majorities import (
    VoterLiveness,
    change_lines,
    fetches,
    ids_text,
    key_of,
    liveness_of,
    replicas_of,
)
from kraft_wire.cli.quorum.changes.newcomer import is_voter
from kraft_wire.cli.quorum.changes.options import check_node_id, directory_id_of
from kraft_wire.cli.quorum.changes.registrations import (
    Presence,
    fetching_directories,
    has_stopped,
    is_registered,
    presence_at,
    registrations_of,
)
from kraft_wire.cli.quorum.confirming import INTERRUPTED, confirm, interruption_says
from kraft_wire.cli.quorum.connecting import AUTO_JOIN, DEFAULT_TIMEOUT_MS, settings_of
from kraft_wire.client.errors import QuorumError
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.client.survey import setting_of, survey
from kraft_wire.client.voter_changes import remove_voter
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from kraft_wire.protocol.messages.unregister_controller_response import UnregisterControllerResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.wire.address import Address


def quorum_remove(
    node_id: int,
    /,
    *,
    bootstrap_controller: str,
    directory_id: str | None = None,
    keep_registration: bool = False,
    yes: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Remove a voter, then its registration if it has stopped. Shows what changes, and asks.

    A node that is no voter any more only loses its registration. If the node runs with another directory, the
    registration is that of the new one, and stays.

    Exit statuses: 0 removed, now or before; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5
    the file of --command-config can't be read; 6 the node has another directory, too few voters would be
    left, kraft.version is 0, or the controllers are of several clusters; 8 not confirmed; 11 the controller
    runs and would join again; 12 it isn't known whether the change was made; 13 the voter is removed, its
    registration is not; 14 the leader refuses; 16 no node has, or had, this id; 130 interrupted; 1 anything
    else.

    For example:

        kraft-wire quorum remove 3 --bootstrap-controller c1:9093

    Parameters
    ----------
    node_id
        The node id of the voter.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    directory_id
        The directory id of the voter, or of the former voter, as a check that it is the right one.
    keep_registration
        Leave the registration of the controller as it is.
    yes
        Don't ask.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    check_node_id(node_id)
    wanted = directory_id_of(directory_id)
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        return _remove_node(leader, node_id, wanted, keep_registration=keep_registration, yes=yes)


def _remove_node(
    leader: LeaderClient, node_id: int, wanted: Uuid | None, *, keep_registration: bool, yes: bool
) -> int:
    """Remove the voter, or the registration that it left behind. Returns the exit status."""
    described = leader.describe()
    address = None if keep_registration else registrations_of(leader).get(node_id)
    voter = _voter(leader, described, node_id, wanted)
    if voter is not None:
        _remove(leader, described, key_of(voter), address, yes=yes)
        if not keep_registration:
            _unregister_removed(leader, key_of(voter))
        return EXIT_OK
    leader.await_commit(lambda found: not replicas_of(found.voters, node_id))
    _check_directory(leader, described, node_id, wanted)
    if address is not None:
        _unregister_stopped(leader, node_id, wanted, address, yes=yes)
    else:
        _check_was_known(leader, described, node_id)
        print(_nothing_to_remove(described, node_id, keep_registration=keep_registration))
    return EXIT_OK


def _voter(
    leader: LeaderClient, described: QuorumDescription, node_id: int, wanted: Uuid | None
) -> ReplicaDescription | None:
    """Return the voter. Raises Unfit if it can't be removed with kraft.version 0, or has another directory id
    than the wanted one."""
    for voter in replicas_of(described.voters, node_id):
        check_voters_can_change(leader)
        if wanted in (None, voter.directory_id):
            return voter
        raise Unfit(
            f"voter {node_id} has directory id {voter.directory_id}, not {wanted}{_whose(described, wanted)}"
        )
    return None


def _whose(described: QuorumDescription, directory_id: Uuid | None) -> str:
    """Say which node has a directory id, if one has."""
    replicas = (*described.voters, *described.observers)
    others = sorted({replica.id for replica in replicas if replica.directory_id == directory_id})
    return f", which is that of node {', '.join(map(str, others))}" if others else ""


def _check_directory(
    leader: LeaderClient, described: QuorumDescription, node_id: int, wanted: Uuid | None
) -> None:
    """Raise Unfit unless the node, which is no voter, observes with this directory id or voted with it: an
    earlier run of the command may have removed it. None isn't checked."""
    observed = [replica.directory_id for replica in replicas_of(described.observers, node_id)]
    if wanted is None or wanted in observed:
        return
    voters = (voter for change in leader.history().changes for voter in change.voters)
    if not any((voter.id, voter.directory_id) == (node_id, str(wanted)) for voter in voters):
        observes = f", and observes with {', '.join(map(str, observed))}" if observed else ""
        raise Unfit(
            f"node {node_id} is no voter{observes}: the leader doesn't know directory id {wanted} of it. "
            "Check the ids, or leave --directory-id out"
        )


def _check_was_known(leader: LeaderClient, described: QuorumDescription, node_id: int) -> None:
    """Raise UnknownNode unless the node observes, or the leader's log has it as a voter or controller of the
    past: an earlier run of the command may have removed it. Old voters leave the log with its snapshots."""
    if replicas_of(described.observers, node_id):
        return
    history = leader.history()
    voted = (voter.id for change in history.changes for voter in change.voters)
    if node_id not in history.controller_ids and node_id not in voted:
        voters = ids_text(tuple(map(key_of, described.voters)))
        raise UnknownNode(
            f"node {node_id} is not known: it is no voter (the voters are {voters}), observer or registered "
            "controller, and the leader's log doesn't say that it ever was: check the id"
        )


def _nothing_to_remove(described: QuorumDescription, node_id: int, *, keep_registration: bool) -> str:
    voters = ids_text(tuple(map(key_of, described.voters)))
    rest = "" if keep_registration else ", and is not registered"
    return f"Node {node_id} is no voter (the voters are {voters}){rest}. Nothing was changed."


# Removing.


def _remove(
    leader: LeaderClient,
    described: QuorumDescription,
    key: ReplicaKey,
    registered: Address | None,
    *,
    yes: bool,
) -> None:
    fetching = liveness_of(described)
    silent = frozenset(voter for voter in fetching.live if _is_silent(leader, described, voter))
    before = msgspec.structs.replace(fetching, live=fetching.live - silent)
    after = before.without_voter(key)
    for line in change_lines(leader.cluster_id, before, after):
        print(line)
    if silent:
        print(f"Not counted   {ids_text(silent)}: nothing answers at the address from this machine")
    print(f"To remove     {key}")
    _refuse_if_too_few_would_be_left(key, fetching.without_voter(key), after, silent - {key})
    _refuse_if_it_joins_again(leader, described, key, registered)
    if not yes:
        confirm()
    request = remove_voter(leader.cluster_id, key)
    with interruption_says(INTERRUPTED):
        leader.change(request, RemoveRaftVoterResponse, lambda found: not is_voter(found, key))
    print(f"Node {key.id} is no voter any more. The change is committed.")


def _refuse_if_too_few_would_be_left(
    key: ReplicaKey, fetching: VoterLiveness, after: VoterLiveness, silent: frozenset[ReplicaKey]
) -> None:
    """Raise Unfit if the voters that would be left can't commit the removal. One that stopped a moment ago
    still counts as fetching, but it is silent."""
    if not after.voters:
        raise Unfit(f"voter {key.id} is the last one: a quorum needs at least one")
    if fetching.may_fail < 0:
        raise Unfit(
            f"voters {ids_text(after.voters)} would be left. Those that fetch: {ids_text(fetching.live)}. "
            f"{after.needed} are needed to commit the change: start the others first"
        )
    if after.may_fail < 0:
        raise Unfit(
            f"voter {ids_text(silent)} doesn't answer from this machine, and the change needs {after.needed} "
            "of the voters that would be left: start it, or run the command where it can be reached"
        )


def _is_silent(leader: LeaderClient, described: QuorumDescription, key: ReplicaKey) -> bool:
    """Whether nothing answers at any address of a voter other than the leader."""
    if described.leader is not None and key == key_of(described.leader):
        return False
    addresses = [Address(point.host, point.port) for point in described.endpoints.get(key.id, ())]
    answers = survey(leader.settings, addresses)
    return bool(addresses) and all(answer.is_unheard for answer in answers)


def _refuse_if_it_joins_again(
    leader: LeaderClient, described: QuorumDescription, key: ReplicaKey, registered: Address | None
) -> None:
    """Raise JoinsAgain if the voter fetches and joins by itself. Warn if it runs, and may join again."""
    voter = next(each for each in described.voters if key_of(each) == key)
    points = described.endpoints.get(key.id, ())
    address = registered
    if address is None and points:
        address = Address(points[0].host, points[0].port)
    joins = None if address is None else setting_of(leader.settings, address, key.id, AUTO_JOIN)
    is_fetching = fetches(described, voter)
    if joins == "true" and is_fetching:
        raise JoinsAgain(
            f"controller {key.id} runs with {AUTO_JOIN}=true, and would make itself a voter again: stop it, "
            "or set that key to false and restart it"
        )
    if joins == "true":
        complain(
            f"warning: controller {key.id} runs with {AUTO_JOIN}=true: as soon as it fetches, it makes "
            "itself a voter again"
        )
    if joins is None and _may_run(leader, key.id, address, is_fetching=is_fetching):
        complain(
            f"warning: controller {key.id} may run, and does not say whether {AUTO_JOIN} is set: if it is, "
            "the controller makes itself a voter again"
        )


def _may_run(leader: LeaderClient, node_id: int, address: Address | None, *, is_fetching: bool) -> bool:
    """Whether a node may run, at an address that may not be known."""
    if address is None:
        return is_fetching
    return presence_at(leader, node_id, address) is not Presence.GONE


# Unregistering.


def _unregister_removed(leader: LeaderClient, key: ReplicaKey) -> None:
    """Remove the registration of a voter that is removed. Raises StillRegistered, Interrupted."""
    try:
        with interruption_says(_registration_may_be_left(key.id)):
            address = registrations_of(leader).get(key.id)
            if address is not None:
                _unregister(leader, key.id, key.directory_id, address)
    except (StillRegistered, Interrupted):
        raise
    except (CommandError, QuorumError) as error:
        raise StillRegistered(
            f"the voter is removed, and it isn't known whether controller {key.id} is registered: {error}; "
            f"run `kraft-wire quorum remove {key.id}` again"
        ) from None


def _unregister_stopped(
    leader: LeaderClient, node_id: int, directory_id: Uuid | None, address: Address, *, yes: bool
) -> None:
    if _is_kept_by_another(leader, node_id, directory_id):
        return
    print(f"Cluster       {leader.cluster_id}")
    print(f"Node {node_id} is no voter. Its registration is to be removed.")
    if not yes:
        confirm()
    with interruption_says(INTERRUPTED):
        _unregister(leader, node_id, directory_id, address)


def _unregister(leader: LeaderClient, node_id: int, directory_id: Uuid | None, address: Address) -> None:
    """Remove the registration of a controller that has stopped, unless it is that of another directory.
    Raises StillRegistered."""
    if _is_kept_by_another(leader, node_id, directory_id):
        return
    _refuse_if_it_runs(leader, node_id, address)
    try:
        leader.change(
            UnregisterControllerRequest(controller_id=node_id),
            UnregisterControllerResponse,
            lambda _: _is_not(is_registered(leader, node_id)),
        )
    except (NoAnswer, Refused, Uncertain) as error:
        raise StillRegistered(f"the registration of controller {node_id} is left: {error}") from None
    print(f"The registration of controller {node_id} is removed.")


def _is_kept_by_another(leader: LeaderClient, node_id: int, directory_id: Uuid | None) -> bool:
    """Whether the registration is that of another directory than this one; that is said."""
    others = fetching_directories(leader.describe(), node_id) - {directory_id}
    if directory_id is None or not others:
        return False
    running = ", ".join(map(str, others))
    print(f"The registration of controller {node_id} is that of directory {running}, which runs: it stays.")
    return True


def _registration_may_be_left(node_id: int) -> str:
    return (
        f"interrupted: the voter is removed, and it isn't known whether controller {node_id} is registered; "
        f"run `kraft-wire quorum remove {node_id}` again"
    )


def _is_not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _refuse_if_it_runs(leader: LeaderClient, node_id: int, address: Address) -> None:
    """Raise StillRegistered if a controller answers with its node id, or doesn't stop to fetch soon."""
    again = f"stop it, then run `kraft-wire quorum remove {node_id}` again"
    presence = presence_at(leader, node_id, address)
    if presence == Presence.UNCLEAR:
        raise StillRegistered(
            f"the registration of controller {node_id} is left: something answers at its address, {address}, "
            f"and doesn't say which node it is; if it is that controller, {again}"
        )
    if presence == Presence.RUNS or not has_stopped(leader, node_id):
        raise StillRegistered(f"controller {node_id} still runs, and would register again: {again}")
