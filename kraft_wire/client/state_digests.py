"""Ask nodes for digests of their state at one offset, with StateDigest, an API of ours.

A state can't be had for an offset that is past. The first one is the end of the leader's log: in a quiet
cluster all are there. A node that was past it says where its log ends. Then all are asked again, for an
offset that is ahead by twice what the log has grown meanwhile. If no log gets there, they are asked for its
end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from kraft_wire.client.at_once import at_once
from kraft_wire.client.connection import Connector
from kraft_wire.client.errors import QuorumError, reason_of
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.protocol.own_messages.state_digest_response import StateDigestResponse
from kraft_wire.wire.address import Address

GROWTH_FACTOR: Final = 2
OFFSETS: Final = 8
"""How many offsets nodes are asked for, one after the other."""
BUSY_S: Final = 60.0
"""How long nodes are asked that make a digest for somebody else, or have just made one."""
ASK_AGAIN_S: Final = 0.5
CONNECT_S: Final = 5.0
ANSWER_S: Final = 130.0
"""A node waits 3 seconds for the offset, and 120 for the digest."""
MISSED: Final = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.REQUEST_TIMED_OUT)
"""The log is past the offset, or doesn't get there soon."""
NOT_SERVED: Final = "it doesn't serve StateDigest: only nodes of kraft-wire do"


class NodeState(msgspec.Struct, frozen=True):
    """The digest of a node's state below ``end_offset``, as hexadecimal digits, and the number of records
    that it is made of. ``problem`` says why there is none; then ``end_offset`` is where the node is. An
    answer has the ``node_id`` of who gave it. Only digests of the same ``formula`` can be compared."""

    address: Address
    error: ErrorCode = ErrorCode.NONE
    problem: str = ""
    node_id: int = -1
    end_offset: int = -1
    formula: int = -1
    record_count: int = -1
    digest: str = ""


Ask = Callable[[Sequence[Address], int], list[NodeState]]
"""Asks the nodes at these addresses for their state at an offset, and gives their answers in order."""


def states_of(
    settings: QuorumSettings, addresses: Sequence[Address], cluster_id: str, log_end_offset: int
) -> list[NodeState]:
    """Return the states of the nodes at these addresses at ``log_end_offset`` or above it, in order. A node
    with several addresses is in it once."""

    def ask(asked: Sequence[Address], offset: int) -> list[NodeState]:
        return _patiently(settings, asked, StateDigestRequest(cluster_id, offset))

    return at_one_offset(ask, addresses, log_end_offset)


def at_one_offset(ask: Ask, addresses: Sequence[Address], first_offset: int) -> list[NodeState]:
    """Return the states of the nodes at these addresses at one offset, from ``first_offset`` on, as far as
    they can be had. A node that doesn't answer is asked once; one with several addresses is in it once."""
    offset = first_offset
    answers: dict[Address, NodeState] = {}
    asked = addresses
    for _ in range(OFFSETS):
        found = ask(asked, offset)
        answers |= {state.address: state for state in found}
        ends = [state.end_offset for state in found if state.error in MISSED]
        if not ends:
            break
        asked = [state.address for state in found if state.node_id >= 0]
        offset = max(ends) + GROWTH_FACTOR * max(0, max(ends) - offset)
    return _once_each([answers[address] for address in addresses])


def differing(states: Iterable[NodeState]) -> list[NodeState]:
    """Return the states of which no two are equal, an example of each, if there are several at one offset."""
    by_kind: dict[tuple[int, int], dict[str, NodeState]] = {}
    for state in states:
        if state.digest:
            examples = by_kind.setdefault((state.end_offset, state.formula), {})
            examples.setdefault(state.digest, state)
    return next((list(examples.values()) for examples in by_kind.values() if len(examples) > 1), [])


def _patiently(
    settings: QuorumSettings, addresses: Sequence[Address], request: StateDigestRequest
) -> list[NodeState]:
    """Ask again while a node is busy with another digest. The others answer what they have answered."""
    until_s = time.monotonic() + BUSY_S
    while True:
        found = at_once(lambda address: _state_of(settings, address, request), addresses)
        errors = {state.error for state in found}
        if ErrorCode.THROTTLING_QUOTA_EXCEEDED not in errors or ErrorCode.OFFSET_OUT_OF_RANGE in errors:
            return found
        if time.monotonic() >= until_s:
            return found
        time.sleep(ASK_AGAIN_S)


def _once_each(states: Sequence[NodeState]) -> list[NodeState]:
    """Leave out the later answers of a node."""
    first: dict[object, NodeState] = {}
    for state in states:
        first.setdefault(state.address if state.node_id < 0 else state.node_id, state)
    return list(first.values())


def _state_of(settings: QuorumSettings, address: Address, request: StateDigestRequest) -> NodeState:
    try:
        connection = Connector(settings.security, ANSWER_S).open(address, CONNECT_S)
    except (OSError, ProtocolError, QuorumError) as error:
        return NodeState(address, problem=reason_of(error))
    try:
        answer = connection.call(request, StateDigestResponse, ANSWER_S)
    except UnsupportedVersion:
        return NodeState(address, problem=NOT_SERVED)
    except (OSError, ProtocolError, QuorumError) as error:
        return NodeState(address, problem=reason_of(error))
    finally:
        connection.close()
    code = ErrorCode.of(answer.error_code)
    return NodeState(
        address,
        code,
        "" if code is ErrorCode.NONE else answer.error_message or code.name,
        answer.node_id,
        answer.end_offset,
        answer.formula,
        answer.record_count,
        bytes(answer.digest).hex(),
    )
