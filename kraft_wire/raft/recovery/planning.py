"""Decide how a quorum goes on that has lost its majority, or whose voters have moved to other addresses.

The survivor with the newest log goes on: the highest last epoch, then the longest, as in an election. Any
record that a majority acknowledged, and that some survivor still has, is in that log: a later epoch's leader
had all that was committed before it. It becomes the only voter; the others fetch everything from it.

A controller's folder that can't be used is no lost one. It may hold the newest log, or complete a majority,
when it is repaired. So there is no plan until then, unless the operator leaves it out of account.

A broker's folder is evidence only: it shows what was committed, and never goes on. Nor does one that an
earlier recovery left behind.

The records go into a new epoch, above any that a survivor can know, with room for those that only the lost
voters and the brokers knew: a broker never follows a leader of an older epoch. Plans for different survivors
probably have different epochs.

If a majority is left at other addresses (KIP-1347), the voters stay and only their endpoints change. Folders
whose logs are equal to the newest get the same bytes at the same offset. The others get nothing: they fetch
the record, as they do after any change of leader. So no two logs differ at an offset of one epoch.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.recovery import EPOCHS_WITHOUT_TRACE
from kraft_wire.raft.door.epoch_limits import LAST_EPOCH
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import FolderEvidence, KnownVoter
from kraft_wire.raft.recovery.moving import NewAddress, check_distinct, check_moved, moved_voters
from kraft_wire.raft.recovery.node_role import is_broker_only, is_controller, role_of
from kraft_wire.raft.recovery.plan import (
    PLAN_VERSION,
    Kind,
    Loss,
    Plan,
    RecoveryError,
    Survivor,
    Target,
    last_digest,
)
from kraft_wire.raft.recovery.ranking import (
    can_vote,
    check_inputs,
    common_end,
    has_equal_log,
    is_left_behind,
    is_voter,
    lacks_committed,
    problem_of,
    ranked,
    voter_count,
    votes_for,
)
from kraft_wire.raft.recovery.static_quorum import (
    addresses_of,
    configuring_steps,
    format_command,
    is_static,
    new_voters,
    old_voters,
    returning_step,
)

ADD_IT: Final = "make it a voter with `kraft-wire quorum add FILE --bootstrap-controller HOST:PORT`"
MOST_EPOCHS_APART: Final = 1000


def make_plan(
    found: Sequence[FolderEvidence],
    inputs: Sequence[str],
    now_ms: int,
    *,
    keep: Sequence[int] = (),
    addresses: Sequence[NewAddress] = (),
    without: Sequence[int] = (),
    static_voters: Mapping[int, Endpoint] = MappingProxyType({}),
) -> Plan:
    """Return the plan for the folders that are left. Raises RecoveryError if none is possible or needed.

    ``keep`` names other survivors than the best one to go on with; ``addresses`` are new ones of voters;
    ``without`` names nodes whose folders can't be used, and are left out of account; ``static_voters`` are
    those of controller.quorum.voters.
    """
    check_inputs(found)
    if static_voters:
        found = [_configured(folder, static_voters) for folder in found]
    order = ranked(found)
    usable = _usable(order, found, without)
    if not usable:
        problems = "; ".join(f"{folder.folder}: {problem_of(folder, found)}" for folder in order)
        raise RecoveryError(f"no folder can be used: {problems}")
    elected, votes = _electable(usable, found)
    if votes and not addresses:
        nodes = ", ".join(str(voter.node_id) for voter in votes)
        raise RecoveryError(
            f"a majority of the {voter_count(elected)} voters is left: nodes {nodes}. Start them: they elect "
            "a leader. If they moved to other addresses, give --endpoints"
        )
    if votes and (keep or without):
        raise RecoveryError("a majority of the voters is left: --keep and --without are for a lost majority")
    if not votes:
        _refuse_unrepaired(order, found, without)
    kept = [] if votes else _kept(usable, keep, found) if keep else [elected]
    moved = {address.node_id: address for address in addresses}
    if is_static(kept[0] if kept else elected):
        plan = _static_plan(found, inputs, now_ms, kept, elected, moved, static_voters)
    elif static_voters:
        raise RecoveryError("--voters is for a static quorum, and this one's voters are in the log")
    elif votes:
        voters = moved_voters(elected.voters, moved)
        targets = [folder for folder in votes if has_equal_log(folder, elected)]
        steps = _moving_steps(elected, targets, found)
        plan = _plan(found, inputs, now_ms, "endpoints", targets, voters, elected, steps)
    else:
        voters = moved_voters([_voter_of(folder, found, moved) for folder in kept], moved)
        steps = _recovery_steps(kept, found)
        plan = _plan(found, inputs, now_ms, "lost majority", kept, voters, kept[0], steps)
    return msgspec.structs.replace(plan, without=tuple(sorted(set(without)))).hashed()


def _static_plan(
    found: Sequence[FolderEvidence],
    inputs: Sequence[str],
    now_ms: int,
    kept: Sequence[FolderEvidence],
    elected: FolderEvidence,
    moved: Mapping[int, NewAddress],
    given: Mapping[int, Endpoint],
) -> Plan:
    """Return the plan of a static quorum: for the kept folders, or, if a majority is left, only for the
    configuration."""
    check_moved(moved, [folder.node_id for folder in kept] or elected.static_voter_ids)
    at = {id: Endpoint("", address.host, address.port) for id, address in moved.items()}
    if not kept:
        points = {
            id: (at[id],) if id in at else addresses_of(id, (elected, *found), given)
            for id in elected.static_voter_ids
        }
        check_distinct(points)
        steps = configuring_steps(points, changes_folders=False)
        return _plan(found, inputs, now_ms, "static", (), (), elected, steps)
    old = old_voters(kept[0], found, given)
    voters = new_voters(kept, found, given, at)
    points = {voter.id: voter.endpoints for voter in voters}
    check_distinct(points)
    applying = [f"apply the plan to the folder of node {folder.node_id}" for folder in kept]
    configuring = configuring_steps(points, changes_folders=True)
    steps = [*applying, *configuring, returning_step(kept[0].cluster_id)]
    plan = _plan(found, inputs, now_ms, "static", kept, voters, kept[0], steps)
    return msgspec.structs.replace(plan, old_voters=old)


def _refuse_unrepaired(
    order: Sequence[FolderEvidence], found: Sequence[FolderEvidence], without: Sequence[int]
) -> None:
    """Raise RecoveryError for a controller's folder that has to be repaired first, and for a node of
    ``without`` that has no such folder."""
    unrepaired = [folder for folder in order if folder.problems and is_controller(folder.node_id, found)]
    wrong = sorted(set(without) - {folder.node_id for folder in unrepaired})
    if wrong:
        raise RecoveryError(
            f"--without {wrong[0]}: this is for a controller's folder that can't be used, and none of this "
            "node was collected"
        )
    for folder in unrepaired:
        if folder.node_id not in without:
            raise RecoveryError(
                f"node {folder.node_id} may have the newest log, or the vote that a majority lacks, and its "
                f"folder can't be used as it is: {problem_of(folder, found)}. Only if it can't be repaired, "
                f"go on without it: --without {folder.node_id}"
            )


def _configured(folder: FolderEvidence, static_voters: Mapping[int, Endpoint]) -> FolderEvidence:
    """Return a folder with these voters as well, if its log has none: quorum-state may be older than the last
    change of controller.quorum.voters."""
    if not is_static(folder):
        return folder
    voter_ids = sorted({*folder.static_voter_ids, *static_voters})
    return msgspec.structs.replace(folder, static_voter_ids=tuple(voter_ids))


def _usable(
    order: Sequence[FolderEvidence], found: Sequence[FolderEvidence], without: Sequence[int]
) -> list[FolderEvidence]:
    """Return the folders that the quorum can go on with.

    A recovery rules out the folders that it left behind. If there are no others, and ``without`` has every
    node that remembers the recovery, they are returned after all.
    """
    usable = [folder for folder in order if not problem_of(folder, found)]
    if usable or not without:
        return usable
    counted = [folder for folder in found if folder.node_id not in without]
    return [folder for folder in order if folder in counted and not problem_of(folder, counted)]


def _electable(
    usable: Sequence[FolderEvidence], found: Sequence[FolderEvidence]
) -> tuple[FolderEvidence, list[FolderEvidence]]:
    """Return the first folder whose node can be elected, and those that vote for it; the newest log, and no
    votes, if there is none."""
    able = [folder for folder in found if can_vote(folder, found)]
    for folder in usable:
        votes = votes_for(folder, able)
        if votes and not lacks_committed(folder, found):
            return folder, votes
    return usable[0], []


def _kept(
    usable: Sequence[FolderEvidence], keep: Sequence[int], found: Sequence[FolderEvidence]
) -> list[FolderEvidence]:
    """Return the folders to keep, the best first."""
    kept = [folder for folder in usable if folder.node_id in keep]
    missing = sorted(set(keep) - {folder.node_id for folder in kept})
    if missing:
        problems = [problem_of(folder, found) for folder in found if folder.node_id == missing[0]]
        why = f": {problems[0]}" if problems else ""
        raise RecoveryError(f"--keep {missing[0]}: no usable folder of this node was collected{why}")
    for folder in kept[1:]:
        if not has_equal_log(folder, kept[0]):
            raise RecoveryError(
                f"the logs of nodes {kept[0].node_id} and {folder.node_id} aren't equal, and both can't go "
                f"on as voters: keep node {kept[0].node_id}, and add the other one afterwards"
            )
    return kept


def _voter_of(
    folder: FolderEvidence, found: Sequence[FolderEvidence], moved: Mapping[int, NewAddress]
) -> KnownVoter:
    """Return a survivor as a voter: with its last known endpoints, and its folder's own directory id."""
    if not folder.directory_id:
        raise RecoveryError(f"{folder.folder}: meta.properties has no directory.id; voters need one")
    for source in (folder, *found):
        for voter in source.voters:
            if voter.id == folder.node_id:
                return msgspec.structs.replace(voter, directory_id=folder.directory_id)
    for source in (folder, *found):
        endpoints = source.registrations.get(folder.node_id)
        if endpoints:
            return KnownVoter(folder.node_id, folder.directory_id, endpoints)
    for source in (folder, *found):
        for change in reversed(source.history):  # its removal may be the last, and not committed
            for voter in change.voters:
                if voter.id == folder.node_id:
                    return msgspec.structs.replace(voter, directory_id=folder.directory_id)
    address = moved.get(folder.node_id)
    if address is None or address.listener is None:
        raise RecoveryError(
            f"no endpoint of node {folder.node_id} is known: give --endpoints "
            f"{folder.node_id}@LISTENER://HOST:PORT"
        )
    endpoint = Endpoint(address.listener, address.host, address.port)
    return KnownVoter(folder.node_id, folder.directory_id, (endpoint,))


