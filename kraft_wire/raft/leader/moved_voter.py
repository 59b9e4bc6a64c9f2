"""Decide whether a voter is where an UpdateRaftVoter in its name says. Whoever answers at a voter's address
is taken for that voter, so nobody else may be put there.

- It must be at the address that it wants.
- It must have been silent at its present address for some fetch timeouts, or say there itself that it
  advertises the new one. Only our voters can be asked for that.
- With kraft.version 0, a new directory id must be that of the voter at its static address.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.effects import MoveRefused
from kraft_wire.raft.leader.voter_questions import VoterAnswer, VoterQuestion
from kraft_wire.raft.leader.voter_silences import VoterSilences
from kraft_wire.raft.membership.change import ChangeRefused
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, Voter, endpoint_at
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.wire.address import Address

SILENT_TIMEOUTS: Final = 5
"""The fetch timeouts for which a voter must be silent at an address before it can be moved away from there:
longer than a restart takes."""
TIMEOUTS_BETWEEN_QUESTIONS: Final = 3
"""A voter asks for its new address once in a fetch timeout, and the question may take as long."""


def address_of(quorum: QuorumState, voter: Voter) -> Address | None:
    """Return a voter's address on the controller listener; None if it has none there."""
    return address_in(quorum, voter.endpoints)


def address_in(quorum: QuorumState, endpoints: Endpoints) -> Address | None:
    """Return the address of the controller listener; None if it isn't among the endpoints."""
    endpoint = endpoint_at(endpoints, quorum.config.listener)
    return None if endpoint is None else Address(endpoint.host, endpoint.port)


def addresses_to_ask(quorum: QuorumState, known: Voter, voter: Voter) -> tuple[Address, ...]:
    """Return where the voter has to be asked before its entry ``known`` may become ``voter``; nothing if it
    needn't be."""
    present, wanted = address_of(quorum, known), address_of(quorum, voter)
    if wanted is None or (known.key == voter.key and present == wanted):
        return ()
    return (wanted,) if present in (None, wanted) else (wanted, present)


def check_answers(
    quorum: QuorumState, silences: VoterSilences, question: VoterQuestion, known: Voter
) -> None:
    """Raise ChangeRefused if the answers don't show that the voter is where it is said to be."""
    key, present, wanted = known.key, address_of(quorum, known), address_of(quorum, question.voter)
    assert wanted is not None, "it was asked there"
    if not question.answer_at(wanted).is_there:
        _report(quorum, MoveRefused(key, present, wanted, is_at_present=False))
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{key} does not answer at {wanted}")
    if present in (None, wanted):
        return
    if not question.is_for(present):
        raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{key} has moved meanwhile: try again")
    answer = question.answer_at(present)
    if key != question.voter.key:
        _check_static_address(answer, question.voter.key, present)
    elif answer.advertised == wanted:
        return
    elif answer.is_there:
        silences.end(key.id)
        _report(quorum, MoveRefused(key, present, wanted, is_at_present=True))
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{key} still answers at {present}")
    else:
        _check_silence(quorum, silences, known, present)


def _check_static_address(answer: VoterAnswer, key: ReplicaKey, present: Address) -> None:
    if not answer.is_there:
        raise ChangeRefused(ErrorCode.REQUEST_TIMED_OUT, f"{key} does not answer at {present}: try again")


def _check_silence(quorum: QuorumState, silences: VoterSilences, known: Voter, present: Address) -> None:
    """Check that a voter has been silent at its present address for long enough."""
    timeout_ms, now_ms = quorum.config.fetch_timeout_ms, quorum.now.monotonic_ms
    within_ms = TIMEOUTS_BETWEEN_QUESTIONS * timeout_ms
    silent_ms = silences.note(known.key.id, present, now_ms, within_ms=within_ms)
    if silent_ms < SILENT_TIMEOUTS * timeout_ms:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            f"{known.key} has been silent at {present} for {silent_ms} ms: try again",
        )


def _report(quorum: QuorumState, refusal: MoveRefused) -> None:
    if quorum.refused_moves.take(quorum.now.monotonic_ms):
        quorum.emit(refusal)
