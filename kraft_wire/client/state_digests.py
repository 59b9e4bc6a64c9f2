"""Ask nodes for digests of their state at one offset, with StateDigest, an API of ours.

A state can't be had for an offset that is past. The first one is the end of the leader's log: in a quiet
cluster all are there. If one was past it, all are asked again for a later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kraft_wire.client.at_once import at_once
from kraft_wire.client.connection import Connector
from kraft_wire.client.errors import QuorumError
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.protocol.own_messages.state_digest_response import StateDigestResponse
from kraft_wire.wire.address import Address

LEADS: Final = (0, 8, 64, 512, 4_096, 32_768)
"""How far ahead the offset lies, in one attempt after the other."""
NOT_SERVED: Final = "it doesn't serve StateDigest: only nodes of kraft-wire do"


class NodeState(msgspec.Struct, frozen=True):
    """The digest of a node's state below ``end_offset``, as hexadecimal digits, and the number of records
    that it is made of. ``problem`` says why there is none."""

    address: Address
    error: ErrorCode = ErrorCode.NONE
    problem: str = ""
    end_offset: int = -1
    epoch: int = -1
    record_count: int = -1
    digest: str = ""


def states_of(
    settings: QuorumSettings, addresses: Sequence[Address], cluster_id: str, log_end_offset: int
) -> list[NodeState]:
    """Return the state of each of these nodes, in order, at ``log_end_offset`` or above it."""
    found: list[NodeState] = []
    offset = log_end_offset
    for lead in LEADS:
        offset += lead
        found = _asked_once(settings, addresses, StateDigestRequest(cluster_id, offset))
        if not any(state.error is ErrorCode.OFFSET_OUT_OF_RANGE for state in found):
            break
    return found


def differing(states: Iterable[NodeState]) -> list[NodeState]:
    """Return the states of which no two are equal, an example of each, if there are several. Only those of
    one offset can be compared."""
    examples: dict[tuple[int, str], NodeState] = {}
    for state in states:
        if state.digest:
            examples.setdefault((state.epoch, state.digest), state)
    return list(examples.values()) if len(examples) > 1 else []


def _asked_once(
    settings: QuorumSettings, addresses: Sequence[Address], request: StateDigestRequest
) -> list[NodeState]:
    return at_once(lambda address: _state_of(settings, address, request), addresses)


def _state_of(settings: QuorumSettings, address: Address, request: StateDigestRequest) -> NodeState:
    timeout_s = settings.request_timeout_ms / 1000
    try:
        connection = Connector(settings.security, timeout_s).open(address, timeout_s)
    except (OSError, ProtocolError, QuorumError) as error:
        return NodeState(address, problem=str(error) or type(error).__name__)
    try:
        answer = connection.call(request, StateDigestResponse, timeout_s)
    except UnsupportedVersion:
        return NodeState(address, problem=NOT_SERVED)
    except (OSError, ProtocolError, QuorumError) as error:
        return NodeState(address, problem=str(error) or type(error).__name__)
    finally:
        connection.close()
    if answer.error_code != ErrorCode.NONE:
        code = ErrorCode.of(answer.error_code)
        return NodeState(address, code, answer.error_message or code.name)
    return NodeState(
        address,
        end_offset=answer.end_offset,
        epoch=answer.epoch,
        record_count=answer.record_count,
        digest=bytes(answer.digest).hex(),
    )