def _plan(
    found: Sequence[FolderEvidence],
    inputs: Sequence[str],
    now_ms: int,
    kind: Kind,
    targets: Sequence[FolderEvidence],
    voters: Sequence[KnownVoter],
    leader: FolderEvidence,
    steps: Sequence[str],
) -> Plan:
    highest = max(folder.highest_epoch for folder in found)
    epoch = highest + EPOCHS_WITHOUT_TRACE + _epochs_apart(leader)
    if epoch >= LAST_EPOCH:
        raise RecoveryError(
            f"epoch {highest} leaves no room for the next ones: lower it in all folders first, with "
            "`kraft-wire fsck --lower-epoch`"
        )
    return Plan(
        version=PLAN_VERSION,
        kind=kind,
        cluster_id=leader.cluster_id,
        inputs=tuple(inputs),
        made_at_ms=now_ms,
        old_voters=leader.voters,
        voters=tuple(voters),
        leader_id=leader.node_id,
        epoch=epoch,
        base_offset=leader.log_end_offset,
        last_epoch=leader.last_epoch,
        kraft_version=leader.kraft_version,
        targets=tuple(Target(folder.node_id, folder.directory_id, last_digest(folder)) for folder in targets),
        survivors=tuple(_survivor(folder, leader, found) for folder in ranked(found)),
        loss=loss_of(
            leader, [folder for folder in found if folder.is_cut or not is_left_behind(folder, found)]
        ),
        steps=tuple(steps),
    )


