"""Upgrade kraft.version from 0 to 1: from then on the log has the voters (KIP-853; Kafka's
LeaderState.maybeAppendUpgradedKRaftVersion).

controller.quorum.voters names no directory ids. So the leader needs what its voters have said of themselves
with UpdateRaftVoter since it was elected.
"""

from __future__ import annotations

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.events import UpgradeKraftVersion
from kraft_wire.raft.leader import append
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.membership.change import ChangeRefused, supports
from kraft_wire.raft.quorum_state import QuorumState


def upgrade_kraft_version(quorum: QuorumState, event: UpgradeKraftVersion) -> None:
    """Append the level and the voters. They count at once. The present level changes nothing.

    Raises NotLeader, and ChangeRefused if the voters aren't ready for this level.
    """
    check_upgrade(quorum, event.level)
    if quorum.leadership is not None and event.level != quorum.history.kraft_version:
        voters = quorum.leadership.static_voters
        level = KRaftVersionRecord(kraft_version=event.level)
        append.append_control(quorum, [level, voters.to_record()])


def check_upgrade(quorum: QuorumState, level: int) -> None:
    """Check that the quorum is ready for a level of kraft.version. Raises as ``upgrade_kraft_version``."""
    leadership, present = quorum.leadership, quorum.history.kraft_version
    if leadership is None or quorum.is_shutting_down:
        raise NotLeader(quorum.epoch, quorum.leader_id)
    if level < present:
        raise ChangeRefused(
            ErrorCode.INVALID_UPDATE_VERSION, f"kraft.version is {present} and can't be downgraded"
        )
    if level > present:
        _check_voters(leadership, level)


def _check_voters(leadership: Leadership, level: int) -> None:
    voters = leadership.static_voters.voters
    unknown = [str(voter.key.id) for voter in voters if not voter.key.directory_id]
    if unknown:
        raise ChangeRefused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"the leader doesn't know the directory ids of the voters {', '.join(unknown)} yet: they must run"
            " a release that supports kraft.version 1, and report themselves some seconds after an election",
        )
    unfit = [str(voter.key.id) for voter in voters if not supports(voter.kraft_versions, level)]
    if unfit:
        raise ChangeRefused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"the voters {', '.join(unfit)} do not support kraft.version {level}: upgrade them first",
        )
