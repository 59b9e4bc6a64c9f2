"""Send the requests, and the answers, that a node's role makes due.

This is called after every step. It never sends a request twice, because requests in flight are remembered.
"""

from __future__ import annotations

from kraft_wire.raft.election import campaign, follow_hints, moved_voter
from kraft_wire.raft.follower import install_snapshot, membership_requests, replicate
from kraft_wire.raft.leader import leader_notices, update_voter
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kraft_wire.raft.waiting import earlier


def send_due_requests(quorum: QuorumState) -> None:
    """Send the requests that are due in the current role."""
    if quorum.is_stopped:
        return
    follow_hints.follow_up_hints(quorum)
    match quorum.state:
        case Leader(leadership=leadership):
            update_voter.release_requests(quorum)
            leader_notices.send_begin_quorum_epoch(quorum, leadership)
        case Resigned() as resigned:
            leader_notices.send_end_quorum_epoch(quorum, resigned)
            if not quorum.is_shutting_down and not quorum.may_start_election:
                # Nobody announces a new leader to a node that isn't a voter, or is at another address now.
                moved_voter.send_update_if_due(quorum)
                replicate.find_leader(quorum)
        case _ if quorum.is_shutting_down:
            pass
        case Follower() as follower:
            replicate.send_fetch(quorum, follower)
            membership_requests.send_if_due(quorum, follower)
        case Prospective() | Candidate() as nominee:
            moved_voter.send_update_if_due(quorum)
            campaign.ask_for_votes(quorum, nominee)
            if isinstance(nominee, Prospective):
                campaign.search_voters(quorum, nominee)
            replicate.ask_bootstrap_servers(quorum)
        case Unattached():
            moved_voter.send_update_if_due(quorum)
            replicate.find_leader(quorum)


def next_deadline_ms(quorum: QuorumState) -> int | None:
    """Return the monotonic time of the next request that becomes due without an event; None if there is
    none."""
    match quorum.state:
        case Leader(leadership=leadership):
            return earlier(
                leader_notices.next_begin_epoch_ms(quorum, leadership), update_voter.next_release_ms(quorum)
            )
        case Follower() as follower:
            return earlier(
                install_snapshot.next_keepalive_ms(quorum, follower),
                membership_requests.next_deadline_ms(quorum, follower),
            )
        case _:
            return None