def _epochs_apart(leader: FolderEvidence) -> int:
    """Return a number below ``MOST_EPOCHS_APART`` that plans for other survivors are unlikely to have.

    If two plans are applied by mistake, their leaders shouldn't begin the same epoch: a broker wouldn't
    notice that they have different records at the same offsets of it.
    """
    return zlib.crc32(leader.directory_id.encode()) % MOST_EPOCHS_APART


def _survivor(folder: FolderEvidence, leader: FolderEvidence, found: Sequence[FolderEvidence]) -> Survivor:
    return Survivor(
        folder.node_id,
        folder.directory_id,
        folder.folder,
        folder.last_epoch,
        folder.log_end_offset,
        folder.committed_offset,
        is_voter(folder, leader),
        problem_of(folder, found),
        folder.lost_below,
        role_of(folder.node_id, found),
        folder.newer,
    )


def loss_of(kept: FolderEvidence, found: Sequence[FolderEvidence]) -> Loss:
    """Return what is lost if this folder's log goes on.

    A longer log that ends with an older epoch counts for nothing: the leader of the newer epoch had all that
    was committed before it. The kept log has all that was committed in its own last epoch or before, up to
    its end. A leader of a later epoch may have replaced the end of the kept log that isn't known to be
    committed.
    """
    end = kept.log_end_offset
    committed = max(folder.committed_offset for folder in found)
    known = max(min(folder.committed_offset, common_end(kept, folder)) for folder in found)
    seen = max(folder.log_end_offset for folder in found if folder.last_epoch >= kept.last_epoch)
    first_unseen = max(end, committed)
    first_cut = max(first_unseen, seen)
    had = max(folder.lost_below for folder in found)
    return Loss(
        lost=(end, committed) if committed > end else None,
        seen=(first_unseen, seen) if seen > first_unseen else None,
        kept=(known, end) if known < end else None,
        unknown_from=end,
        replaced_from=known,
        cut=(first_cut, had) if had > first_cut else None,
    )


