"""Decide whether the entry in an UpdateRaftVoter is the one that its voter wants. Whoever answers at a
voter's address is taken for that voter, so nobody else may be put there.

- The voter must answer at the address that it wants.
- A voter of ours says which entry it wants, at its present address and at the one that it wants. With
  kraft.version 0, the present address is the static one.
- Java's, and those of our older releases, can't be asked for that. They are believed, except about their
  address: another one counts once the voter has been silent at the present one for some fetch timeouts; with
  kraft.version 0 it doesn't count.
- From the first such request on, the leader asks a silent voter by itself, at its present address, until it
  answers. Otherwise it would be asked only when others want, for example only while it restarts.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.effects import VoterEntryRefused
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.voter_questions import VoterQuestion
from kraft_wire.raft.membership.change import ChangeRefused, EntryRefusal
from kraft_wire.raft.membership.voters import Endpoints, Voter, endpoint_at, peer_at
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.wire.address import Address

SILENT_TIMEOUTS: Final = 5
"""A voter must be silent at an address for so many fetch timeouts before it can be moved away from there."""
LEAST_SILENCE_MS: Final = 10_000
"""It must be silent for so long in any case: longer than a restart takes."""
RIVAL_TIMEOUTS: Final = 1.5
"""A voter isn't moved if another address was named for it within so many fetch timeouts. A voter that has
moved names its own once in a fetch timeout."""


def must_be_asked(known: Voter, voter: Voter) -> bool:
    """Whether the voter has to be asked before its entry ``known`` becomes ``voter``."""
    return known != voter


def wanted_address(quorum: QuorumState, voter: Voter) -> Address | None:
    """Return the address of an entry on the controller listener; None if it has none there."""
    endpoint = endpoint_at(voter.endpoints, quorum.config.listener)
    return None if endpoint is None else Address(endpoint.host, endpoint.port)


def present_address(quorum: QuorumState, voter_id: int) -> Address | None:
    """Return where a voter is asked; None if no address of it is known."""
    peer = peer_at(voter_id, _present_endpoints(quorum, voter_id), quorum.config.listener)
    return None if peer is None else Address(peer.host, peer.port)


def _present_endpoints(quorum: QuorumState, voter_id: int) -> Endpoints:
    return quorum.history.voters.endpoints_of(voter_id)


def entry_that_counts(quorum: QuorumState, leadership: Leadership, question: VoterQuestion) -> Voter:
    """Return the entry for a voter after its answers. Raises ChangeRefused if they aren't in favour of it."""
    voter = question.voter
    present, wanted = present_address(quorum, voter.key.id), wanted_address(quorum, voter)
    assert wanted is not None, "it was asked there"
    there = question.answer_at(wanted)
    if not there.is_there:
        raise _refused(quorum, voter, EntryRefusal.NOT_THERE)
    if there.entry not in (None, voter):
        raise _refused(quorum, voter, EntryRefusal.OTHER_ENTRY)
    if present is None:
        return voter
    if not question.is_for(present):
        raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} has moved meanwhile: try again")
    answer = question.answer_at(present)
    if answer.is_there:
        leadership.silences.end(voter.key.id)
    if answer.entry is not None and answer.entry != voter:
        raise _refused(quorum, voter, EntryRefusal.OTHER_ENTRY)
    if answer.entry is not None or (answer.is_there and present == wanted):
        return voter
    if quorum.history.kraft_version == 0:
        return _with_static_address(quorum, voter, is_there=answer.is_there)
    if answer.is_there:
        raise _refused(quorum, voter, EntryRefusal.STILL_THERE)
    _check_silence(quorum, leadership, voter, present, wanted)
    leadership.silences.end(voter.key.id)
    return voter


def _with_static_address(quorum: QuorumState, voter: Voter, *, is_there: bool) -> Voter:
    if not is_there:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} does not answer at its static address: try again"
        )
    return Voter(voter.key, _present_endpoints(quorum, voter.key.id), voter.kraft_versions)


def _check_silence(
    quorum: QuorumState, leadership: Leadership, voter: Voter, present: Address, wanted: Address
) -> None:
    """Check that a voter has been silent at its present address for long enough. If two claim to be that
    voter, neither gets its place."""
    timeout_ms, now_ms = quorum.config.fetch_timeout_ms, quorum.now.monotonic_ms
    silence = leadership.silences.note(voter.key.id, present, wanted, now_ms)
    leadership.ask_silent(voter.key.id, now_ms)
    silent_ms, rival_ms = now_ms - silence.since_ms, silence.rival_ms
    if silent_ms < max(SILENT_TIMEOUTS * timeout_ms, LEAST_SILENCE_MS):
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            f"{voter.key} has been silent at {present} for {silent_ms} ms: try again",
        )
    if rival_ms is not None and now_ms < rival_ms + RIVAL_TIMEOUTS * timeout_ms:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, f"{voter.key} is said to be at another address, too: try again"
        )


def _refused(quorum: QuorumState, voter: Voter, reason: EntryRefusal) -> ChangeRefused:
    """Report a refusal, and return it. INVALID_REQUEST would end a Java controller."""
    if quorum.refused_entries.take(quorum.now.monotonic_ms):
        present, wanted = present_address(quorum, voter.key.id), wanted_address(quorum, voter)
        quorum.emit(VoterEntryRefused(voter.key, present, wanted, reason))
    return ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{voter.key}: {reason.value}")
