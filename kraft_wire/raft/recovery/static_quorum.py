"""Recover a static quorum: its voters are in controller.quorum.voters of all nodes, and not in the log.

The survivor's configuration makes it the only voter. Its epoch has to rise all the same, above any that a
lost leader had. Brokers may hold records of such an epoch. If the survivor were elected in it once more,
other records would be at the same offsets of one epoch, and no broker would notice that its log is another
one. Nor does a broker follow a leader of an older epoch than it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import FolderEvidence, KnownVoter, url_of
from kraft_wire.raft.recovery.plan import RecoveryError

KEY = "controller.quorum.voters"


def is_static(folder: FolderEvidence) -> bool:
    """Whether the voters of this folder's quorum are in the configuration."""
    return folder.kraft_version == 0 or not folder.voters


def old_voters(
    kept: FolderEvidence, found: Sequence[FolderEvidence], given: Mapping[int, Endpoint]
) -> tuple[KnownVoter, ...]:
    """Return the voters that a leader may be among, with the addresses that are given or registered. Raises
    RecoveryError if they aren't known: then nobody could ask whether one of them leads."""
    ids = kept.static_voter_ids
    wanted = f"give --voters, with the value that {KEY} had"
    if not ids:
        raise RecoveryError(f"no folder names the voters of this static quorum: {wanted}")
    voters = tuple(KnownVoter(id, "", addresses_of(id, (kept, *found), given)) for id in ids)
    for voter in voters:
        if not voter.endpoints:
            raise RecoveryError(
                f"no address of voter {voter.id} is known, so nobody could ask it whether it leads: {wanted}"
            )
    return voters


def new_voters(
    kept: Sequence[FolderEvidence],
    found: Sequence[FolderEvidence],
    given: Mapping[int, Endpoint],
    moved: Mapping[int, Endpoint],
) -> tuple[KnownVoter, ...]:
    """Return the survivors as voters, at the addresses that they moved to, or else at their old ones."""
    return tuple(
        KnownVoter(
            folder.node_id,
            folder.directory_id,
            (moved[folder.node_id],)
            if folder.node_id in moved
            else addresses_of(folder.node_id, (folder, *found), given),
        )
        for folder in kept
    )


def addresses_of(
    node_id: int, sources: Iterable[FolderEvidence], given: Mapping[int, Endpoint]
) -> tuple[Endpoint, ...]:
    """Return a node's addresses, the given one first, then those of its registration; empty if none is
    known."""
    found = [given[node_id]] if node_id in given else []
    registered = (source.registrations.get(node_id) for source in sources)
    found += [Endpoint("", point.host, point.port) for point in next(filter(None, registered), ())]
    return tuple(dict.fromkeys(found))


def format_command(cluster_id: str) -> str:
    """Return the command that formats the folder of a controller that comes back."""
    return f"kraft-wire storage format -t {cluster_id} -c FILE"


def configuring_steps(voters: Mapping[int, Sequence[Endpoint]], *, changes_folders: bool) -> list[str]:
    """Say how these nodes become the voters, after the plan was applied or without."""
    value = ",".join(
        f"{id}@{url_of(points[0]) if points else 'HOST:PORT'}" for id, points in sorted(voters.items())
    )
    why = "the log of a static quorum names no voters"
    if not changes_folders:
        why += ", so there is nothing to apply"
    return [
        f"set {KEY}={value} in the configuration of all nodes, the brokers' included: {why}",
        f"start {'node' if len(voters) == 1 else 'nodes'} {named(sorted(voters))}, then the brokers",
    ]


def returning_step(cluster_id: str) -> str:
    """Say how the others come back. A controller whose own id isn't in the key doesn't start with it."""
    return (
        "never start any other controller on its old folder again: move that away; of one that is a broker, "
        f"too, move {PARTITION_FOLDER} away and nothing else. Then bring one controller back at a time. Add "
        f"it to {KEY} in its own file, format it with `{format_command(cluster_id)}` unless it is a broker, "
        "too, and start it. When its lag is 0 in `kraft-wire quorum status`, set that value on all others, "
        "and restart them"
    )


def named(ids: Iterable[int]) -> str:
    """Return the ids as text."""
    return ", ".join(map(str, ids))