def _applying_steps(targets: Sequence[FolderEvidence]) -> list[str]:
    """Say to apply the plan to all folders, and to start the nodes afterwards: with one of them started, the
    plan could no longer be applied to another."""
    applying = [f"apply the plan to the folder of node {folder.node_id}" for folder in targets]
    if len(targets) == 1:
        return [f"{applying[0]}, and start it"]
    ids = ", ".join(str(folder.node_id) for folder in targets)
    return [*applying, f"start nodes {ids}, when the plan is applied to all their folders"]


def _moving_steps(
    newest: FolderEvidence, targets: Sequence[FolderEvidence], found: Sequence[FolderEvidence]
) -> list[str]:
    ids = {folder.node_id for folder in targets}
    others = [
        voter.id for voter in newest.voters if voter.id not in ids and not is_broker_only(voter.id, found)
    ]
    return [
        "set listeners and controller.quorum.bootstrap.servers of all controllers to the new addresses",
        *_applying_steps(targets),
        *(f"start node {node_id} as it is: it fetches the change" for node_id in others),
        "set controller.quorum.bootstrap.servers of all brokers to the new addresses, too, and restart them",
    ]


def _recovery_steps(kept: Sequence[FolderEvidence], found: Sequence[FolderEvidence]) -> list[str]:
    others = {voter.id for voter in kept[0].voters} | {folder.node_id for folder in found}
    others -= {folder.node_id for folder in kept}
    brokers = [node_id for node_id in sorted(others) if is_broker_only(node_id, found)]
    return [
        *_applying_steps(kept),
        *(
            _replacing_step(node_id, kept[0].cluster_id, found)
            for node_id in sorted(others.difference(brokers))
            if is_controller(node_id, found)
        ),
        *(
            f"restart broker {node_id} when the controllers run; its folder stays as it is"
            for node_id in brokers
        ),
        "restart brokers that stop, or that don't follow the new leader",
    ]


def _replacing_step(node_id: int, cluster_id: str, found: Sequence[FolderEvidence]) -> str:
    """Say how a node comes back whose log may differ from the new leader's. A combined node may keep the
    partitions of topics in the same folder; those must stay."""
    if role_of(node_id, found) == "broker,controller":
        return (
            f"never start node {node_id} on its old metadata log again: it is a broker, too, so move "
            f"{PARTITION_FOLDER} away and nothing else, start it as an observer, and {ADD_IT}"
        )
    return (
        f"never start node {node_id} on its old folder again: move that away, format it with "
        f"`{format_command(cluster_id)} --no-initial-controllers`, start it as an observer, and {ADD_IT}"
    )
